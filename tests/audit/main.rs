//! The commands `audit`, `plan`, `replay` and `policy explain` as a person or a pipeline runs them, and the audit page.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets a surprise should fail")]

mod browser;
mod cluster;
mod commands;
mod snapshots;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

const NOW: &str = "2026-11-29T12:00:00Z";

/// Runs the program.
fn guard(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cascade-guard")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A file in `folder` with this text.
fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn application(name: &str, resources: &[(&str, &str)]) -> Value {
    let resources: Vec<Value> = resources
        .iter()
        .map(|(kind, name)| {
            let group = if kind.starts_with("Role") { "rbac.authorization.k8s.io" } else { "" };
            json!({"group": group, "version": "v1", "kind": kind, "namespace": "streaming", "name": name, "status": "Synced"})
        })
        .collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "default", "source": {"repoURL": "r", "path": name}, "destination": {"namespace": "streaming", "server": "https://kubernetes.default.svc"}},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"}, "resources": resources},
    })
}

/// A cluster in which much is wrong: two Applications share RBAC, a Namespace is stuck, an Application is in error, an
/// approval has expired.
fn troubled() -> String {
    let tracked = |kind: &str, name: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "streaming",
            "annotations": {"argocd.argoproj.io/tracking-id": format!("flink-old:rbac.authorization.k8s.io/{kind}:streaming/{name}")}}})
    };
    let shared =
        [("ServiceAccount", "flink"), ("Role", "flink-leader-election"), ("RoleBinding", "flink-leader-election")];
    let mut third = application("metrics", &[("Role", "flink-leader-election"), ("ConfigMap", "dashboards")]);
    third["status"]["conditions"] = json!([{"type": "ComparisonError", "message": "repository not found", "lastTransitionTime": "2026-11-27T08:00:00Z"}]);
    let items = vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": {}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "streaming", "uid": "u1"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old-shop", "uid": "u2", "annotations": {
            "cascade-guard.io/deletion-approved-by": "alice", "cascade-guard.io/deletion-approved-until": "2026-11-29T10:00:00Z",
            "cascade-guard.io/deletion-approved-uid": "u2"}}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ingress-test", "uid": "u3", "deletionTimestamp": "2026-11-24T07:12:00Z"},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating", "conditions": [{"type": "NamespaceFinalizersRemaining",
            "status": "True", "reason": "SomeFinalizersRemain", "message": "Some content in the namespace has finalizers remaining: ingress.k8s.aws/resources in 1 resource instances"}]}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "front", "namespace": "ingress-test",
            "deletionTimestamp": "2026-11-24T07:12:01Z", "finalizers": ["ingress.k8s.aws/resources"]}}),
        tracked("Role", "flink-leader-election"),
        tracked("RoleBinding", "flink-leader-election"),
        application("flink-old", &shared),
        application("flink-new", &shared),
        third,
    ];
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}
