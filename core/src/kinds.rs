//! Kinds that are known by name, and which of their deletes the API server sends.
//!
//! `manifests/webhooks.yaml` says the same to the API server. A test compares the two, so a kind that is sent is written
//! there and here and nowhere else.

use crate::object::{ARGO_GROUP, GroupKind, ObjectRef, RBAC_GROUP};

/// What the guard hears of the deletes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletes {
    /// Nothing: they are seen only where they go with something else.
    NotSent,
    /// Those of objects with a certain label.
    SomeSent,
    /// Each of them is sent.
    Sent,
    /// Each of them is sent, and nobody brings back what goes with it: none may pass while the guard does not answer.
    Final,
}

/// One kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Kind, as in a manifest.
    pub kind: &'static str,
    /// Plural, as in a path, a right and an audit event.
    pub plural: &'static str,
    /// Whether its deletes are sent.
    pub deletes: Deletes,
}

const fn kind(group: &'static str, kind: &'static str, plural: &'static str, deletes: Deletes) -> Kind {
    Kind { group, kind, plural, deletes }
}

/// Every kind whose deletes are sent, and others that recordings are likely to hold.
pub static KINDS: &[Kind] = &[
    kind(ARGO_GROUP, "Application", "applications", Deletes::Final),
    kind(ARGO_GROUP, "ApplicationSet", "applicationsets", Deletes::Final),
    kind(ARGO_GROUP, "AppProject", "appprojects", Deletes::Sent),
    kind("", "Namespace", "namespaces", Deletes::Final),
    kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", Deletes::Final),
    kind("", "ServiceAccount", "serviceaccounts", Deletes::Sent),
    kind(RBAC_GROUP, "Role", "roles", Deletes::Sent),
    kind(RBAC_GROUP, "RoleBinding", "rolebindings", Deletes::Sent),
    kind(RBAC_GROUP, "ClusterRole", "clusterroles", Deletes::Sent),
    kind(RBAC_GROUP, "ClusterRoleBinding", "clusterrolebindings", Deletes::Sent),
    kind("cascade-guard.io", "GuardPolicy", "guardpolicies", Deletes::Sent),
    kind("", "ConfigMap", "configmaps", Deletes::NotSent),
    kind("", "Secret", "secrets", Deletes::SomeSent),
    kind("apps", "Deployment", "deployments", Deletes::NotSent),
    kind("apps", "StatefulSet", "statefulsets", Deletes::NotSent),
    kind("batch", "Job", "jobs", Deletes::NotSent),
    kind("networking.k8s.io", "Ingress", "ingresses", Deletes::NotSent),
    kind("", "Service", "services", Deletes::NotSent),
    kind("", "PersistentVolumeClaim", "persistentvolumeclaims", Deletes::NotSent),
    kind("", "Pod", "pods", Deletes::NotSent),
];

/// Whether the API server asks about the delete of this object, whatever its labels.
pub fn is_sent(object: &ObjectRef) -> bool {
    let always = |deletes| matches!(deletes, Deletes::Sent | Deletes::Final);
    KINDS.iter().any(|kind| always(kind.deletes) && object.kind.is(kind.group, kind.kind))
}

/// Whether nobody brings back what goes with an object of this plural.
pub fn is_final(plural: &str) -> bool {
    KINDS.iter().any(|kind| kind.deletes == Deletes::Final && kind.plural == plural)
}

/// The kind behind a plural, which is all that an audit event names; the plural itself where it is not known. Other groups
/// have kinds of these plurals too, such as an old `extensions`.
pub fn singular(group: &str, plural: &str) -> GroupKind {
    let known = KINDS.iter().find(|kind| kind.plural == plural);
    GroupKind::new(group, known.map_or(plural, |kind| kind.kind))
}

/// The Namespace that the guard lives in.
pub const OWN_NAMESPACE: &str = "cascade-guard";
/// Name of the guard's webhook configuration, its ServiceAccount and most else that it ships with.
pub const OWN_NAME: &str = "cascade-guard";

/// The objects that give the guard the right to see what it judges by.
pub fn own_rights() -> [ObjectRef; 3] {
    let binding = |name: &str| ObjectRef::new(RBAC_GROUP, "ClusterRoleBinding", "", name);
    [ObjectRef::new("", "ServiceAccount", OWN_NAMESPACE, OWN_NAME), binding(OWN_NAME), binding("cascade-guard-reader")]
}

/// The object that tells the API server when to ask the guard.
pub fn own_configuration() -> ObjectRef {
    ObjectRef::new("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "", OWN_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_and_plural_mean_the_same() {
        for kind in KINDS {
            assert!(GroupKind::new(kind.group, kind.kind).is_meant_by(kind.plural), "{kind:?}");
            assert_eq!(singular(kind.group, kind.plural), GroupKind::new(kind.group, kind.kind));
        }
    }

    #[test]
    fn only_what_the_manifests_name_is_sent() {
        assert!(is_sent(&ObjectRef::new(RBAC_GROUP, "Role", "shop", "api")));
        assert!(!is_sent(&ObjectRef::new(ARGO_GROUP, "Rollout", "shop", "api")));
        assert!(is_final("namespaces") && !is_final("roles") && !is_final("pods"));
    }
}
