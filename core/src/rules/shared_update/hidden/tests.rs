use serde_json::{Value, json};

use crate::{
    decision::Decision,
    rules::testing::{World, details, update},
};

const ENFORCE: &str = "rules: {sharedClaim: {mode: enforce}}";
const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
const SERVER: &str = "system:serviceaccount:argocd:argocd-server";

fn entry(name: &str) -> Value {
    json!({"group": "rbac.authorization.k8s.io", "kind": "Role", "namespace": "shop", "name": name, "status": "Synced"})
}

fn app() -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "old", "namespace": "argocd", "uid": "old"},
        "spec": {"project": "prod", "source": {"repoURL": "https://g", "path": "old"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"},
            "resources": [entry("api"), entry("web")],
            "operationState": {"phase": "Succeeded", "syncResult": {"resources": [entry("api"), entry("web")]}}}})
}

fn changed(pointer: &str, value: impl Into<Value>) -> Value {
    let mut app = app();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    app.pointer_mut(parent).unwrap()[key] = value.into();
    app
}

fn entry_with(key: &str, value: impl Into<Value>) -> Value {
    let mut entry = entry("api");
    entry[key] = value.into();
    json!([entry, self::entry("web")])
}

fn judge(user: &str, new: &Value) -> Decision {
    World::new(ENFORCE).with(&[app()]).judge(&update(user, &app(), new))
}

fn ways_to_hide() -> Vec<Value> {
    const LIST: &str = "/status/resources";
    const RESULT: &str = "/status/operationState/syncResult/resources";
    vec![
        changed(LIST, json!([])),
        changed(LIST, Value::Null),
        changed(LIST, json!([entry("web")])),
        changed(LIST, entry_with("hook", true)),
        changed(LIST, entry_with("requiresPruning", true)),
        changed(LIST, entry_with("status", "")),
        changed(LIST, entry_with("status", "Unknown")),
        changed(LIST, entry_with("name", "another")),
        changed(LIST, entry_with("namespace", "another")),
        changed(LIST, entry_with("kind", "ConfigMap")),
        changed(RESULT, json!([])),
        changed(RESULT, entry_with("status", "Pruned")),
        changed(RESULT, entry_with("hookType", "Sync")),
        changed("/status/operationState", Value::Null),
        changed("/status", Value::Null),
    ]
}

#[test]
fn only_argo_cd_makes_claims_invisible() {
    for new in ways_to_hide() {
        for user in ["ops", SERVER, "system:serviceaccount:shop:argocd-application-controller"] {
            let decision = judge(user, &new);
            let said = details(&decision).join("\n");
            assert!(!decision.allowed(), "{user}: {}", new["status"]);
            assert!(said.contains("argocd/old") && said.contains("Role shop/"), "{said}");
            assert!(!decision.outcomes[0].finding.remedies.is_empty());
        }
        assert!(judge(CONTROLLER, &new).allowed(), "{}", new["status"]);
    }
}

#[test]
fn number_and_names_of_what_would_be_hidden_are_said() {
    let said = details(&judge("ops", &changed("/status/resources", json!([])))).join("\n");
    assert_eq!(
        said,
        "Application argocd/old would no longer tell of 2 objects that it holds: Role shop/api and Role shop/web"
    );
}

#[test]
fn other_installation_writes_the_status_of_its_own_applications() {
    let user = "system:serviceaccount:gitops:gitops-argocd-application-controller";
    let mut theirs = app();
    theirs["status"]["controllerNamespace"] = json!("gitops");
    let mut empty = theirs.clone();
    empty["status"]["resources"] = json!([]);
    let settings =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "gitops"}});
    let world = World::new(ENFORCE).with(&[theirs.clone(), settings]);
    assert!(world.judge(&update(user, &theirs, &empty)).allowed());
    assert!(!judge(user, &changed("/status/resources", json!([]))).allowed(), "not of this one");
    let agent = "system:serviceaccount:argocd:argocd-agent-principal";
    assert!(judge(agent, &changed("/status/resources", json!([]))).allowed());
}

#[test]
fn what_takes_nothing_away_passes() {
    let more = json!([entry("api"), entry("web"), entry("more")]);
    for new in [
        app(),
        changed("/status/resources", json!([entry("web"), entry("api")])),
        changed("/status/resources", more.clone()),
        changed("/status/operationState/syncResult/resources", more),
        changed("/status/resources", entry_with("status", "OutOfSync")),
        changed("/status/resources", entry_with("syncWave", 3)),
        changed("/status/operationState/phase", "Failed"),
        changed("/metadata/labels", json!({"a": "b"})),
        changed("/spec/destination/namespace", "elsewhere"),
        changed("/spec/source/path", "elsewhere"),
    ] {
        assert!(judge("ops", &new).allowed(), "{new}");
    }
}

#[test]
fn who_begins_a_sync_clears_the_result_of_the_last_one() {
    let mut begun = changed("/status/operationState", Value::Null);
    begun["operation"] = json!({"sync": {"revision": "main"}});
    assert!(judge(SERVER, &begun).allowed());
    begun["status"]["resources"] = json!([]);
    assert!(!judge(SERVER, &begun).allowed(), "the list is not cleared by that");
    let mut running = app();
    running["operation"] = json!({"sync": {}});
    let mut cleared = begun.clone();
    cleared["status"]["resources"] = app()["status"]["resources"].clone();
    assert!(!World::new(ENFORCE).judge(&update(SERVER, &running, &cleared)).allowed(), "it began before");
}

#[test]
fn mode_of_shared_claim_counts() {
    let empty = changed("/status/resources", json!([]));
    let world = World::new("rules: {sharedClaim: {mode: warn}, sharedUpdate: {mode: enforce}}");
    assert!(world.judge(&update("ops", &app(), &empty)).allowed());
    let mut leaving = (app(), empty);
    for object in [&mut leaving.0, &mut leaving.1] {
        object["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:00:00Z");
    }
    assert!(judge_pair(&leaving.0, &leaving.1).allowed(), "it claims nothing any more");
}

fn judge_pair(old: &Value, new: &Value) -> Decision {
    World::new(ENFORCE).judge(&update("ops", old, new))
}
