//! One watch: list, follow, list again when the API server has forgotten where we were.

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use futures::StreamExt;
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::GroupVersionKind,
    discovery::ApiResource,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::sync::watch::{Receiver, Sender};

use super::{Health, client::in_words, feed::Feed, watched::Watched};
use crate::{
    argo::config::{SECRET_TYPE, SETTINGS_NAME},
    inventory::Names,
    object::ARGO_GROUP,
    policy::{POLICY_NAME, Policy},
    telemetry::Metrics,
};

/// What is watched.
///
/// The guard needs `list` and `watch` on: `applications`, `applicationsets` and `appprojects` of `argoproj.io`,
/// `namespaces`, `customresourcedefinitions`, `guardpolicies`, the ConfigMaps called `argocd-cm`, each in the whole
/// cluster, and `secrets` in the namespace of Argo CD. Only Applications and Namespaces are indispensable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// Applications, whole: their lists are the claims.
    Applications,
    /// ApplicationSets, metadata alone.
    ApplicationSets,
    /// AppProjects, for whom Argo CD impersonates.
    Projects,
    /// Namespaces, metadata alone.
    Namespaces,
    /// The tracking settings of every Argo CD.
    Settings,
    /// Which names and URLs mean one cluster.
    ClusterSecrets,
    /// Custom resource definitions, metadata alone: a change of them makes discovery look again.
    Definitions,
    /// The GuardPolicy that counts.
    Policy,
}

impl Watch {
    /// As people call it.
    pub fn what(self) -> &'static str {
        match self {
            Self::Applications => "Applications",
            Self::ApplicationSets => "ApplicationSets",
            Self::Projects => "AppProjects",
            Self::Namespaces => "Namespaces",
            Self::Settings => "ConfigMaps called argocd-cm",
            Self::ClusterSecrets => "cluster Secrets of Argo CD",
            Self::Definitions => "CustomResourceDefinitions",
            Self::Policy => "GuardPolicies",
        }
    }

    /// Whether nothing can be judged without it.
    pub(super) fn is_indispensable(self) -> bool {
        matches!(self, Self::Applications | Self::Namespaces)
    }

    /// Whether only metadata is asked for.
    fn only_metadata(self) -> bool {
        matches!(self, Self::ApplicationSets | Self::Namespaces | Self::Definitions)
    }

    fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Self::Applications => (ARGO_GROUP, "v1alpha1", "Application", "applications"),
            Self::ApplicationSets => (ARGO_GROUP, "v1alpha1", "ApplicationSet", "applicationsets"),
            Self::Projects => (ARGO_GROUP, "v1alpha1", "AppProject", "appprojects"),
            Self::Namespaces => ("", "v1", "Namespace", "namespaces"),
            Self::Settings => ("", "v1", "ConfigMap", "configmaps"),
            Self::ClusterSecrets => ("", "v1", "Secret", "secrets"),
            Self::Definitions => {
                ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
            }
            Self::Policy => ("cascade-guard.io", "v1alpha1", "GuardPolicy", "guardpolicies"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    fn config(self) -> watcher::Config {
        // A page of Applications is held as text for a moment; the default of 500 may be tens of megabytes.
        let config = watcher::Config::default().page_size(100);
        match self {
            Self::Settings => config.fields(&format!("metadata.name={SETTINGS_NAME}")),
            Self::Policy => config.fields(&format!("metadata.name={POLICY_NAME}")),
            Self::ClusterSecrets => config.labels(&format!("{}={}", SECRET_TYPE.0, SECRET_TYPE.1)),
            _ => config,
        }
    }

    fn api<const ONLY_METADATA: bool>(self, client: Client, scope: &Scope) -> Api<Watched<ONLY_METADATA>> {
        match self {
            // The right to read Secrets everywhere would be far too much.
            Self::ClusterSecrets => Api::namespaced_with(client, &scope.argocd, &self.resource()),
            _ => Api::all_with(client, &self.resource()),
        }
    }

    /// The part of the scope that makes this watch begin anew when it changes.
    fn part_of(self, scope: &Scope) -> Scope {
        match self {
            Self::Applications => scope.clone(),
            Self::ApplicationSets | Self::Projects | Self::Policy => {
                Scope { generation: scope.generation, ..Scope::default() }
            }
            Self::ClusterSecrets => Scope { argocd: scope.argocd.clone(), ..Scope::default() },
            Self::Namespaces | Self::Settings | Self::Definitions => Scope::default(),
        }
    }
}

/// What of the policy and of the cluster decides what the watches are to deliver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    /// Namespace of the Argo CD controllers.
    pub(super) argocd: String,
    /// Namespaces that may hold Applications.
    pub(super) applications: Vec<String>,
    /// Counts changes of the kinds that the API server serves.
    pub(super) generation: u64,
}

impl Scope {
    pub(super) fn of(policy: &Policy, generation: u64) -> Self {
        let argocd = &policy.spec.argocd;
        Self { argocd: argocd.namespace.clone(), applications: argocd.application_namespaces.clone(), generation }
    }
}

/// How far a watch has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not been tried yet.
    Pending,
    /// Everything was listed once.
    Synced,
    /// The API server serves no such kind: there is nothing to list.
    Absent,
    /// It was tried in vain, for this reason.
    Failed(String),
}

/// How far every watch has come.
pub(super) type States = Sender<BTreeMap<Watch, State>>;

/// Follows one watch for ever.
pub(super) struct Follower {
    pub(super) watch: Watch,
    pub(super) client: Client,
    pub(super) scope: Receiver<Scope>,
    pub(super) feed: Box<dyn Feed>,
    pub(super) states: Arc<States>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) health: Arc<Health>,
    pub(super) trouble: Option<String>,
}

impl Follower {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        if self.watch.only_metadata() { self.follow::<true>().await } else { self.follow::<false>().await }
    }

    async fn follow<const ONLY_METADATA: bool>(mut self) -> anyhow::Result<()> {
        loop {
            let scope = self.scope.borrow_and_update().clone();
            let (mine, api) =
                (self.watch.part_of(&scope), self.watch.api::<ONLY_METADATA>(self.client.clone(), &scope));
            let mut events = pin!(watcher(api, self.watch.config()).default_backoff());
            let mut listed = Names::new();
            loop {
                tokio::select! {
                    event = events.next() => match event {
                        Some(event) => self.take(event, &mut listed),
                        None => anyhow::bail!("the watch of {} ended", self.watch.what()),
                    },
                    changed = self.scope.changed() => {
                        changed?;
                        if self.watch.part_of(&self.scope.borrow_and_update()) != mine {
                            break;
                        }
                    }
                }
            }
        }
    }

    fn take<const ONLY_METADATA: bool>(
        &mut self,
        event: watcher::Result<Event<Watched<ONLY_METADATA>>>,
        listed: &mut Names,
    ) {
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.failed(&error),
        };
        match event {
            Event::Init => {
                listed.clear();
                return;
            }
            Event::InitApply(object) => {
                self.feed.apply(object.namespace(), object.name(), object.json());
                listed.insert((object.namespace().to_owned(), object.name().to_owned()));
            }
            Event::InitDone => {
                // What the fresh list leaves out is gone.
                self.feed.retain(listed);
                listed.clear();
                self.reached(State::Synced);
            }
            Event::Apply(object) => self.feed.apply(object.namespace(), object.name(), object.json()),
            Event::Delete(object) => self.feed.remove(object.namespace(), object.name()),
        }
        self.metrics.set_last_event(Timestamp::now());
        self.health.delivers(self.watch);
        if self.trouble.take().is_some() {
            tracing::info!(watch = self.watch.what(), "watching again");
        }
    }

    fn failed(&mut self, error: &watcher::Error) {
        let reason = describe(error);
        let absent = matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404);
        if absent && !self.is_synced() {
            if self.trouble.as_ref() != Some(&reason) {
                tracing::warn!(watch = self.watch.what(), "the API server serves no such kind; there are none");
                self.trouble = Some(reason);
            }
            self.feed.retain(&Names::new());
            return self.reached(State::Absent);
        }
        // What was listed once stays as it was; only an absence that lasts from the beginning means that there is none.
        if self.trouble.as_ref() != Some(&reason) {
            tracing::warn!(watch = self.watch.what(), reason, "cannot watch; trying again");
            self.trouble = Some(reason.clone());
        }
        if self.is_synced() {
            self.health.fails(self.watch, reason, Timestamp::now());
        } else {
            self.reached(State::Failed(reason));
        }
    }

    fn is_synced(&self) -> bool {
        self.states.borrow().get(&self.watch) == Some(&State::Synced)
    }

    fn reached(&self, state: State) {
        self.states.send_if_modified(|states| {
            let changed = states.get(&self.watch) != Some(&state);
            if changed {
                states.insert(self.watch, state);
            }
            changed
        });
    }
}

fn describe(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error) => format!("the list failed: {}", in_words(error)),
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            format!("the watch failed: {}", in_words(error))
        }
        watcher::Error::WatchError(status) => format!("the watch failed with {}: {}", status.code, status.message),
        watcher::Error::NoResourceVersion => "the API server gave no resource version".to_owned(),
    }
}
