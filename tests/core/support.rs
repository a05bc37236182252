//! Judging a review through the library, as the command line does.

use std::{path::PathBuf, time::Duration};

use cascade_guard::{
    admission::{self, Response},
    audit::{self, Document, Options, World},
    decision::{Decision, render},
    inventory::Inventory,
    judge::judge,
    policy::{GuardPolicySpec, Policy},
    snapshot::Snapshot,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Folder with the data of the tests.
pub fn data(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder)
}

/// Files of a folder whose names end in `suffix`, in order.
pub fn files(folder: &str, suffix: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(data(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no {suffix} in {folder}");
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
    futures::executor::block_on(judge(&request, inventory, policy, snapshot, now, || Duration::from_secs(60)))
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
    let (_, deletion) =
        futures::executor::block_on(cascade_guard::cli::plan::examine(&request, inventory, policy, snapshot, now));
    let plan = deletion.unwrap().plan;
    plan.items
        .iter()
        .map(|item| {
            let object = item.object.clone().unwrap();
            let group = if object.kind.group.is_empty() { "core" } else { &object.kind.group };
            let fate = match (&item.fate, item.is_contested()) {
                (cascade_guard::plan::Fate::Spared(_), _) => "spared",
                (_, true) => "contested",
                _ => "deleted",
            };
            // The recordings write a Namespace with its own name as its namespace, as the API server does.
            let namespace = if object.is_namespace() { &object.name } else { &object.namespace };
            (format!("{group}/{}/{namespace}/{}", object.kind.kind, object.name), fate)
        })
        .collect()
}

/// Audits the objects of a snapshot.
pub fn audit(snapshot: &Snapshot, policy: &Policy, now: Timestamp) -> Document {
    let inventory = snapshot.inventory(policy, (7, 8));
    let objects = snapshot.subjects();
    let world = World { view: &inventory, source: snapshot, policy, now, objects: &objects };
    let found = futures::executor::block_on(audit::scan(&world, &Options::default(), &|_| {}));
    Document::new(found, now, None)
}
