use serde_json::{Value, json};

use crate::{
    decision::Decision,
    rules::testing::{World, create, details, update},
};

const ENFORCE: &str = "rules: {sharedClaim: {mode: enforce}, sharedUpdate: {mode: enforce}}";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const SET_CONTROLLER: &str = "system:serviceaccount:argocd:argocd-applicationset-controller";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const ARGO: &str = "argoproj.io/v1alpha1";

fn object(version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace, "uid": format!("{name}-uid")}})
}

fn owner(version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid})
}

fn owned(object: &Value, owners: &[Value]) -> Value {
    let mut object = object.clone();
    object["metadata"]["ownerReferences"] = json!(owners);
    object
}

fn role() -> Value {
    object(RBAC, "Role", "shop", "api")
}

fn absent() -> Value {
    owner("v1", "ConfigMap", "gone", "no-such-uid")
}

fn map() -> Value {
    owner("v1", "ConfigMap", "here", "here-uid")
}

/// An Application claims Role, ServiceAccount and ClusterRole `api`; a few things are there that may own something.
fn world() -> World {
    let entry = |group: &str, kind: &str, namespace: &str| json!({"group": group, "kind": kind, "namespace": namespace, "name": "api", "status": "Synced"});
    let app = json!({"apiVersion": ARGO, "kind": "Application", "metadata": {"name": "old", "namespace": "argocd", "uid": "old-uid"},
        "spec": {"project": "prod", "source": {"repoURL": "https://g"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"}, "resources": [
            entry("rbac.authorization.k8s.io", "Role", "shop"), entry("", "ServiceAccount", "shop"),
            entry("rbac.authorization.k8s.io", "ClusterRole", "")]}});
    let mut leaving = object("v1", "ConfigMap", "shop", "leaving");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:59:00Z");
    World::new(ENFORCE).with(&[
        app,
        object("v1", "ConfigMap", "shop", "here"),
        object("v1", "ConfigMap", "other", "elsewhere"),
        leaving,
        object("v1", "Namespace", "", "cluster-wide"),
        object(ARGO, "ApplicationSet", "argocd", "set"),
    ])
}

fn said(decision: &Decision) -> String {
    details(decision).join("\n")
}

#[track_caller]
fn refuses(decision: &Decision, words: &[&str]) {
    assert!(!decision.allowed(), "it passed: {}", said(decision));
    for word in words {
        assert!(said(decision).contains(word), "no `{word}` in {}", said(decision));
    }
}

#[track_caller]
fn passes(decision: &Decision) {
    assert!(decision.is_plain_allow(), "{}", said(decision));
}

#[test]
fn claimed_object_is_not_handed_to_the_garbage_collector() {
    for object in [role(), object("v1", "ServiceAccount", "shop", "api"), object(RBAC, "ClusterRole", "", "api")] {
        let words = ["api (claimed by argocd/old) would be owned by", "gone, which does not exist"];
        refuses(&world().judge(&update("ops", &object, &owned(&object, &[absent()]))), &words);
        refuses(&world().judge(&create("ops", &owned(&object, &[absent()]))), &words);
    }
}

#[test]
fn owner_has_to_be_the_very_one() {
    let dead = [
        (owner("v1", "ConfigMap", "here", "old-uid"), "is another one now"),
        (owner("v1", "Secret", "here", "here-uid"), "Secret shop/here, which does not exist"),
        (owner("apps/v1", "ConfigMap", "here", "here-uid"), "which does not exist"),
        (owner("v1", "ConfigMap", "elsewhere", "elsewhere-uid"), "shop/elsewhere, which does not exist"),
        (owner("v1", "ConfigMap", "leaving", "leaving-uid"), "is being deleted itself"),
    ];
    for (reference, word) in dead {
        refuses(&world().judge(&update("ops", &role(), &owned(&role(), &[reference]))), &[word]);
    }
    // An object without a namespace has no owner in one.
    let cluster_role = object(RBAC, "ClusterRole", "", "api");
    refuses(&world().judge(&update("ops", &cluster_role, &owned(&cluster_role, &[map()]))), &["ConfigMap here, which"]);
}

#[test]
fn owner_that_is_there_is_enough() {
    let namespace = owner("v1", "Namespace", "cluster-wide", "cluster-wide-uid");
    for owners in [vec![map()], vec![absent(), map()], vec![namespace.clone()]] {
        passes(&world().judge(&update("ops", &role(), &owned(&role(), &owners))));
        passes(&world().judge(&create("ops", &owned(&role(), &owners))));
    }
    let cluster_role = object(RBAC, "ClusterRole", "", "api");
    passes(&world().judge(&update("ops", &cluster_role, &owned(&cluster_role, &[namespace]))));
}

#[test]
fn last_owner_that_is_there_is_not_taken_away_from_beside_an_absent_one() {
    let both = owned(&role(), &[map(), absent()]);
    refuses(&world().judge(&update("ops", &both, &owned(&role(), &[absent()]))), &["gone"]);
    passes(&world().judge(&update("ops", &both, &owned(&role(), &[map()]))));
    passes(&world().judge(&update("ops", &both, &role())));
    passes(&world().judge(&update(COLLECTOR, &both, &owned(&role(), &[absent()]))));
}

#[test]
fn owners_that_stay_as_they_are_pass() {
    let stale = owned(&role(), &[absent()]);
    let mut labelled = stale.clone();
    labelled["metadata"]["annotations"] = json!({"a": "b"});
    passes(&world().judge(&update("ops", &stale, &labelled)));
}

#[test]
fn nobody_asks_after_what_no_application_claims() {
    let unclaimed = object(RBAC, "Role", "shop", "operator");
    passes(&world().judge(&create("ops", &owned(&unclaimed, &[absent()]))));
    let map = object("v1", "ConfigMap", "shop", "settings");
    passes(&world().judge(&create("ops", &owned(&map, &[absent()]))));
}

#[test]
fn namespaces_and_the_kinds_of_argo_cd_are_asked_after_whoever_claims_them() {
    let absent_set = owner(ARGO, "ApplicationSet", "gone", "no-such-uid");
    for (object, reference) in [
        (object("v1", "Namespace", "", "shop"), owner("tenants.example.com/v1", "Tenant", "t", "t-uid")),
        (object(ARGO, "Application", "argocd", "old"), absent_set.clone()),
        (object(ARGO, "ApplicationSet", "argocd", "set"), absent()),
        (object(ARGO, "AppProject", "argocd", "prod"), absent()),
    ] {
        refuses(
            &world().judge(&update("ops", &object, &owned(&object, std::slice::from_ref(&reference)))),
            &["does not exist"],
        );
        refuses(&world().judge(&create("ops", &owned(&object, &[reference]))), &["does not exist"]);
    }
}

#[test]
fn namespace_is_judged_by_the_mode_of_this_rule_and_the_rest_by_that_of_shared_claim() {
    let world = |policy: &str| World::new(policy);
    let namespace = object("v1", "Namespace", "", "shop");
    let application = object(ARGO, "Application", "argocd", "old");
    let judge =
        |policy: &str, object: &Value| world(policy).judge(&create("ops", &owned(object, &[absent()]))).allowed();
    let warn = "rules: {sharedClaim: {mode: enforce}, sharedUpdate: {mode: warn}}";
    assert!(judge(warn, &namespace) && !judge(warn, &application));
    let audit = "rules: {sharedClaim: {mode: audit}, sharedUpdate: {mode: enforce}}";
    assert!(!judge(audit, &namespace) && judge(audit, &application));
}

#[test]
fn applicationset_makes_and_adopts_its_applications() {
    let application = object(ARGO, "Application", "argocd", "made");
    let set = owner(ARGO, "ApplicationSet", "set", "set-uid");
    passes(&world().judge(&create(SET_CONTROLLER, &owned(&application, std::slice::from_ref(&set)))));
    passes(&world().judge(&update(SET_CONTROLLER, &application, &owned(&application, &[set]))));
    let wrong = owner(ARGO, "ApplicationSet", "set", "another-uid");
    refuses(&world().judge(&update("ops", &application, &owned(&application, &[wrong]))), &["is another one now"]);
}

#[test]
fn what_is_half_gone_is_not_held_up() {
    let mut leaving = role();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:59:00Z");
    passes(&world().judge(&update("ops", &leaving, &owned(&leaving, &[absent()]))));
}

#[test]
fn owners_without_number_are_not_all_looked_for() {
    let mut owners: Vec<Value> = (0..200).map(|n| owner("v1", "ConfigMap", &format!("gone-{n}"), "u")).collect();
    owners.push(map());
    refuses(&world().judge(&update("ops", &role(), &owned(&role(), &owners))), &["gone-0, which does not exist"]);
}
