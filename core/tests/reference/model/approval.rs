//! Approvals of Namespaces, and what keeps the control plane.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Cluster, DEFINITIONS, Item, Key, Model, plan::is_project, projects::project_of};
use crate::json::{annotation, list, terminating, text, truth};

impl Model<'_> {
    /// "Valid at DELETE: all present, uid equal, until in the future and no more than maxTTL away, and with `fourEyes` the
    /// deleter is another user than the approver."
    pub(super) fn is_approved(&self, namespace: &Value, user: &str, at: Timestamp) -> bool {
        let said = |key: &str| annotation(namespace, &format!("cascade-guard.io/deletion-{key}"));
        let rule = &self.policy["rules"]["namespaceApproval"];
        let (by, uid) = (said("approved-by"), said("approved-uid"));
        let Ok(until) = said("approved-until").parse::<Timestamp>() else { return false };
        let max_ttl = SignedDuration::from_hours(24);
        !by.is_empty()
            && !uid.is_empty()
            && uid == text(namespace, "/metadata/uid")
            && until > at
            && until.duration_since(at) <= max_ttl
            && !(truth(rule, "/requireReason") && said("reason").trim().is_empty())
            && !(truth(rule, "/fourEyes") && by == user)
    }

    /// Whether a Namespace of a plan goes without an approval. "A Namespace on another cluster: a warning, that cluster's
    /// own webhook decides."
    pub(super) fn lacks_approval(&self, item: &Item, is_root: bool, below: bool, user: &str, at: Timestamp) -> bool {
        if !item.1.is_namespace() || item.0 != Cluster::This {
            return false;
        }
        match self.live(item) {
            Some(live) if terminating(live) && !is_root => false,
            Some(live) => !self.is_approved(live, user, at),
            // "Nothing is ever stranded": what is gone below an admitted cascade was taken by it.
            None => !below,
        }
    }

    /// "The CRDs of Application, ApplicationSet and AppProject while an instance exists"
    pub(super) fn holds_the_control_plane(&self, key: &Key, definition: &Value) -> bool {
        let kinds = [("argoproj.io", "Application"), ("argoproj.io", "ApplicationSet"), ("argoproj.io", "AppProject")];
        let defined = (text(definition, "/spec/group"), text(definition, "/spec/names/kind"));
        key.is(DEFINITIONS, "CustomResourceDefinition")
            && kinds.contains(&defined)
            && self.objects.keys().any(|key| key.is(defined.0, defined.1))
    }

    /// "AppProjects that Applications outside the plan still use (those with their own finalizer wait for them and pass)"
    pub(super) fn users_of_project(&self, item: &Item, outside: impl Fn(&Value) -> bool) -> Vec<&Value> {
        let Some(live) = self.live(item).filter(|_| is_project(&item.1)) else { return Vec::new() };
        if !list(live, "/metadata/finalizers").is_empty() {
            return Vec::new();
        }
        let uses = |app: &&Value| {
            project_of(app) == item.1.name && self.installation_of(app) == Some(item.1.namespace.as_str())
        };
        self.apps().filter(uses).filter(|app| outside(app)).collect()
    }

    /// "the namespaces Argo CD and its Applications live in"
    pub(super) fn is_lived_in(&self, name: &str) -> bool {
        self.installations().contains(name) || self.apps().any(|app| text(app, "/metadata/namespace") == name)
    }
}
