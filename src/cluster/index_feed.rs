//! Takes the objects that watches deliver into the inventory and the policy in force.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Notify;

use super::watch::Watch;
use crate::state::{LiveInventory, LivePolicy};
use cascade_guard_core::{
    argo::{
        Application, Clusters, Controller, ProjectSpec,
        config::{application_namespaces, cluster_secret, tracking_settings},
        partial,
    },
    inventory::{AppSet, Names, Project},
    object::ObjectMeta,
    policy::{Observed, Policy},
};

/// Takes in what a watch delivers.
pub(super) trait Feed: Send {
    /// An object is there, new or changed.
    fn apply(&mut self, namespace: &str, name: &str, json: &str);
    /// An object is gone.
    fn remove(&mut self, namespace: &str, name: &str);
    /// A whole list was delivered: what is not in it is gone.
    fn retain(&mut self, listed: &Names);
}

/// Metadata of an object; where it cannot be decoded, at least namespace and name.
fn metadata(watch: Watch, namespace: &str, name: &str, json: &str) -> ObjectMeta {
    match ObjectMeta::of(json) {
        Ok(meta) => meta,
        Err(error) => {
            not_decoded(watch, namespace, name, &error);
            ObjectMeta { namespace: namespace.to_owned(), name: name.to_owned(), ..ObjectMeta::default() }
        }
    }
}

/// Says where an object cannot be decoded. The error itself would quote from it.
fn not_decoded(watch: Watch, namespace: &str, name: &str, error: &serde_json::Error) {
    tracing::error!(
        watch = watch.what(),
        namespace,
        name,
        column = error.column(),
        "an object cannot be decoded; only parts of it are known"
    );
}

/// Objects that go into the inventory as they are.
pub(super) struct InventoryFeed {
    pub(super) watch: Watch,
    pub(super) inventory: Arc<LiveInventory>,
    pub(super) policy: Arc<LivePolicy>,
}

impl InventoryFeed {
    fn apply_application(&self, namespace: &str, name: &str, json: &str) {
        if !self.policy.load().watches_applications_in(namespace) {
            return self.inventory.write().remove_application(namespace, name);
        }
        // Decoded before the lock is taken, so that reviews do not wait for it.
        match serde_json::from_str::<Application<'_>>(json) {
            Ok(application) => self.inventory.write().apply_application(&application),
            Err(error) => {
                not_decoded(self.watch, namespace, name, &error);
                let part = partial(namespace, name, json);
                self.inventory.write().apply_unreadable(&part)
            }
        };
    }
}

impl Feed for InventoryFeed {
    fn apply(&mut self, namespace: &str, name: &str, json: &str) {
        let metadata = || metadata(self.watch, namespace, name, json);
        match self.watch {
            Watch::Applications => self.apply_application(namespace, name, json),
            Watch::ApplicationSets => {
                let set = AppSet::new(metadata(), json);
                self.inventory.write().apply_appset(set);
            }
            Watch::Projects => {
                let project = Project { meta: metadata(), spec: ProjectSpec::read(json).into() };
                self.inventory.write().apply_project(project);
            }
            Watch::Namespaces => {
                let metadata = metadata();
                self.inventory.write().apply_namespace(metadata);
            }
            Watch::Settings => {
                let settings = tracking_settings(json);
                self.inventory.write().set_settings(namespace, settings);
            }
            Watch::Parameters => {
                let served = application_namespaces(json);
                self.inventory.write().set_parameters(namespace, served);
            }
            Watch::Deployments | Watch::StatefulSets => {
                let controller = Controller::read(&metadata(), json);
                self.inventory.write().set_controller(&self.watch.kind().kind, namespace, name, controller);
            }
            Watch::ClusterSecrets | Watch::Definitions | Watch::Policy => {}
        }
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        let mut inventory = self.inventory.write();
        match self.watch {
            Watch::Applications => inventory.remove_application(namespace, name),
            Watch::ApplicationSets => inventory.remove_appset(namespace, name),
            Watch::Projects => inventory.remove_project(namespace, name),
            Watch::Namespaces => inventory.remove_namespace(name),
            Watch::Settings => inventory.set_settings(namespace, None),
            Watch::Parameters => inventory.set_parameters(namespace, None),
            Watch::Deployments | Watch::StatefulSets => {
                inventory.set_controller(&self.watch.kind().kind, namespace, name, None);
            }
            Watch::ClusterSecrets | Watch::Definitions | Watch::Policy => {}
        }
    }

    fn retain(&mut self, listed: &Names) {
        let mut inventory = self.inventory.write();
        match self.watch {
            Watch::Applications => inventory.retain_applications(listed),
            Watch::ApplicationSets => inventory.retain_appsets(listed),
            Watch::Projects => inventory.retain_projects(listed),
            Watch::Namespaces => inventory.retain_namespaces(listed),
            Watch::Settings => inventory.retain_settings(listed),
            Watch::Parameters => inventory.retain_parameters(listed),
            Watch::Deployments | Watch::StatefulSets => {
                inventory.retain_controllers(&self.watch.kind().kind, listed);
            }
            Watch::ClusterSecrets | Watch::Definitions | Watch::Policy => {}
        }
    }
}

/// Which names and URLs mean one cluster: by the policy, and by Argo CD's cluster Secrets.
pub(super) struct ClusterNames {
    pub(super) inventory: Arc<LiveInventory>,
    pub(super) policy: Arc<LivePolicy>,
    pub(super) secrets: Mutex<BTreeMap<(String, String), (String, String)>>,
}

impl ClusterNames {
    /// Puts what policy and Secrets say now into the inventory.
    pub(super) fn refresh(&self) {
        let policy = self.policy.load();
        let secrets = self.secrets.lock();
        let aliases = policy.spec.argocd.cluster_aliases.iter().map(|group| group.iter().map(String::as_str).collect());
        let clusters =
            Clusters::new(aliases.chain(secrets.values().map(|(name, server)| vec![name.as_str(), server.as_str()])));
        self.inventory.write().set_clusters(clusters);
    }
}

/// Cluster Secrets: of each, name and server are kept and nothing else.
pub(super) struct SecretFeed {
    pub(super) names: Arc<ClusterNames>,
    pub(super) complete: bool,
}

impl SecretFeed {
    fn refresh(&self) {
        // Claims move with every change; during a list it is enough to move them once at its end.
        if self.complete {
            self.names.refresh();
        }
    }
}

impl Feed for SecretFeed {
    fn apply(&mut self, namespace: &str, name: &str, json: &str) {
        let meta = metadata(Watch::ClusterSecrets, namespace, name, json);
        let place = (namespace.to_owned(), name.to_owned());
        match cluster_secret(&meta, json) {
            Some(cluster) => self.names.secrets.lock().insert(place, cluster),
            None => self.names.secrets.lock().remove(&place),
        };
        self.refresh();
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        self.names.secrets.lock().remove(&(namespace.to_owned(), name.to_owned()));
        self.refresh();
    }

    fn retain(&mut self, listed: &Names) {
        self.names.secrets.lock().retain(|place, _| listed.contains(place));
        self.complete = true;
        self.refresh();
    }
}

/// Definitions: that one changed is all that matters.
pub(super) struct DefinitionFeed(pub(super) Arc<Notify>);

impl Feed for DefinitionFeed {
    fn apply(&mut self, _: &str, _: &str, _: &str) {
        self.0.notify_one();
    }

    fn remove(&mut self, _: &str, _: &str) {
        self.0.notify_one();
    }

    fn retain(&mut self, _: &Names) {
        self.0.notify_one();
    }
}

/// The GuardPolicy that counts.
pub(super) struct PolicyFeed {
    pub(super) policy: Arc<LivePolicy>,
    /// UID and generation of the object that was looked at last; a change of its status is none of ours.
    pub(super) seen: Option<(String, i64)>,
}

const ORIGIN: &str = "GuardPolicy default";

impl Feed for PolicyFeed {
    fn apply(&mut self, _: &str, _: &str, json: &str) {
        #[derive(Deserialize, Default)]
        struct Head {
            #[serde(default)]
            metadata: Meta,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Meta {
            uid: String,
            generation: i64,
        }
        let Head { metadata } = serde_json::from_str(json).unwrap_or_default();
        let Meta { uid, generation } = metadata;
        let seen = Some((uid.clone(), generation));
        if self.seen != seen {
            self.seen = seen;
            let offered = Policy::from_object(json);
            let rejected = offered.as_ref().err().map(ToString::to_string);
            self.policy.offer(offered, ORIGIN);
            self.policy.observe(Some(Observed { uid, generation, rejected }));
        }
    }

    fn remove(&mut self, _: &str, _: &str) {
        if self.seen.take().is_some() {
            tracing::warn!("there is no GuardPolicy any more; every rule is in audit");
            self.policy.offer(Ok(Policy::default()), "no GuardPolicy");
            self.policy.observe(None);
        }
    }

    fn retain(&mut self, listed: &Names) {
        if listed.is_empty() {
            self.remove("", "");
        }
    }
}
