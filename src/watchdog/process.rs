//! The process: everything that runs beside each other, and the loop that judges.

use std::{
    hash::{BuildHasher, RandomState},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc::Sender},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    engine::{Engine, Report, Seen},
    kube_store::KubeStore,
    lease::{Election, Held},
    live_settings::LiveSettings,
    notify::{Notice, Notifier},
    observing::{Feed, image_updaters},
    probes::{Pulse, plain},
    removal::Remover,
};
use crate::{
    cluster::{Cluster, Health, Kinds, LiveSource, SILENCE},
    server::{
        Limits, Transport, admin,
        shutdown::{self, Port},
    },
    state::{LiveInventory, LivePolicy, Readiness, Requirement, WatchedFiles},
    telemetry::{Metrics, WatchdogMetrics, log::LogFilter},
};
use cascade_guard_core::{
    argo::Clusters,
    inventory::Inventory,
    policy::{Mode as PolicyMode, Policy},
};

/// Many changes of an Application come together; they are judged together.
const SETTLE: Duration = Duration::from_millis(300);
/// The name of the Lease.
const LEASE: &str = "cascade-guard-watchdog";
/// What the process is told on the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where RolloutWatches and the Lease are kept.
    pub namespace: String,
    /// Where the caches of repositories lie.
    pub cache: PathBuf,
    /// Address of the plain port.
    pub admin_listen: SocketAddr,
    /// How long a lease lasts.
    pub lease: Duration,
}

/// Everything that judging needs, at work.
struct Parts {
    client: Client,
    kinds: Arc<Kinds>,
    health: Arc<Health>,
    readiness: Arc<Readiness>,
    metrics: Arc<Metrics>,
    counts: WatchdogMetrics,
    inventory: Arc<LiveInventory>,
    seen: Arc<Mutex<Seen>>,
    changed: Arc<Notify>,
    engine: Engine<KubeStore>,
    settings: Arc<LiveSettings>,
    held: Held,
    lease: (kube::Api<k8s_openapi::api::coordination::v1::Lease>, String, String),
    notices: Sender<Notice>,
    pulse: Pulse,
}

fn assemble(
    client: Client,
    settings: Arc<LiveSettings>,
    options: &Options,
    background: &mut JoinSet<anyhow::Result<()>>,
) -> Parts {
    let mut metrics = Metrics::new();
    let counts = metrics.add_watchdog();
    let metrics = Arc::new(metrics);
    let readiness = Arc::new(Readiness::default());
    readiness.missing(Requirement::Claims, "nothing is listed yet");
    readiness.missing(Requirement::Repositories, "nothing was fetched yet");
    let keys = (RandomState::new().hash_one(0), RandomState::new().hash_one(1));
    let policy = Arc::new(LivePolicy::new(Policy::default(), PolicyMode::Enforce, metrics.clone()));
    let inventory =
        Arc::new(LiveInventory::new(Inventory::new(keys, &settings.load().spec.argocd_namespace, Clusters::default())));
    let (kinds, health) = (Arc::new(Kinds::default()), Arc::new(Health::default()));
    let (seen, changed) = (Arc::new(Mutex::new(Seen::default())), Arc::new(Notify::new()));
    seen.lock().unreadable = Some("Applications are not listed yet".to_owned());
    let cluster = Cluster {
        client: client.clone(),
        kinds: kinds.clone(),
        inventory: inventory.clone(),
        policy: policy.clone(),
        watch_policy: true,
        readiness: readiness.clone(),
        metrics: metrics.clone(),
        health: health.clone(),
        silence: SILENCE,
    };
    let feed = Arc::new(Feed { seen: seen.clone(), changed: changed.clone() });
    background.spawn(cluster.run_observed(feed));
    let source = LiveSource::new(client.clone(), kinds.clone(), metrics.clone()).gently();
    let remover = Arc::new(Remover { inventory: inventory.clone(), policy, source });
    let store = KubeStore::new(client.clone(), &options.namespace, remover);
    let pulse = Pulse::new();
    let beat = pulse.clone();
    let engine = Engine::new(store, seen.clone(), settings.load(), options.cache.clone())
        .with_progress(Arc::new(move || beat.beat()));
    let election = Election::new(client.clone(), &options.namespace, LEASE, options.lease);
    let (held, lease) = (election.held(), election.handle());
    background.spawn(election.run());
    let (notices, notifier) = Notifier::new();
    background.spawn(notifier.run());
    counts.configured(&settings.load().digest);
    Parts {
        client,
        kinds,
        health,
        readiness,
        metrics,
        counts,
        inventory,
        seen,
        changed,
        engine,
        settings,
        held,
        lease,
        notices,
        pulse,
    }
}

/// Runs until a signal stops it, or a part of it ends.
///
/// # Errors
/// When the plain port cannot be opened, or a part that must not end has ended.
pub async fn run(
    client: Client,
    settings: Arc<LiveSettings>,
    files: WatchedFiles,
    options: Options,
    log: LogFilter,
) -> anyhow::Result<()> {
    let mut background = JoinSet::new();
    let parts = assemble(client, settings.clone(), &options, &mut background);
    background.spawn(settings.clone().follow(files));
    let listener = TcpListener::bind(options.admin_listen).await.context("the plain port cannot be opened")?;
    let app = plain(parts.pulse.clone(), settings, parts.admin(log));
    let plain = Port { listener, transport: Transport::Plain, app, limits: Limits::of_plain_port() };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), plain = %options.admin_listen, "the rollout watchdog started");
    let readiness = parts.readiness.clone();
    let (api, name, identity) = parts.lease.clone();
    background.spawn(parts.work());
    // There is no webhook; nothing has to be drained.
    let never = std::future::pending();
    let stop = shutdown::told_to_stop();
    let ended = shutdown::run(never, plain, Duration::ZERO, &readiness, &mut background, stop).await;
    // Nothing of this process writes any more when the Lease is given back.
    background.shutdown().await;
    Election::release(&api, &name, &identity).await;
    ended
}

/// One cycle, and out: the gate that shows that the program loads, reaches everything and judges.
///
/// # Errors
/// When it does not get the Lease, Applications cannot be listed, or a repository cannot be reached, within `patience`.
pub async fn once(
    client: Client,
    settings: Arc<LiveSettings>,
    options: Options,
    patience: Duration,
) -> anyhow::Result<String> {
    let mut background = JoinSet::new();
    let mut parts = assemble(client, settings, &options, &mut background);
    let ready = async {
        parts.readiness.wait_for(Requirement::Claims).await;
        while parts.held.until().is_none() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = timeout(patience, ready).await;
    let outcome = match waited {
        Err(_) => {
            let missing: Vec<String> = parts.readiness.report().into_iter().map(|(_, why)| why).collect();
            Err(anyhow::anyhow!("not ready to judge within {} s: {}", patience.as_secs(), missing.join("; ")))
        }
        Ok(()) => parts.cycle(true).await.and_then(|()| {
            let troubles = parts.engine.troubles();
            match troubles.first() {
                Some((url, why)) => anyhow::bail!("{url} cannot be reached: {why}"),
                None => Ok(format!(
                    "one cycle: {} watches, {} repositories, ceiling {}",
                    parts.engine.watches().len(),
                    parts.settings.load().spec.repositories.len(),
                    parts.settings.load().spec.mode_ceiling.as_str()
                )),
            }
        }),
    };
    let (api, name, identity) = parts.lease.clone();
    background.shutdown().await;
    Election::release(&api, &name, &identity).await;
    outcome
}

impl Parts {
    fn admin(&self, log: LogFilter) -> admin::Admin {
        admin::Admin {
            readiness: self.readiness.clone(),
            metrics: self.metrics.clone(),
            inventory: self.inventory.clone(),
            health: self.health.clone(),
            stuck_after: SignedDuration::from_mins(10),
            log: Some(log),
        }
    }

    /// Judges for ever: at every interval, and whenever something has changed in the cluster.
    async fn work(mut self) -> anyhow::Result<()> {
        let mut changes = self.settings.changes();
        loop {
            let interval = Duration::try_from(self.settings.load().fetch_interval).unwrap_or(Duration::from_secs(30));
            let next = Instant::now() + interval;
            self.guarded_cycle(true).await;
            loop {
                tokio::select! {
                    () = tokio::time::sleep_until(next) => break,
                    news = changes.changed() => {
                        news?;
                        self.engine.reconfigure(self.settings.load());
                        self.counts.configured(&self.settings.load().digest);
                        break;
                    }
                    () = self.changed.notified() => {
                        sleep(SETTLE).await;
                        self.guarded_cycle(false).await;
                    }
                }
            }
        }
    }

    async fn guarded_cycle(&mut self, fetch: bool) {
        self.pulse.beat();
        let outcome = self.cycle(fetch).await;
        if let Err(error) = outcome {
            tracing::error!(error = format!("{error:#}"), "the cycle failed; the next one begins with what is stored");
        }
        self.pulse.beat();
    }

    async fn cycle(&mut self, fetch: bool) -> anyhow::Result<()> {
        let listed = !self.readiness.report().iter().any(|(requirement, _)| *requirement == Requirement::Claims);
        let trouble = self.health.stale_claims().or_else(|| self.health.applications_trouble());
        let unreadable = trouble.or_else(|| (!listed).then(|| "Applications are not listed yet".to_owned()));
        let updaters = if fetch { Some(image_updaters(&self.client, &self.kinds).await) } else { None };
        {
            let mut seen = self.seen.lock();
            seen.unreadable = unreadable;
            if let Some(updaters) = updaters {
                seen.updaters = updaters;
            }
        }
        let held = self.held.clone();
        let lease = move || held.until();
        let report = self.engine.cycle(fetch, Timestamp::now(), &lease).await?;
        self.tell(&report, fetch);
        Ok(())
    }

    fn tell(&self, report: &Report, fetch: bool) {
        let settings = self.settings.load();
        for kept in &report.verdicts {
            // A revert is looked after once more; it is counted when it is made.
            if kept.status.phase != cascade_guard_core::watchdog::Phase::Reverted || kept.status.ended.is_none() {
                self.counts.count_verdict(kept.status.phase);
            }
            let Some(notify) = &settings.spec.notify else { continue };
            if self.notices.try_send(Notice::new(kept, notify.url_file.clone())).is_err() {
                tracing::error!(watch = kept.name, "too many notifications wait; this one is dropped");
            }
        }
        let leading = self.held.until().is_some();
        let troubles = self.engine.troubles();
        self.counts.observe_watches(self.engine.watches().values().map(|kept| kept.status.phase));
        let now = Timestamp::now();
        self.counts.observe_cycle(now, leading, self.engine.open().len(), troubles.len(), report.fetch_failures);
        if troubles.is_empty() {
            // A replica that does not lead reads no repository, and is ready to.
            if fetch {
                self.readiness.met(Requirement::Repositories);
            }
        } else {
            let said: Vec<String> = troubles.iter().map(|(url, why)| format!("{url}: {why}")).collect();
            self.readiness.missing(Requirement::Repositories, said.join("; "));
        }
    }
}
