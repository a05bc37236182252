//! What a real Argo CD did, replayed: every request gets the right verdict, and the deletion plan is the truth.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::{body_of, data, decide, files, policy, review, said};
use cascade_guard_core::{
    admission,
    policy::{Mode, Policy, RuleKey},
    replay::ReplayedCluster,
};
use jiff::Timestamp;
use serde_json::{Value, json};

const NOW: &str = "2026-11-29T17:30:00Z";

/// An empty cluster with an Argo CD.
fn empty() -> ReplayedCluster {
    ReplayedCluster::new("argocd").unwrap()
}

/// Applies a request that was admitted.
fn apply(world: &mut ReplayedCluster, request: &Value) {
    let body = body_of(request);
    world.apply(&admission::decode(body.as_bytes()).unwrap(), NOW.parse().unwrap()).unwrap();
}

fn identity(object: &Value) -> [String; 4] {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = text("/apiVersion").split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
    [group, text("/kind"), text("/metadata/namespace"), text("/metadata/name")]
}

fn expected() -> Value {
    serde_json::from_str(&fs::read_to_string(data("recordings/expected.json")).unwrap()).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Replays one recording; returns what was judged wrongly.
fn replay(path: &Path, want: &Value) -> Vec<String> {
    let policy = Policy::every_rule(Mode::Enforce)
        .with_mode(RuleKey::SharedUpdate, Mode::Warn)
        .with_mode(RuleKey::RuntimeDependency, Mode::Warn);
    let now: Timestamp = NOW.parse().unwrap();
    let mut world = empty();
    let mut faults = Vec::new();
    for (number, line) in (1u64..).zip(lines(path)) {
        let request = &line["request"];
        let snapshot = world.snapshot();
        let inventory = snapshot.inventory(&policy, (3, 4));
        let response = review(request, snapshot, &inventory, &policy, now);
        let deny = want["line"] == number && want["verdict"] == "deny";
        if response.allowed == deny {
            faults.push(format!("line {number}: allowed is {}: {}", response.allowed, said(&response)));
        }
        if deny {
            let said = said(&response);
            let words = want["mentions"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
            faults.extend(
                words
                    .filter(|word| !said.contains(&word.to_lowercase()))
                    .map(|word| format!("line {number}: no {word}: {said}")),
            );
            let rule = want["rule"].as_str().unwrap();
            if !said.contains(rule) {
                faults.push(format!("line {number}: not refused by {rule}: {said}"));
            }
            break;
        }
        if line["refusedByRig"].is_null() || line["refusedByRig"] == false {
            apply(&mut world, request);
        }
    }
    faults
}

#[test]
fn every_request_of_a_real_argo_cd_is_judged_right() {
    let expected = expected();
    let mut faults = Vec::new();
    for path in files("recordings", ".jsonl") {
        let name = name_of(&path);
        let found = replay(&path, &expected[&name]);
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Everything found in one request, whatever became of it.
fn found(request: &Value, world: &ReplayedCluster, policy: &Policy) -> Vec<String> {
    let snapshot = world.snapshot();
    let inventory = snapshot.inventory(policy, (3, 4));
    let decision = decide(request, snapshot, &inventory, policy, NOW.parse().unwrap());
    let outcomes = decision.outcomes.iter().map(|outcome| &outcome.finding);
    outcomes
        .map(|finding| format!("{} {} {} {}", finding.rule.id, finding.check, finding.object, finding.detail))
        .collect()
}

#[test]
fn audit_refuses_nothing_and_finds_what_enforce_finds() {
    let (audit, enforce) = (Policy::every_rule(Mode::Audit), Policy::every_rule(Mode::Enforce));
    let mut faults = Vec::new();
    let mut compared = 0;
    for path in files("recordings", ".jsonl") {
        let mut world = empty();
        for (number, line) in (1..).zip(lines(&path)) {
            let request = &line["request"];
            let (quiet, strict) = (found(request, &world, &audit), found(request, &world, &enforce));
            if quiet != strict {
                faults.push(format!("{}:{number}: audit found {quiet:?}, enforce {strict:?}", name_of(&path)));
            }
            compared += strict.len();
            let snapshot = world.snapshot();
            let inventory = snapshot.inventory(&audit, (3, 4));
            let response = review(request, snapshot, &inventory, &audit, NOW.parse().unwrap());
            if !response.allowed || !response.warnings.is_empty() {
                faults.push(format!("{}:{number}: the client hears of it: {}", name_of(&path), said(&response)));
            }
            if line["refusedByRig"] != true {
                apply(&mut world, request);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared > 20, "only {compared} findings were compared");
}

/// Objects that were deleted but are no part of a plan, and why.
fn left_aside(object: &str, created_later: &[String]) -> bool {
    // Every Namespace gets these of itself, and they go with it.
    object.ends_with("/kube-root-ca.crt") || object.starts_with("core/ServiceAccount/") && object.ends_with("/default")
        // The garbage collector removes what a Deployment made; nobody claims it.
        || object.starts_with("apps/ReplicaSet/")
        // A hook of the deletion itself did not exist when it was planned.
        || created_later.iter().any(|later| later == object)
}

#[test]
fn plan_of_a_root_delete_is_what_was_really_deleted() {
    let expected = expected();
    let now: Timestamp = NOW.parse().unwrap();
    let policy = policy(json!({}));
    let mut faults = Vec::new();
    let mut compared = 0;
    for path in files("recordings", ".jsonl") {
        let name = name_of(&path);
        let want = &expected[&name];
        let Some(root) = want["line"].as_u64() else { continue };
        let lines = lines(&path);
        let split = usize::try_from(root).unwrap() - 1;
        if lines[split]["request"]["operation"] != "DELETE" {
            continue;
        }
        let mut world = empty();
        for line in lines[..split].iter().filter(|line| line["refusedByRig"] != true) {
            apply(&mut world, &line["request"]);
        }
        let snapshot = world.snapshot();
        let inventory = snapshot.inventory(&policy, (5, 6));
        // In this recording three prunes follow each other, each a root of its own: the truth is their union.
        let roots = if name.starts_with("s17") { split..split + 3 } else { split..split + 1 };
        let mut plan = BTreeMap::new();
        for root in roots {
            plan.extend(crate::support::fates(&lines[root]["request"], snapshot, &inventory, &policy, now));
        }
        let truth: Vec<String> = want["deletedFromThereOn"]
            .as_array()
            .unwrap()
            .iter()
            .map(|object| object.as_str().unwrap().to_owned())
            .collect();
        let created_later: Vec<String> = lines[split..]
            .iter()
            .map(|line| &line["request"])
            .filter(|request| request["operation"] == "CREATE")
            .map(|request| {
                let [group, kind, namespace, name] = identity(&request["object"]);
                format!("{}/{kind}/{namespace}/{name}", if group.is_empty() { "core" } else { &group })
            })
            .collect();
        for object in truth.iter().filter(|object| !left_aside(object, &created_later)) {
            if !matches!(plan.get(object), Some(&"deleted" | &"contested")) {
                faults.push(format!("{name}: {object} was deleted, the plan says {:?}", plan.get(object)));
            }
        }
        // A definition's instances go without a review, so no review tells that they went.
        let unseen = |object: &str| name.starts_with("s24") && object.starts_with("example.com/Gadget/");
        for (object, _) in plan.iter().filter(|(_, fate)| **fate == "deleted") {
            if !truth.contains(object) && !unseen(object) {
                faults.push(format!("{name}: the plan says {object} goes, and it stayed"));
            }
        }
        compared += 1;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared >= 10, "only {compared} recordings have a root delete");
}
