//! What Argo CD and Kubernetes delete because something else was deleted. From the facts about them, not from a guard.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Cluster, Key, Model,
    lists::{cascades, is_running, owners, sync_option},
};
use crate::{
    json::{annotation, list, terminating, text},
    worlds::{COLLECTOR, CONTROLLER, NAMESPACE_CONTROLLER},
};

/// What was deleted, with the uid it had.
pub type Begun = BTreeMap<Key, String>;

impl Model<'_> {
    /// The DELETEs that come next, each with the user that sends it.
    pub fn followers(&self, begun: &Begun) -> Vec<(Key, &'static str)> {
        let mut next = Vec::new();
        for (key, uid) in begun {
            match self.objects.get(key) {
                Some(app) if key.is_application() && terminating(app) => {
                    next.extend(self.cascade_of(app).into_iter().map(|key| (key, CONTROLLER)));
                }
                // "the content goes by DELETEs of the namespace controller"
                Some(_) if key.is_namespace() => {
                    let inside = self.objects.keys().filter(|inside| inside.namespace == key.name);
                    next.extend(inside.map(|inside| (inside.clone(), NAMESPACE_CONTROLLER)));
                }
                // "it vanishes, kube GC deletes the Apps"
                None if key.is_set() => {
                    let owned = |app: &&Value| {
                        let mut owners = owners(app).into_iter();
                        text(app, "/metadata/namespace") == key.namespace
                            && owners.any(|owner| owner.1 == key.kind && owner.2 == key.name && owner.3 == uid)
                    };
                    next.extend(self.apps().filter(owned).map(|app| (self.key_of(app), COLLECTOR)));
                }
                _ => {}
            }
        }
        next.retain(|(key, _)| !terminating(self.objects[key]));
        next
    }

    /// What a terminating Application deletes on this cluster: what carries its marker, is not owned and not kept. "While a
    /// sync operation runs, a deleted Application waits".
    fn cascade_of(&self, app: &Value) -> Vec<Key> {
        if !cascades(app) || is_running(app) || self.cluster_of(app) != Cluster::This {
            return Vec::new();
        }
        let goes = |key: &Key, object: &Value| {
            *key != self.key_of(app)
                && !key.is_definition()
                && self.is_marked_by(object, app)
                && owners(object).is_empty()
                && sync_option("Delete", object, Some(app)) != "false"
                && annotation(object, "helm.sh/resource-policy") != "keep"
        };
        self.objects.iter().filter(|(key, object)| goes(key, object)).map(|(key, _)| key.clone()).collect()
    }

    /// Whether a deletion that was begun waits for nothing any more.
    pub fn is_over(&self, key: &Key, begun: &Begun) -> bool {
        let Some(object) = self.objects.get(key).filter(|object| terminating(object)) else { return false };
        let alone = Begun::from([(key.clone(), begun[key].clone())]);
        let waits_for_own = || {
            let own = |other: &Key| begun.contains_key(other) && other != key;
            self.objects.iter().any(|(other, live)| own(other) && terminating(live) && self.is_marked_by(live, object))
        };
        let waits = match () {
            () if key.is_set() => true,
            () if key.is_namespace() => self.objects.keys().any(|inside| inside.namespace == key.name),
            () => key.is_application() && cascades(object) && (is_running(object) || waits_for_own()),
        };
        !waits && self.followers(&alone).is_empty()
    }

    /// Whether something stays in sight, being deleted, until its deletion is over.
    pub fn lingers(&self, key: &Key) -> bool {
        key.is_namespace() || !list(self.objects[key], "/metadata/finalizers").is_empty()
    }
}
