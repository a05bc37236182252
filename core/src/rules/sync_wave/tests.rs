//! The rule as a webhook meets it: a snapshot for a cluster, a review in, findings out.

mod change;
mod deletion;
mod home;
mod order;
mod syntax;

use serde_json::{Value, json};

use crate::{
    admission::decode,
    decision::{Decision, Severity},
    judge::{Case, judge_at_hand},
    policy::{GuardPolicySpec, Policy},
    snapshot::Snapshot,
};

/// An Application `shop` that lists the given entries.
fn app(entries: &str) -> String {
    format!(
        "
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: shop, namespace: argocd}}
spec:
  source: {{repoURL: r, path: shop}}
  destination: {{server: 'https://kubernetes.default.svc', namespace: shop}}
status:
  sync: {{status: OutOfSync}}
  resources: [{entries}]
"
    )
}

fn entry(kind: &str, name: &str, wave: i64) -> String {
    let group = match kind {
        "Deployment" => "apps",
        "ExternalSecret" => "external-secrets.io",
        "PriorityClass" => "scheduling.k8s.io",
        "Role" => "rbac.authorization.k8s.io",
        _ => "",
    };
    let namespace = if kind == "PriorityClass" { "" } else { "shop" };
    format!(
        "{{group: '{group}', kind: {kind}, namespace: '{namespace}', name: {name}, status: OutOfSync, syncWave: {wave}}}"
    )
}

fn object(kind: &str, name: &str, more: &str) -> String {
    format!("---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop{more}}}\n")
}

/// A hook Job that needs what `spec` says.
fn job(annotations: &[(&str, &str)], spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "migrate", "namespace": "shop", "annotations": {
            "argocd.argoproj.io/tracking-id": "shop:batch/Job:shop/migrate"}},
        "spec": {"activeDeadlineSeconds": 60, "template": {"spec": spec}},
    });
    for (key, value) in annotations {
        let key = match *key {
            "hook" | "sync-wave" | "hook-delete-policy" => format!("argocd.argoproj.io/{key}"),
            other => format!("helm.sh/{}", other.trim_start_matches("helm-")),
        };
        object["metadata"]["annotations"][key] = json!(value);
    }
    object
}

fn secret(name: &str) -> Value {
    json!({"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": name}}]}]})
}

fn decide(world: &str, policy: &str, object: Option<&Value>, old: Option<&Value>) -> Decision {
    let some = object.or(old).unwrap();
    let (group, _) = some["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", ""));
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": group, "version": "v1", "kind": some["kind"]},
        "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "name": some["metadata"]["name"], "namespace": "shop", "object": object, "oldObject": old,
        "userInfo": {"username": "alice"}}})
    .to_string();
    let request = decode(body.as_bytes()).unwrap();
    let snapshot = Snapshot::parse("world", world.to_owned()).unwrap();
    let spec: GuardPolicySpec = serde_saphyr::from_str(policy).unwrap();
    let policy = Policy::new(spec).unwrap();
    let inventory = snapshot.inventory(&policy, (1, 2));
    let now = "2026-11-29T12:00:00Z".parse().unwrap();
    judge_at_hand(Case::new(&request, &policy, now), &inventory, &snapshot).decision
}

const ENFORCE: &str = "rules: {syncWave: {mode: enforce}}";

fn said(decision: &Decision) -> Vec<String> {
    let line = |finding: &crate::decision::Finding| {
        let severity = if finding.severity == Severity::Deny { "deny" } else { "warn" };
        format!("{severity} {}", finding.check.id)
    };
    decision.outcomes.iter().map(|outcome| line(&outcome.finding)).collect()
}

fn create(world: &str, object: &Value) -> Vec<String> {
    said(&decide(world, ENFORCE, Some(object), None))
}

fn update(world: &str, old: &Value, new: &Value) -> Vec<String> {
    said(&decide(world, ENFORCE, Some(new), Some(old)))
}

const NOTHING: [&str; 0] = [];
