//! Judging a review through the library.

use std::path::PathBuf;

use cascade_guard_core::{
    admission::{self, Response},
    decision::{Decision, render},
    deletion::Fate,
    inventory::Inventory,
    judge::{Case, judge_at_hand},
    policy::{GuardPolicySpec, Policy},
    snapshot::Snapshot,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The folder of the repository: both crates use what lies there.
pub fn repository() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|folder| folder.join("Cargo.lock").exists()).unwrap().to_owned()
}

/// Folder with the data of the tests.
pub fn data(folder: &str) -> PathBuf {
    repository().join("tests/data").join(folder)
}

/// Files of a folder whose names end in `suffix`, in order.
pub fn files(folder: &str, suffix: &str) -> Vec<PathBuf> {
    // Further cases can be judged without copying them here first.
    let folder = std::env::var_os("CASCADE_GUARD_CASES")
        .filter(|_| folder == "cases")
        .map_or_else(|| data(folder), PathBuf::from);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no {suffix} in {}", folder.display());
    files
}

/// A world made of these objects.
pub fn snapshot(objects: &[Value]) -> Snapshot {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    Snapshot::parse("world", list.to_string()).unwrap()
}

/// A policy from the JSON of its spec.
pub fn policy(spec: Value) -> Policy {
    Policy::new(serde_json::from_value::<GuardPolicySpec>(spec).unwrap()).unwrap()
}

/// A request as the webhook gets it.
pub fn body_of(request: &Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

/// Judges one request.
pub fn review(
    request: &Value,
    snapshot: &Snapshot,
    inventory: &Inventory,
    policy: &Policy,
    now: Timestamp,
) -> Response {
    let body = body_of(request);
    let decision = decide(request, snapshot, inventory, policy, now);
    render(&decision, &admission::decode(body.as_bytes()).unwrap())
}

/// The answer to a request while the inventory may be out of date.
pub fn review_while_stale(
    request: &Value,
    snapshot: &Snapshot,
    inventory: &Inventory,
    policy: &Policy,
    now: Timestamp,
    why: &str,
) -> Response {
    let body = body_of(request);
    let request = admission::decode(body.as_bytes()).unwrap();
    let case = Case { stale: Some(why), ..Case::new(&request, policy, now) };
    render(&judge_at_hand(case, inventory, snapshot).decision, &request)
}

/// What becomes of one request, before it is put into words.
pub fn decide(
    request: &Value,
    snapshot: &Snapshot,
    inventory: &Inventory,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    let body = body_of(request);
    let request = admission::decode(body.as_bytes()).unwrap();
    judge_at_hand(Case::new(&request, policy, now), inventory, snapshot).decision
}

/// Message and warnings, in lower case.
pub fn said(response: &Response) -> String {
    format!("{}\n{}", response.message, response.warnings.join("\n")).to_lowercase()
}

/// Judges the DELETE of a stored object and returns the fate of everything it takes.
pub fn fates(
    request: &Value,
    snapshot: &Snapshot,
    inventory: &Inventory,
    policy: &Policy,
    now: Timestamp,
) -> Vec<(String, &'static str)> {
    let body = body_of(request);
    let request = admission::decode(body.as_bytes()).unwrap();
    let case = Case { thorough: true, ..Case::new(&request, policy, now) };
    let plan = judge_at_hand(case, inventory, snapshot).deletion.unwrap().plan;
    plan.items
        .iter()
        .map(|item| {
            let object = item.object.clone().unwrap();
            let group = if object.kind.group.is_empty() { "core" } else { &object.kind.group };
            let fate = match (&item.fate, item.is_contested()) {
                (Fate::Spared(_), _) => "spared",
                (_, true) => "contested",
                _ => "deleted",
            };
            // The recordings write a Namespace with its own name as its namespace, as the API server does.
            let namespace = if object.is_namespace() { &object.name } else { &object.namespace };
            (format!("{group}/{}/{namespace}/{}", object.kind.kind, object.name), fate)
        })
        .collect()
}
