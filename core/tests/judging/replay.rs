//! Recorded requests through a policy, in whatever form they were recorded.

use std::fs;

use cascade_guard_core::{
    policy::Policy,
    replay::{self, Judge, Recorded, Replay, ReplayedCluster},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{data, files, policy, snapshot};

fn now() -> Timestamp {
    "2026-11-29T17:30:00Z".parse().unwrap()
}

fn all(mode: &str) -> Policy {
    Policy::every_rule(mode.parse().unwrap())
}

fn replayed(requests: &[Recorded], mode: &str, against: Option<&str>) -> Replay {
    let mut world = ReplayedCluster::new("argocd").unwrap();
    let mut judge = Judge::new(all(mode), &world);
    let mut other = against.map(|mode| Judge::new(all(mode), &world));
    replay::replay(requests, &mut world, &mut judge, other.as_mut(), true, now())
}

fn recording(name: &str) -> String {
    fs::read_to_string(data("recordings").join(name)).unwrap()
}

const SHARED: &str = "s01_shared_not_resynced.jsonl";

/// The requests of a recording, without what surrounds them.
fn requests(name: &str) -> Vec<Value> {
    recording(name).lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["request"].clone()).collect()
}

#[test]
fn request_that_would_be_refused_is_found_where_it_was_made() {
    let result = replayed(&replay::read("s01", &recording(SHARED)).unwrap().requests, "enforce", None);
    assert_eq!(result.refused[0].place, "s01#30");
    assert_eq!(result.refused[0].operation, "DELETE");
    assert_eq!(result.refused[0].object.to_string(), "Application argocd/s01-old");
    assert_eq!(result.refused[0].verdict.rules, ["shared-claim"]);
    let denied: usize =
        result.decisions.iter().filter(|tally| tally.decision == "deny").map(|tally| tally.requests).sum();
    assert!(denied >= result.refused.len());
    assert_eq!(result.judged, requests(SHARED).len());
}

#[test]
fn every_form_of_a_recording_gives_the_same() {
    let requests = requests(SHARED);
    let review =
        |request: &Value| json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let reviews: Vec<Value> = requests.iter().map(review).collect();
    let forms = [
        recording(SHARED),
        reviews.iter().map(|review| serde_json::to_string_pretty(review).unwrap()).collect::<Vec<_>>().join("\n"),
        json!(reviews).to_string(),
        json!({"kind": "List", "apiVersion": "v1", "items": reviews}).to_string(),
    ];
    let verdicts: Vec<Vec<_>> = forms
        .iter()
        .map(|form| {
            let result = replayed(&replay::read("f", form).unwrap().requests, "enforce", None);
            result.refused.into_iter().map(|row| (row.object, row.verdict)).collect()
        })
        .collect();
    assert!(!verdicts[0].is_empty());
    assert!(verdicts.iter().all(|other| *other == verdicts[0]));
}

/// The same requests as an audit log at level RequestResponse would hold them.
fn audit_log(requests: &[Value]) -> String {
    let events = requests.iter().enumerate().map(|(number, request)| {
        let operation = request["operation"].as_str().unwrap();
        let body = if operation == "DELETE" { &request["oldObject"] } else { &request["object"] };
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": format!("a{number}"),
            "stage": "ResponseComplete", "verb": operation.to_lowercase(), "requestURI": "/apis",
            "user": request["userInfo"], "requestObject": null, "responseObject": body, "responseStatus": {"code": 200},
            "objectRef": {"resource": request["resource"]["resource"], "apiGroup": request["resource"]["group"],
                "apiVersion": request["resource"]["version"], "namespace": request["namespace"], "name": request["name"],
                "subresource": request["subResource"].as_str().unwrap_or_default()},
            "requestReceivedTimestamp": "2026-11-29T17:30:00.000000Z", "annotations": null,
        })
        .to_string()
    });
    events.collect::<Vec<_>>().join("\n")
}

#[test]
fn audit_log_gives_the_same_refusals() {
    let requests = requests(SHARED);
    let log = replay::read("audit.log", &audit_log(&requests)).unwrap();
    assert!(log.left_out.is_empty(), "{:?}", log.left_out);
    let from_log = replayed(&log.requests, "enforce", None);
    let from_reviews = replayed(&replay::read("s01", &recording(SHARED)).unwrap().requests, "enforce", None);
    assert_eq!(from_log.refused[0].object, from_reviews.refused[0].object);
    assert_eq!(from_log.refused[0].verdict, from_reviews.refused[0].verdict);
}

#[test]
fn events_that_hold_too_little_are_counted_and_not_passed_over() {
    let requests = requests(SHARED);
    let event = |change: &dyn Fn(&mut Value)| {
        let mut event: Value = serde_json::from_str(audit_log(&requests).lines().next().unwrap()).unwrap();
        change(&mut event);
        event.to_string()
    };
    let log = [
        event(&|event| event["responseObject"] = Value::Null),
        event(&|event| event["stage"] = json!("RequestReceived")),
        event(&|event| event["verb"] = json!("list")),
    ]
    .join("\n");
    let recording = replay::read("audit.log", &log).unwrap();
    assert!(recording.requests.is_empty());
    assert_eq!(recording.left_out.values().sum::<usize>(), 3);
}

#[test]
fn what_is_no_request_is_refused_with_its_place() {
    for (text, place) in [("", "f"), ("{}", "f#1"), ("{\"request\":{}} nonsense", "f#2"), ("[{}]", "f#1[0]")] {
        assert_eq!(replay::read("f", text).unwrap_err().place, place, "{text}");
    }
}

#[test]
fn other_policy_shows_what_would_change() {
    let requests = replay::read("s01", &recording(SHARED)).unwrap().requests;
    let result = replayed(&requests, "audit", Some("enforce"));
    assert!(result.refused.is_empty());
    assert_eq!(result.changes[0].row.place, "s01#30");
    assert_eq!((result.changes[0].row.verdict.decision, result.changes[0].against.decision), ("would-deny", "deny"));
    assert!(replayed(&requests, "enforce", Some("enforce")).changes.is_empty());
}

#[test]
fn rule_that_warns_beside_one_that_refuses_is_not_counted_as_a_refusal() {
    let app = |name: &str, resources: &[&str]| {
        let listed = |name: &&str| json!({"version": "v1", "kind": "ServiceAccount", "namespace": "shop", "name": name, "status": "Synced"});
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd", "uid": name, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {"project": "default", "source": {"repoURL": "r", "path": name},
                "destination": {"namespace": "shop", "server": "https://kubernetes.default.svc"}},
            "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"},
                "resources": resources.iter().map(listed).collect::<Vec<_>>()}})
    };
    let account = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "shop",
            "annotations": {"argocd.argoproj.io/tracking-id": format!("old:/ServiceAccount:shop/{name}")}}})
    };
    let old = app("old", &["shared", "own"]);
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u"}}),
        old.clone(),
        app("new", &["shared"]),
        account("shared"),
        account("own"),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stays", "namespace": "shop"},
            "spec": {"serviceAccountName": "own", "containers": []}, "status": {"phase": "Running"}}),
    ];
    let request = json!({"request": {"uid": "u", "kind": {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application"},
        "operation": "DELETE", "name": "old", "namespace": "argocd", "userInfo": {"username": "bob"}, "object": null,
        "oldObject": old}});
    let policy = policy(json!({"rules": {"sharedClaim": {"mode": "enforce"}, "runtimeDependency": {"mode": "warn"}}}));
    let mut world = ReplayedCluster::from(snapshot(&objects));
    let mut judge = Judge::new(policy, &world);
    let requests = replay::read("r", &request.to_string()).unwrap().requests;
    let result = replay::replay(&requests, &mut world, &mut judge, None, false, now());
    let tally =
        |rule: &str| result.decisions.iter().filter(|row| row.rule == rule).map(|row| row.decision).collect::<Vec<_>>();
    assert_eq!(tally("shared-claim"), ["deny"]);
    assert!(matches!(tally("runtime-dependency")[..], ["warn" | "would-deny"]), "{:?}", result.decisions);
    let verdict = &result.refused[0].verdict;
    assert_eq!(verdict.deciding(), ["shared-claim"]);
    assert_eq!(verdict.details, ["ServiceAccount shop/shared is claimed by argocd/new"]);
}

#[test]
fn audit_mode_refuses_nothing_and_finds_the_same_as_enforce() {
    for path in files("recordings", ".jsonl") {
        let requests = replay::read("r", &fs::read_to_string(&path).unwrap()).unwrap().requests;
        let result = replayed(&requests, "audit", Some("enforce"));
        assert!(result.refused.is_empty(), "{}", path.display());
        // Whatever the other policy says differently is the same said more strictly.
        for change in &result.changes {
            assert_eq!(change.row.verdict.rules, change.against.rules, "{}: {}", path.display(), change.row.place);
            assert_eq!(change.row.verdict.details, change.against.details);
        }
        let findings = |tallies: &[replay::Tally]| -> usize {
            tallies.iter().filter(|tally| !tally.rule.is_empty()).map(|tally| tally.requests).sum()
        };
        assert_eq!(findings(&result.decisions), findings(&result.decisions_against), "{}", path.display());
    }
}

#[test]
fn claims_that_follow_a_stream_are_those_of_a_fresh_snapshot() {
    let policy = all("enforce");
    for path in files("recordings", ".jsonl") {
        let requests = replay::read("r", &fs::read_to_string(&path).unwrap()).unwrap().requests;
        let mut world = ReplayedCluster::new("argocd").unwrap();
        let mut judge = Judge::new(policy.clone(), &world);
        for recorded in requests.iter().filter(|recorded| recorded.admitted) {
            let request = cascade_guard_core::admission::decode(&recorded.review).unwrap();
            if let Some(object) = world.apply(&request, now()).unwrap() {
                judge.follow(&world, &object);
            }
        }
        let fresh = world.snapshot().inventory(&policy, (0, 0));
        let claims = |inventory: &cascade_guard_core::inventory::Inventory| {
            let mut apps: Vec<String> = inventory
                .applications()
                .map(|(_, app)| {
                    format!(
                        "{} {:?} {:?}",
                        app.path(),
                        app.terminating,
                        app.claims.iter().map(|claim| (claim.key, claim.class)).collect::<Vec<_>>()
                    )
                })
                .collect();
            apps.sort();
            (apps, inventory.namespaces().count(), inventory.appsets().count(), inventory.claims().len())
        };
        assert_eq!(claims(&judge.inventory), claims(&fresh), "{}", path.display());
    }
}
