//! Objects and reviews.

use serde_json::{Value, json};

/// A Namespace that somebody honest tries to delete meanwhile.
pub const BYSTANDER: &str = "bystander";

/// Every rule refuses.
pub fn policy() -> Value {
    let enforce = json!({"mode": "enforce"});
    json!({"apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": "default"},
        "spec": {"rules": {
            "sharedClaim": enforce, "sharedUpdate": enforce, "namespaceApproval": enforce, "syncWave": enforce,
            "runtimeDependency": enforce, "controlPlane": enforce}}})
}

/// A Namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": format!("n-{name}")},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})
}

/// What every world needs: Argo CD's Namespace and settings, and somebody else's Namespace.
pub fn base() -> Vec<Value> {
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd", "uid": "cm"}, "data": {}});
    vec![namespace("argocd"), namespace(BYSTANDER), settings]
}

/// One entry of an Application's list.
pub fn entry(group: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({"group": group, "version": "v1", "kind": kind, "namespace": namespace, "name": name, "status": "Synced"})
}

/// An Application that was synced, whose deletion cascades, with this list.
pub fn application(name: &str, resources: &[Value]) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": format!("a-{name}"),
            "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example.com/r.git", "path": name},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "team"}},
        "status": {"reconciledAt": "2026-11-29T17:00:00Z", "sync": {"status": "Synced"}, "resources": resources}})
}

/// A review as the API server sends it.
pub fn review(operation: &str, user: &str, object: Option<&Value>, old: Option<&Value>) -> Value {
    let some = object.or(old).unwrap_or(&Value::Null);
    let (group, version) = some["apiVersion"].as_str().unwrap_or_default().rsplit_once('/').unwrap_or(("", "v1"));
    let kind = some["kind"].as_str().unwrap_or_default();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
        "operation": operation, "name": some["metadata"]["name"], "namespace": some["metadata"]["namespace"],
        "object": object, "oldObject": old, "dryRun": true, "options": null,
        "userInfo": {"username": user, "groups": ["system:authenticated"]}}})
}
