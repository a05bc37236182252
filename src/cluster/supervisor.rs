//! Starts the watches and keeps them in step with the policy and with the kinds that the API server serves.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube::Client;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    Health, Kinds,
    client::in_words,
    freshness::Prober,
    index_feed::{ClusterNames, DefinitionFeed, Feed, InventoryFeed, PolicyFeed, SecretFeed},
    list_watch::ListWatch,
    observer::{ObservedFeed, Observer},
    watch::{Watch, WatchScope, WatchState, WatchStates},
};
use crate::{
    state::{LiveInventory, LivePolicy, Readiness, Requirement},
    telemetry::Metrics,
};
use cascade_guard_core::object::{ARGO_GROUP, GroupKind};

/// The wait between a changed definition and discovery. A new kind is served a moment after its definition was stored,
/// and definitions often change together.
const SETTLE: Duration = Duration::from_secs(2);
/// The wait until a second discovery after a change, because aggregated discovery lags behind.
const SECOND_LOOK: Duration = Duration::from_secs(15);
/// The time between two discoveries without a change. Aggregated APIs have no definition whose change could be seen.
const ROUTINE: Duration = Duration::from_secs(600);

/// Feeds the inventory from the live cluster.
#[derive(Clone)]
pub struct Cluster {
    /// The connection.
    pub client: Client,
    /// What the API server serves.
    pub kinds: Arc<Kinds>,
    /// The inventory to feed.
    pub inventory: Arc<LiveInventory>,
    /// What decides which Applications count; fed as well if `watch_policy` is set.
    pub policy: Arc<LivePolicy>,
    /// Whether the GuardPolicy of the cluster counts. If not, a policy file takes its place.
    pub watch_policy: bool,
    /// Told when everything has been listed.
    pub readiness: Arc<Readiness>,
    /// The counts of events.
    pub metrics: Arc<Metrics>,
    /// Told which watches fail.
    pub health: Arc<Health>,
    /// A list or watch that is silent for so long is given up and tried anew; [`super::SILENCE`] but in tests.
    pub silence: Duration,
}

/// What the watches of one cluster share.
struct Shared {
    scope: watch::Sender<WatchScope>,
    states: Arc<WatchStates>,
    names: Arc<ClusterNames>,
    definitions: Arc<Notify>,
    observer: Option<Arc<dyn Observer>>,
}

impl Cluster {
    /// Watches for ever.
    ///
    /// # Errors
    /// When a watch ends: none of them may.
    pub async fn run(self) -> anyhow::Result<()> {
        self.watch(None).await
    }

    /// The same, and shows somebody else every Application as well.
    ///
    /// # Errors
    /// When a watch ends: none of them may.
    pub async fn run_observed(self, observer: Arc<dyn Observer>) -> anyhow::Result<()> {
        self.watch(Some(observer)).await
    }

    async fn watch(self, observer: Option<Arc<dyn Observer>>) -> anyhow::Result<()> {
        self.readiness.missing(Requirement::Claims, "the API server was not asked yet which kinds it serves");
        if self.watch_policy {
            self.readiness.missing(Requirement::Policy, "the GuardPolicy was not read yet");
        }
        self.discover().await;
        let shared = Shared {
            scope: watch::Sender::new(WatchScope::of(&self.policy.load(), 0)),
            states: Arc::new(watch::Sender::new(BTreeMap::new())),
            names: Arc::new(ClusterNames {
                inventory: self.inventory.clone(),
                policy: self.policy.clone(),
                secrets: Mutex::default(),
            }),
            definitions: Arc::new(Notify::new()),
            observer,
        };
        let mut watches = JoinSet::new();
        let prober =
            Prober { client: self.client.clone(), health: self.health.clone(), readiness: self.readiness.clone() };
        watches.spawn(prober.run());
        let mut states = shared.states.subscribe();
        let mut policy_changes = self.policy.changes();
        if self.watch_policy {
            self.follow(Watch::Policy, &shared, &mut watches);
            // Which Applications count depends on it, so nothing else begins before it is known.
            tokio::select! {
                known = self.await_policy(&mut states) => known?,
                Some(ended) = watches.join_next() => return ended?,
            }
        }
        self.rescope(&shared);
        for watch in [
            Watch::Namespaces,
            Watch::Settings,
            Watch::Parameters,
            Watch::Deployments,
            Watch::StatefulSets,
            Watch::ClusterSecrets,
            Watch::Projects,
            Watch::ApplicationSets,
            Watch::Applications,
            Watch::Definitions,
        ] {
            self.follow(watch, &shared, &mut watches);
        }
        let mut discover_at = Instant::now() + ROUTINE;
        let mut second_look = false;
        loop {
            self.judge_readiness(&states.borrow_and_update());
            tokio::select! {
                ended = watches.join_next() => match ended {
                    Some(ended) => return ended?,
                    None => anyhow::bail!("nothing is watched any more"),
                },
                changed = states.changed() => changed?,
                changed = policy_changes.changed() => {
                    changed?;
                    self.rescope(&shared);
                }
                () = shared.definitions.notified() => {
                    discover_at = discover_at.min(Instant::now() + SETTLE);
                    second_look = true;
                }
                () = sleep_until(discover_at) => {
                    self.rediscover(&shared).await;
                    discover_at = Instant::now() + if second_look { SECOND_LOOK } else { ROUTINE };
                    second_look = false;
                }
            }
        }
    }

    /// Asks the API server which kinds it serves, until it answers: without scopes no claim can be told from another.
    async fn discover(&self) {
        let mut pause = Duration::from_millis(500);
        while let Err(error) = self.kinds.refresh(&self.client).await {
            let why = format!("the API server cannot be asked which kinds it serves: {}", in_words(&error));
            tracing::warn!(why, "waiting for the API server");
            self.readiness.missing(Requirement::Claims, why);
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(15));
        }
        self.inventory.write().set_cluster_scoped(self.kinds.cluster_scoped());
    }

    /// Asks again, and begins the watches anew that depend on the answer if it has changed.
    async fn rediscover(&self, shared: &Shared) {
        let before = (self.kinds.cluster_scoped(), self.served());
        if let Err(error) = self.kinds.refresh(&self.client).await {
            tracing::warn!(reason = in_words(&error), "the API server cannot be asked which kinds it serves");
            return;
        }
        let scoped = self.kinds.cluster_scoped();
        if before != (scoped.clone(), self.served()) {
            self.inventory.write().set_cluster_scoped(scoped);
            shared.scope.send_modify(|scope| scope.generation += 1);
        }
    }

    /// Which of the custom kinds that are watched there are.
    fn served(&self) -> [bool; 4] {
        let kinds = [
            (ARGO_GROUP, "Application"),
            (ARGO_GROUP, "ApplicationSet"),
            (ARGO_GROUP, "AppProject"),
            ("cascade-guard.io", "GuardPolicy"),
        ];
        kinds.map(|(group, kind)| self.kinds.known(&GroupKind::new(group, kind)).is_some())
    }

    /// Waits until the policy is known, or that there is none. A policy that is there and cannot be read is neither:
    /// going on without it would put every rule in audit, and nobody would notice.
    async fn await_policy(&self, states: &mut watch::Receiver<BTreeMap<Watch, WatchState>>) -> anyhow::Result<()> {
        loop {
            match states.borrow_and_update().get(&Watch::Policy) {
                Some(WatchState::Synced | WatchState::Absent) => {
                    self.readiness.met(Requirement::Policy);
                    return Ok(());
                }
                Some(WatchState::Failed(reason)) => self.readiness.missing(
                    Requirement::Policy,
                    format!(
                        "the GuardPolicy cannot be read ({reason}); grant list and watch, or name a file with --policy"
                    ),
                ),
                Some(WatchState::Pending) | None => {}
            }
            states.changed().await?;
        }
    }

    /// Takes over what the policy says of where Argo CD lives.
    fn rescope(&self, shared: &Shared) {
        let policy = self.policy.load();
        shared.names.refresh();
        self.inventory.write().set_policy(&policy);
        shared.scope.send_if_modified(|scope| {
            let next = WatchScope::of(&policy, scope.generation);
            let changed = *scope != next;
            *scope = next;
            changed
        });
    }

    fn follow(&self, watch: Watch, shared: &Shared, watches: &mut JoinSet<anyhow::Result<()>>) {
        shared.states.send_modify(|states| {
            states.insert(watch, WatchState::Pending);
        });
        let feed: Box<dyn Feed> = match watch {
            Watch::ClusterSecrets => Box::new(SecretFeed { names: shared.names.clone(), complete: false }),
            Watch::Definitions => Box::new(DefinitionFeed(shared.definitions.clone())),
            Watch::Policy => Box::new(PolicyFeed { policy: self.policy.clone(), seen: None }),
            _ => Box::new(InventoryFeed { watch, inventory: self.inventory.clone(), policy: self.policy.clone() }),
        };
        let feed = match &shared.observer {
            Some(observer) if watch == Watch::Applications => {
                Box::new(ObservedFeed { feed, observer: observer.clone() }) as Box<dyn Feed>
            }
            _ => feed,
        };
        let list_watch = ListWatch {
            watch,
            client: self.client.clone(),
            kinds: self.kinds.clone(),
            scope: shared.scope.subscribe(),
            feed,
            states: shared.states.clone(),
            metrics: self.metrics.clone(),
            health: self.health.clone(),
            silence: self.silence,
            trouble: None,
        };
        watches.spawn(list_watch.run());
    }

    /// Ready once everything indispensable was listed and the rest was at least tried.
    fn judge_readiness(&self, states: &BTreeMap<Watch, WatchState>) {
        let missing: Vec<String> = states
            .iter()
            .filter_map(|(watch, state)| match state {
                WatchState::Pending => Some(format!("{} are not listed yet", watch.what())),
                WatchState::Failed(reason) if watch.is_indispensable() => Some(format!("{}: {reason}", watch.what())),
                WatchState::Synced | WatchState::Absent | WatchState::Failed(_) => None,
            })
            .collect();
        if missing.is_empty() {
            if !self.inventory.read().is_ready() {
                self.inventory.write().set_ready(true);
                tracing::info!("everything is listed; deletes can be judged");
            }
            self.readiness.met(Requirement::Claims);
        } else if !self.inventory.read().is_ready() {
            self.readiness.missing(Requirement::Claims, missing.join("; "));
        }
    }
}
