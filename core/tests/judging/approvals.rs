//! Approvals: what lets a Namespace go, and that nobody lets it go who may not.

use std::collections::BTreeMap;

use cascade_guard_core::policy::Policy;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    support::{policy, review, said, snapshot},
    world::*,
};

const UID: &str = "uid-shop";

fn shop(annotations: Value) -> Value {
    let shop = with(object("Namespace shop", "old"), "/spec", json!({"finalizers": ["kubernetes"]}));
    let mut shop = with(shop, "/metadata/labels", json!({"kubernetes.io/metadata.name": "shop"}));
    for (key, value) in annotations.as_object().unwrap() {
        shop["metadata"]["annotations"][format!("cascade-guard.io/{key}")] = value.clone();
    }
    shop
}

fn until(time: &str) -> Value {
    shop(json!({"deletion-approved-by": "alice", "deletion-approved-uid": UID, "deletion-approved-until": time}))
}

#[test]
fn below_a_cascade_an_approval_counts_from_its_start_or_from_now() {
    let old = with(app("old", &["Namespace shop"]), "/metadata/deletionTimestamp", "2026-11-29T10:00:00Z");
    let judge = |namespace: Value| World::new([old.clone(), namespace]).delete("Namespace shop", CONTROLLER);
    // It ended half-way.
    passes(&judge(until("2026-11-29T11:00:00Z")));
    // It was written at noon for a whole day, because the cascade had come to rest here.
    passes(&judge(until("2026-11-30T12:00:00Z")));
    refused(&judge(until("2026-11-29T09:00:00Z")), &["expired"]);
    refused(&judge(until("2026-12-05T12:00:00Z")), &["too far ahead"]);
    // Without a cascade only now counts.
    refused(
        &World::new([app("old", &["Namespace shop"]), until("2026-11-29T11:00:00Z")])
            .delete("Namespace shop", CONTROLLER),
        &["expired"],
    );
}

/// One write: labels and annotations set (or taken away), through the object or a subresource.
#[derive(Clone, Debug)]
struct Write {
    user: usize,
    labels: BTreeMap<usize, Option<usize>>,
    annotations: BTreeMap<usize, Option<usize>>,
    empties_finalizers: bool,
    through: usize,
}

/// Who writes. None of them may approve, and none may break the glass.
const WRITERS: [&str; 3] = ["mallory", CONTROLLER, SERVER];
const THROUGH: [&str; 3] = ["", "status", "finalize"];
const LABELS: [(&str, [&str; 2]); 3] = [("tier", ["preview", "x"]), ("exempt", ["yes", ""]), ("team", ["a", "b"])];
const ANNOTATIONS: [(&str, [&str; 4]); 6] = [
    ("cascade-guard.io/deletion-approved-by", ["alice", "mallory", CONTROLLER, ""]),
    (
        "cascade-guard.io/deletion-approved-until",
        ["2026-11-29T20:00:00Z", "2026-11-30T12:00:00Z", "2027-11-29T12:00:00Z", "x"],
    ),
    ("cascade-guard.io/deletion-approved-uid", [UID, "uid-other", "", " uid-shop "]),
    ("cascade-guard.io/deletion-reason", ["CHG-1", "", " ", "x"]),
    ("cascade-guard.io/break-glass", ["fire", "", " ", "x"]),
    ("argocd.argoproj.io/sync-options", ["Delete=false", "Prune=false", "", "x"]),
];

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let labels = prop::collection::btree_map(0..LABELS.len(), prop::option::weighted(0.8, 0..2usize), 0..3);
    let annotations = prop::collection::btree_map(0..ANNOTATIONS.len(), prop::option::weighted(0.8, 0..4usize), 0..5);
    let write = (0..WRITERS.len(), labels, annotations, any::<bool>(), 0..THROUGH.len()).prop_map(
        |(user, labels, annotations, empties_finalizers, through)| Write {
            user,
            labels,
            annotations,
            empties_finalizers,
            through,
        },
    );
    prop::collection::vec(write, 1..8)
}

/// Approvals that do not count at [`NOW`], each for another reason.
fn unapproved() -> impl Strategy<Value = Value> {
    let approval = |by: &str, until: &str, uid: &str, reason: &str| {
        shop(json!({"deletion-approved-by": by, "deletion-approved-until": until, "deletion-approved-uid": uid,
            "deletion-reason": reason}))
    };
    let good = "2026-11-29T20:00:00Z";
    prop::sample::select(vec![
        shop(json!({})),
        approval("alice", "2026-11-29T11:00:00Z", UID, "CHG-1"),
        approval("alice", "2027-11-29T11:00:00Z", UID, "CHG-1"),
        approval("alice", "tomorrow", UID, "CHG-1"),
        approval("alice", good, "uid-before", "CHG-1"),
        approval("alice", good, UID, " "),
        approval("", good, UID, "CHG-1"),
        shop(json!({"deletion-approved-by": "alice", "deletion-approved-until": good, "deletion-reason": "CHG-1"})),
    ])
}

impl Write {
    /// What the API server would store: a writer changes neither identity nor deletion, and through a subresource
    /// metadata can be written too.
    fn on(&self, old: &Value) -> Value {
        let mut new = old.clone();
        let mut set = |place: &str, key: &str, value: Option<&str>| {
            let map = new["metadata"][place].as_object_mut().unwrap();
            match value {
                Some(value) => map.insert(key.to_owned(), json!(value)),
                None => map.remove(key),
            };
        };
        for (key, value) in &self.labels {
            let (key, values) = LABELS[*key];
            set("labels", key, value.map(|value| values[value]));
        }
        for (key, value) in &self.annotations {
            let (key, values) = ANNOTATIONS[*key];
            set("annotations", key, value.map(|value| values[value]));
        }
        if self.empties_finalizers && THROUGH[self.through] == "finalize" {
            new["spec"]["finalizers"] = json!([]);
        }
        new
    }
}

/// Everything that could be opened by a label, an annotation or a group is there.
fn tempting() -> Policy {
    let enforce = json!({"mode": "enforce"});
    policy(json!({
        "rules": {"sharedClaim": enforce, "namespaceApproval": {"mode": "enforce", "requireReason": true}},
        "overrides": [{"match": {"namespaces": ["shop"], "namespaceSelector": {"matchLabels": {"tier": "preview"}}},
            "modes": {"namespaceApproval": "off"}}],
        "exemptions": [{"name": "e", "match": {"namespaces": ["sh*"], "namespaceSelector": {"matchLabels": {"exempt": "yes"}}},
            "rules": ["namespaceApproval"], "until": "2027-01-01T00:00:00Z", "reason": "test"}],
        "breakGlass": {"groups": ["oncall"]},
    }))
}

/// A cluster in which alice, and nobody else, may approve.
fn cluster(namespace: &Value) -> Vec<Value> {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let role = with(
        object(&format!("{RBAC}/ClusterRole approvers"), ""),
        "/rules",
        json!([{"apiGroups": ["cascade-guard.io"], "resources": ["namespacedeletions"], "verbs": ["approve"]}]),
    );
    let binding = with(
        object(&format!("{RBAC}/ClusterRoleBinding approvers"), ""),
        "/roleRef",
        json!({"kind": "ClusterRole", "name": "approvers"}),
    );
    let binding = with(binding, "/subjects", json!([{"kind": "User", "name": "alice"}]));
    vec![namespace.clone(), app("old", &["Namespace shop"]), role, binding]
}

fn request(operation: &str, user: (&str, &str), object: &Value, rest: Value) -> Value {
    let group = object["apiVersion"].as_str().unwrap().split_once('/').map_or("", |(group, _)| group);
    let mut request = json!({"uid": "1", "operation": operation, "kind": {"group": group, "version": "v1", "kind": object["kind"]},
        "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
        "userInfo": {"username": user.0, "groups": ["system:authenticated", user.1]}});
    request.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    request
}

/// Judges a write, and returns what is stored afterwards.
fn write(namespace: &Value, user: &str, new: Value, through: &str, policy: &Policy) -> Value {
    let rest = json!({"object": new, "oldObject": namespace, "subResource": through});
    let world = snapshot(&cluster(namespace));
    let request = request("UPDATE", (user, "x"), namespace, rest);
    let answer = review(&request, &world, &world.inventory(policy, (1, 2)), policy, NOW.parse().unwrap());
    if answer.allowed { new } else { namespace.clone() }
}

/// Who could delete it, of those whose deletes are judged.
fn deleted_by(namespace: &Value, policy: &Policy) -> Vec<String> {
    let objects = cluster(namespace);
    let (world, root) = (snapshot(&objects), &objects[1]);
    let inventory = world.inventory(policy, (1, 2));
    let users = [
        ("mallory", "x"),
        ("alice", "x"),
        ("bob", "oncall"),
        (CONTROLLER, "x"),
        (COLLECTOR, "x"),
        ("root", "system:masters"),
    ];
    let mut admitted = Vec::new();
    for (user, object) in users.into_iter().flat_map(|user| [(user, namespace), (user, root)]) {
        // The collector deletes no Application that nothing owned.
        if user.0 == COLLECTOR && object == root {
            continue;
        }
        let request = request("DELETE", user, object, json!({"object": null, "oldObject": object}));
        let answer = review(&request, &world, &inventory, policy, NOW.parse().unwrap());
        if answer.allowed {
            admitted.push(format!(
                "{} of {} by {}: {}",
                object["kind"],
                object["metadata"]["name"],
                user.0,
                said(&answer)
            ));
        }
    }
    admitted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_writes_of_others_let_a_namespace_go(namespace in unapproved(), writes in writes()) {
        let policy = tempting();
        let mut namespace = namespace;
        prop_assert_eq!(deleted_by(&namespace, &policy), Vec::<String>::new());
        for step in writes {
            let new = step.on(&namespace);
            namespace = write(&namespace, WRITERS[step.user], new, THROUGH[step.through], &policy);
            // Kept through a cascade, an Application that lists it no longer takes it: that is no deletion of it.
            let kept = namespace["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] == "Delete=false";
            let admitted: Vec<_> = deleted_by(&namespace, &policy).into_iter().filter(|line| !kept || !line.contains("Application")).collect();
            prop_assert_eq!(admitted, Vec::<String>::new(), "{}", namespace);
        }
    }
}

#[test]
fn approval_by_the_one_who_may_lets_it_go() {
    let policy = tempting();
    let approval = until("2026-11-29T20:00:00Z");
    let approval = with(approval, "/metadata/annotations/cascade-guard.io~1deletion-reason", "CHG-1");
    for through in THROUGH {
        let stored = write(&shop(json!({})), "alice", approval.clone(), through, &policy);
        assert_eq!(stored, approval);
        assert_eq!(deleted_by(&stored, &policy).len(), 11);
    }
    assert_eq!(write(&shop(json!({})), "mallory", approval, "", &policy), shop(json!({})));
}
