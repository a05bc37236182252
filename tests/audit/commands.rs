//! Exit codes and output of the commands.

use std::fs;

use serde_json::{Value, json};

use super::{NOW, application, file, guard, stdout, troubled};

const ENFORCE: &str = "
apiVersion: cascade-guard.io/v1alpha1
kind: GuardPolicy
metadata: {name: default}
spec:
  rules: {sharedClaim: {mode: enforce}, namespaceApproval: {mode: enforce}}
  exemptions:
  - {name: previews, match: {namespaces: ['pr-*']}, rules: [namespaceApproval], until: '2026-01-01T00:00:00Z', reason: r}
";

#[test]
fn audit_exits_with_one_where_something_is_wrong_and_with_zero_where_nothing_is() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = file(folder.path(), "wrong.json", &troubled());
    let right = file(folder.path(), "right.json", &application("a", &[("ConfigMap", "a")]).to_string());
    let run = |snapshot: &std::path::Path| guard(&["audit", "--snapshot", snapshot.to_str().unwrap(), "--now", NOW]);
    let found = run(&wrong);
    assert_eq!(found.status.code(), Some(1));
    let text = stdout(&found);
    for part in [
        "Deletes that take too much",
        "Application argocd/flink-old",
        "Stuck in Terminating",
        "Ingress ingress-test/front",
        "ingress.k8s.aws/resources",
        "Claimed by several Applications",
        "Lists not to be believed",
        "EXPIRED",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let clean = run(&right);
    assert_eq!(clean.status.code(), Some(0), "{}", stdout(&clean));
    assert_eq!(guard(&["audit", "--snapshot", "/does/not/exist"]).status.code(), Some(2));
}

#[test]
fn audit_compares_itself_with_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = file(folder.path(), "cluster.json", &troubled());
    let snapshot = snapshot.to_str().unwrap();
    let earlier = guard(&["audit", "--snapshot", snapshot, "--now", NOW, "-o", "json"]);
    let earlier = file(folder.path(), "earlier.json", &stdout(&earlier));
    let again = guard(&[
        "audit",
        "--snapshot",
        snapshot,
        "--now",
        "2026-11-30T12:00:00Z",
        "--since",
        earlier.to_str().unwrap(),
    ]);
    let text = stdout(&again);
    assert!(text.contains(&format!("Since {NOW}: 0 new, 0 gone,")), "{text}");
    let nonsense = file(folder.path(), "nonsense.json", "{}");
    let refused = guard(&["audit", "--snapshot", snapshot, "--since", nonsense.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn audit_reads_the_audit_log_of_the_api_server() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = file(folder.path(), "cluster.json", &troubled());
    let event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "4c1", "stage": "ResponseComplete",
        "verb": "delete", "requestURI": "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/flink-old",
        "user": {"username": "bob"}, "responseStatus": {"code": 200},
        "objectRef": {"resource": "applications", "apiGroup": "argoproj.io", "apiVersion": "v1alpha1", "namespace": "argocd", "name": "flink-old"},
        "annotations": {"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "delete.cascade-guard.io"},
    });
    let log = file(folder.path(), "audit.log", &event.to_string());
    let (snapshot, log) = (snapshot.to_str().unwrap(), log.to_str().unwrap());
    let output = guard(&["audit", "--snapshot", snapshot, "--audit-log", log, "--now", NOW]);
    let text = stdout(&output);
    assert!(
        text.contains("bob deleted Application argocd/flink-old, while delete.cascade-guard.io did not answer"),
        "{text}"
    );
    assert!(text.contains("would have been refused: [shared-claim]"), "{text}");
}

#[test]
fn replay_says_what_another_policy_would_change() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = file(folder.path(), "cluster.json", &troubled());
    let enforce = file(folder.path(), "enforce.yaml", ENFORCE);
    let request = |name: &str| {
        json!({"request": {"uid": name, "kind": {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application"}, "operation": "DELETE",
            "name": name, "namespace": "argocd", "userInfo": {"username": "bob"}, "object": null, "oldObject": null}})
    };
    let requests = format!("{}\n{}\n", request("flink-old"), request("flink-new"));
    let requests = file(folder.path(), "requests.jsonl", &requests);
    let (snapshot, enforce, requests) =
        (snapshot.to_str().unwrap(), enforce.to_str().unwrap(), requests.to_str().unwrap());
    let recorded = guard(&["replay", requests, "--snapshot", snapshot, "--now", NOW]);
    assert_eq!(recorded.status.code(), Some(0), "in audit nothing would be refused");
    let enforced = guard(&["replay", requests, "--snapshot", snapshot, "--policy", enforce, "--now", NOW]);
    assert_eq!(enforced.status.code(), Some(1));
    let compared =
        guard(&["replay", requests, "--snapshot", snapshot, "--against", enforce, "--now", NOW, "-o", "json"]);
    assert_eq!(compared.status.code(), Some(1));
    let same =
        guard(&["replay", requests, "--snapshot", snapshot, "--policy", enforce, "--against", enforce, "--now", NOW]);
    assert_eq!(same.status.code(), Some(1), "both refuse the same: {}", stdout(&same));
    let result: Value = serde_json::from_str(&stdout(&compared)).unwrap();
    assert_eq!(result["judged"], 2);
    let changes = result["changes"].as_array().unwrap();
    assert_eq!(changes[0]["object"]["name"], "flink-old");
    assert_eq!(
        (&changes[0]["verdict"]["decision"], &changes[0]["against"]["decision"]),
        (&json!("would-deny"), &json!("deny"))
    );
    assert_eq!(guard(&["replay", requests]).status.code(), Some(2), "without a world nothing can be judged");
}

#[test]
fn policy_explain_names_the_deciding_line_and_calls_an_expired_exemption_inert() {
    let folder = tempfile::tempdir().unwrap();
    let policy = file(folder.path(), "policy.yaml", ENFORCE);
    let policy = policy.to_str().unwrap();
    let output = guard(&["policy", "explain", "namespace", "pr-7", "--policy", policy, "--now", NOW]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(text.contains("namespace-approval: enforce, by rules.namespaceApproval"), "{text}");
    let line = text.lines().find(|line| line.contains("exemption `previews`")).unwrap();
    assert!(line.contains("has expired and is inert"), "{line}");
    let capped =
        guard(&["policy", "explain", "ns", "pr-7", "--policy", policy, "--mode-ceiling", "audit", "-o", "json"]);
    let explained: Value = serde_json::from_str(&stdout(&capped)).unwrap();
    let rules = explained["rules"].as_array().unwrap();
    assert!(rules.iter().all(|rule| rule["mode"] == "audit"), "{explained}");
}

#[test]
fn recordings_replay_from_the_command_line() {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recordings");
    let healthy = format!("{recordings}/s23_healthy_life.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let policy = file(folder.path(), "policy.yaml", ENFORCE);
    let output = guard(&[
        "replay",
        &healthy,
        "--build-world",
        "--policy",
        policy.to_str().unwrap(),
        "--now",
        "2026-11-29T17:30:00Z",
    ]);
    let lines = fs::read_to_string(&healthy).unwrap().lines().count();
    let text = stdout(&output);
    assert!(text.starts_with(&format!("{lines} requests judged\n")), "{text}");
}
