//! Namespaces and approvals, by whole reviews: who is asked, on which path, what is said, what is waived.

use std::sync::atomic::{AtomicUsize, Ordering};

use cascade_guard_core::{
    admission::{self, Response},
    decision::render,
    facts::{Answer, Question},
    inventory::Inventory,
    judge::{AtHand, Case, judge_at_hand},
    policy::{GuardPolicySpec, Policy},
    snapshot::Snapshot,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{policy, said, snapshot};

const NOW: &str = "2026-11-29T12:00:00Z";
const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
const APPSET_CONTROLLER: &str = "system:serviceaccount:argocd:argocd-applicationset-controller";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// A snapshot that counts the lists it is asked for.
struct Counting<'a>(&'a Snapshot, AtomicUsize);

impl AtHand for Counting<'_> {
    fn reply(&self, question: &Question) -> Answer {
        self.1.fetch_add(usize::from(matches!(question, Question::List(_))), Ordering::Relaxed);
        self.0.reply(question)
    }
}

/// Judges the DELETE of `object` and says how many lists that took.
fn delete_counting(user: &str, object: &Value, world: &[Value], policy: &Policy) -> (Response, usize) {
    let snapshot = snapshot(world);
    let inventory: Inventory = snapshot.inventory(policy, (1, 2));
    let api_version = object["apiVersion"].as_str().unwrap();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "DELETE", "kind": {"group": group, "kind": object["kind"]},
        "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
        "userInfo": {"username": user, "groups": groups(user)}, "object": null, "oldObject": object}})
    .to_string();
    let request = admission::decode(body.as_bytes()).unwrap();
    let source = Counting(&snapshot, AtomicUsize::new(0));
    let now: Timestamp = NOW.parse().unwrap();
    let decision = judge_at_hand(Case::new(&request, policy, now), &inventory, &source).decision;
    (render(&decision, &request), source.1.into_inner())
}

fn groups(user: &str) -> Vec<&'static str> {
    match user {
        "root" => vec!["system:masters"],
        "oncall" => vec!["sre"],
        _ => vec!["system:authenticated"],
    }
}

fn delete(user: &str, object: &Value, world: &[Value], policy: &Policy) -> Response {
    delete_counting(user, object, world, policy).0
}

fn enforced() -> Policy {
    with("{}")
}

/// A policy in which namespace-approval enforces, with these options on top.
fn with(yaml: &str) -> Policy {
    let mut spec: Value = serde_saphyr::from_str(yaml).unwrap();
    let rule = &mut spec["rules"]["namespaceApproval"];
    if rule["mode"].is_null() {
        rule["mode"] = json!("enforce");
    }
    policy(spec)
}

fn namespace(name: &str, annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]},
        "metadata": {"name": name, "uid": format!("u-{name}"), "annotations": annotations, "labels": {"team": "previews"}}})
}

fn approval(by: &str, until: &str, uid: &str) -> Value {
    json!({"cascade-guard.io/deletion-approved-by": by, "cascade-guard.io/deletion-approved-until": until,
        "cascade-guard.io/deletion-approved-uid": uid})
}

fn approved(name: &str) -> Value {
    namespace(name, approval("alice", "2026-11-29T16:00:00Z", &format!("u-{name}")))
}

fn tracked(mut object: Value, app: &str) -> Value {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
        json!(format!("{app}:/Namespace:{name}/{name}"));
    object
}

/// An Application in project `shop` that cascades and lists these Namespaces.
fn application(name: &str, namespaces: &[&str]) -> Value {
    let resources: Vec<Value> = namespaces
        .iter()
        .map(|name| json!({"version": "v1", "kind": "Namespace", "name": name, "status": "Synced"}))
        .collect();
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": format!("u-{name}"),
            "finalizers": ["resources-finalizer.argocd.argoproj.io"], "annotations": {}},
        "spec": {"project": "shop", "source": {"repoURL": "https://git.example.com/a", "path": name},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name}},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"}, "resourceHealthSource": "appTree",
            "resources": resources}})
}

fn terminating(mut object: Value, since: &str) -> Value {
    object["metadata"]["deletionTimestamp"] = json!(since);
    object
}

fn generated_by(mut application: Value, set: &str) -> Value {
    application["metadata"]["ownerReferences"] = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "name": set, "uid": format!("u-{set}"), "controller": true}]);
    application
}

fn set(name: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": {},
        "metadata": {"name": name, "namespace": "argocd", "uid": format!("u-{name}"), "annotations": {}}})
}

#[track_caller]
fn refused(response: &Response, parts: &[&str]) {
    let said = said(response);
    assert!(!response.allowed, "{said}");
    assert!(response.message.chars().count() <= 1000, "{}", response.message);
    for part in parts {
        assert!(said.contains(&part.to_lowercase()), "no `{part}` in {said}");
    }
}

#[track_caller]
fn silent(response: &Response) {
    assert!(response.allowed && response.warnings.is_empty(), "{}", said(response));
}

// ---- what is wrong with an approval

#[test]
fn every_missing_or_invalid_field_has_its_own_sentence() {
    let strict = with("rules: {namespaceApproval: {requireReason: true, approvers: people, fourEyes: true}}");
    let late = "2026-11-29T16:00:00Z";
    for (annotations, sentence) in [
        (json!({}), "nobody approved its deletion"),
        (approval("", late, "u-shop"), "deletion-approved-by is missing"),
        (approval("alice", "", "u-shop"), "deletion-approved-until is missing"),
        (approval("alice", late, ""), "deletion-approved-uid is missing"),
        (approval("alice", "soon", "u-shop"), "has no end"),
        (approval("alice", "2026-11-29T11:59:59Z", "u-shop"), "by alice expired at 2026-11-29t11:59:59z"),
        (approval("alice", "2026-12-01T12:00:00Z", "u-shop"), "ends too far ahead"),
        (approval("alice", late, "u-before"), "approved for an earlier namespace of this name"),
        (approval("alice", late, "u-shop"), "gives no reason"),
        (approval("system:serviceaccount:ci:bot", late, "u-shop"), "wants a person to approve"),
        (approval("bob", late, "u-shop"), "bob approved the deletion and so may not delete it"),
    ] {
        let shop = namespace("shop", annotations);
        refused(&delete("bob", &shop, std::slice::from_ref(&shop), &strict), &["namespace shop", sentence]);
    }
}

#[test]
fn refusal_holds_the_command_that_solves_it() {
    let shop = namespace("shop", json!({}));
    let response =
        delete("bob", &shop, std::slice::from_ref(&shop), &with("rules: {namespaceApproval: {maxTTL: 90m}}"));
    refused(
        &response,
        &[
            "cascade-guard approve shop --for 90m",
            "deletion-approved-until=2026-11-29T13:30:00Z",
            "deletion-approved-uid=u-shop",
        ],
    );
}

#[test]
fn namespace_made_anew_under_a_copied_approval_is_not_approved() {
    let mut shop = approved("shop");
    shop["metadata"]["uid"] = json!("u-anew");
    refused(&delete("bob", &shop, std::slice::from_ref(&shop), &enforced()), &["earlier Namespace of this name"]);
}

// ---- who is asked, on which path

#[test]
fn everybody_is_asked_and_everybody_may_with_an_approval() {
    let operator = "system:serviceaccount:operators:project-operator";
    for user in ["bob", "root", operator, CONTROLLER, APPSET_CONTROLLER, COLLECTOR] {
        let bare = namespace("shop", json!({}));
        refused(&delete(user, &bare, std::slice::from_ref(&bare), &enforced()), &["nobody approved"]);
        let shop = approved("shop");
        silent(&delete(user, &shop, std::slice::from_ref(&shop), &enforced()));
    }
}

#[test]
fn application_is_refused_at_the_root_for_a_namespace_in_its_cascade() {
    let app = application("shop", &["shop"]);
    let world = [app.clone(), tracked(namespace("shop", json!({})), "shop")];
    refused(
        &delete("bob", &app, &world, &enforced()),
        &["the delete of Application argocd/shop", "Namespace shop: it lacks"],
    );
    let world = [app.clone(), tracked(approved("shop"), "shop")];
    silent(&delete("bob", &app, &world, &enforced()));
}

#[test]
fn application_set_is_refused_for_a_namespace_of_one_of_its_applications() {
    let app = |name: &str| generated_by(application(name, &[name]), "previews");
    let world = [set("previews"), app("pr-1"), app("pr-2"), approved("pr-1"), namespace("pr-2", json!({}))];
    let response = delete("bob", &set("previews"), &world, &enforced());
    refused(&response, &["Namespace pr-2: it lacks"]);
    assert!(!said(&response).contains("namespace pr-1"), "{}", said(&response));
}

#[test]
fn parent_of_applications_is_refused_for_a_namespace_two_levels_down() {
    let mut parent = application("root", &[]);
    parent["status"]["resources"] = json!([{"group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
        "namespace": "argocd", "name": "shop", "status": "Synced"}]);
    let mut child = application("shop", &["shop"]);
    child["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
        json!("root:argoproj.io/Application:argocd/shop");
    let world = [parent.clone(), child.clone(), namespace("shop", json!({}))];
    refused(
        &delete("bob", &parent, &world, &enforced()),
        &["the delete of Application argocd/root", "Namespace shop: it lacks"],
    );
    let world = [parent.clone(), child, approved("shop")];
    silent(&delete("bob", &parent, &world, &enforced()));
}

#[test]
fn prune_of_a_namespace_asks_for_an_approval() {
    let mut app = application("shop", &["shop"]);
    app["status"]["resources"][0]["status"] = json!("OutOfSync");
    app["status"]["resources"][0]["requiresPruning"] = json!(true);
    let shop = tracked(namespace("shop", json!({})), "shop");
    refused(&delete(CONTROLLER, &shop, &[app.clone(), shop.clone()], &enforced()), &["nobody approved"]);
    let shop = tracked(approved("shop"), "shop");
    silent(&delete(CONTROLLER, &shop, &[app, shop.clone()], &enforced()));
}

#[test]
fn namespace_that_is_already_terminating_passes() {
    let shop = terminating(namespace("shop", json!({})), "2026-11-29T11:59:00Z");
    silent(&delete("bob", &shop, std::slice::from_ref(&shop), &enforced()));
}

#[test]
fn namespace_of_another_cluster_is_a_warning() {
    let mut app = application("shop", &["shop"]);
    app["spec"]["destination"]["server"] = json!("https://west.example.com");
    let response = delete("bob", &app, &[app.clone(), namespace("shop", json!({}))], &enforced());
    assert!(response.allowed);
    assert!(said(&response).contains("only the guard of that cluster"), "{}", said(&response));
}

// ---- cascades that were admitted

#[test]
fn approval_that_ends_during_a_cascade_strands_nothing() {
    let shop = tracked(namespace("shop", approval("alice", "2026-11-29T11:50:00Z", "u-shop")), "shop");
    let began = |since: &str| [terminating(application("shop", &["shop"]), since), shop.clone()];
    silent(&delete(CONTROLLER, &shop, &began("2026-11-29T11:49:00Z"), &enforced()));
    refused(&delete(CONTROLLER, &shop, &began("2026-11-29T11:51:00Z"), &enforced()), &["expired"]);
}

#[test]
fn broken_glass_on_an_application_reaches_the_namespace_in_its_cascade() {
    let policy = with("breakGlass: {groups: [sre]}");
    let shop = tracked(namespace("shop", json!({})), "shop");
    let mut app = application("shop", &["shop"]);
    refused(&delete("oncall", &app, &[app.clone(), shop.clone()], &policy), &["nobody approved"]);
    app["metadata"]["annotations"]["cascade-guard.io/break-glass"] = json!("INC-9");
    refused(&delete("bob", &app, &[app.clone(), shop.clone()], &policy), &["nobody approved"]);
    let response = delete("oncall", &app, &[app.clone(), shop.clone()], &policy);
    assert!(response.allowed && said(&response).contains("break-glass used (inc-9)"), "{}", said(&response));
    assert_eq!(response.audit_annotations["decision"], "break-glass");
    let world = [terminating(app, "2026-11-29T11:59:00Z"), shop.clone()];
    let response = delete(CONTROLLER, &shop, &world, &policy);
    assert!(response.allowed && said(&response).contains("break-glass used (inc-9)"), "{}", said(&response));
}

#[test]
fn broken_glass_on_an_application_set_reaches_what_it_generated() {
    let policy = with("breakGlass: {groups: [sre]}");
    let shop = tracked(namespace("pr-1", json!({})), "pr-1");
    let mut previews = set("previews");
    previews["metadata"]["annotations"]["cascade-guard.io/break-glass"] = json!("INC-9");
    let app = generated_by(application("pr-1", &["pr-1"]), "previews");
    let world = [previews.clone(), app.clone(), shop.clone()];
    assert!(delete("oncall", &previews, &world, &policy).allowed);
    assert!(delete(COLLECTOR, &app, &world, &policy).allowed);
    // Its own controller deletes them in reverse order, if it is told to.
    refused(&delete(APPSET_CONTROLLER, &app, &world, &policy), &["nobody approved"]);
    let going = [terminating(previews.clone(), "2026-11-29T11:59:00Z"), app.clone(), shop.clone()];
    assert!(delete(APPSET_CONTROLLER, &app, &going, &policy).allowed);
    let world = [previews, terminating(app, "2026-11-29T11:59:00Z"), shop.clone()];
    assert!(delete(CONTROLLER, &shop, &world, &policy).allowed);
}

/// Application `root` that holds Application `shop`, which holds Namespace `shop`; both are being deleted, `root` first.
fn two_levels() -> [Value; 3] {
    let mut root = application("root", &[]);
    root["status"]["resources"] = json!([{"group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
        "namespace": "argocd", "name": "shop", "status": "Synced"}]);
    let mut child = application("shop", &["shop"]);
    child["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
        json!("root:argoproj.io/Application:argocd/shop");
    [
        terminating(root, "2026-11-29T11:30:00Z"),
        terminating(child, "2026-11-29T11:50:00Z"),
        tracked(namespace("shop", json!({})), "shop"),
    ]
}

#[test]
fn broken_glass_reaches_what_goes_two_levels_down() {
    let policy = with("breakGlass: {groups: [sre]}");
    let [mut root, child, shop] = two_levels();
    refused(&delete(CONTROLLER, &shop, &[root.clone(), child.clone(), shop.clone()], &policy), &["nobody approved"]);
    root["metadata"]["annotations"]["cascade-guard.io/break-glass"] = json!("INC-9");
    let response = delete(CONTROLLER, &shop, &[root.clone(), child.clone(), shop.clone()], &policy);
    assert!(response.allowed && said(&response).contains("break-glass used (inc-9)"), "{}", said(&response));
    // A child that its parent's cascade passes by is not part of it.
    let mut kept = child.clone();
    kept["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] = json!("Delete=false");
    refused(&delete(CONTROLLER, &shop, &[root.clone(), kept, shop.clone()], &policy), &["nobody approved"]);
    let mut other = child;
    other["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
        json!("other:argoproj.io/Application:argocd/shop");
    let world = [root, other, application("other", &[]), shop.clone()];
    refused(&delete(CONTROLLER, &shop, &world, &policy), &["nobody approved"]);
}

#[test]
fn broken_glass_reaches_what_a_generated_application_holds_when_its_set_is_part_of_a_cascade() {
    let policy = with("breakGlass: {groups: [sre]}");
    let [mut root, mut child, shop] = two_levels();
    root["status"]["resources"][0]["kind"] = json!("ApplicationSet");
    root["status"]["resources"][0]["name"] = json!("previews");
    root["metadata"]["annotations"]["cascade-guard.io/break-glass"] = json!("INC-9");
    child["metadata"]["annotations"] = json!({});
    child = generated_by(child, "previews");
    assert!(delete(CONTROLLER, &shop, &[root.clone(), child.clone(), shop.clone()], &policy).allowed);
    child["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
    assert!(delete(COLLECTOR, &child, &[root.clone(), child.clone(), shop.clone()], &policy).allowed);
    root["metadata"]["annotations"] = json!({});
    refused(&delete(COLLECTOR, &child, &[root, child.clone(), shop], &policy), &["nobody approved"]);
}

#[test]
fn approval_and_override_of_the_root_hold_two_levels_down() {
    let [root, child, mut shop] = two_levels();
    shop["metadata"]["annotations"] = approval("alice", "2026-11-29T11:40:00Z", "u-shop");
    let shop = tracked(shop, "shop");
    silent(&delete(CONTROLLER, &shop, &[root, child, shop.clone()], &enforced()));
    let [mut root, child, shop] = two_levels();
    root["spec"]["project"] = json!("lab");
    let policy = with("overrides: [{match: {namespaces: [shop], projects: [lab]}, modes: {namespaceApproval: audit}}]");
    silent(&delete(CONTROLLER, &shop, &[root.clone(), child.clone(), shop.clone()], &policy));
    root["spec"]["project"] = json!("shop");
    refused(&delete(CONTROLLER, &shop, &[root, child, shop.clone()], &policy), &["nobody approved"]);
}

#[test]
fn glass_broken_to_delete_an_application_does_not_let_it_prune() {
    let policy = with("breakGlass: {groups: [sre]}");
    let shop = tracked(namespace("shop", json!({})), "shop");
    let mut app = application("shop", &["shop"]);
    app["metadata"]["annotations"]["cascade-guard.io/break-glass"] = json!("INC-9");
    app["status"]["resources"][0]["status"] = json!("OutOfSync");
    app["status"]["resources"][0]["requiresPruning"] = json!(true);
    refused(&delete(CONTROLLER, &shop, &[app, shop.clone()], &policy), &["nobody approved"]);
}

#[test]
fn what_is_quoted_brings_no_control_characters_into_an_answer() {
    let by = "a\u{1b}[2J\nWhat to do:\n    rm -rf";
    let shop = namespace("shop", approval(by, "2026-11-29T11:00:00Z", "u-shop"));
    let response = delete("bob", &shop, std::slice::from_ref(&shop), &enforced());
    refused(&response, &["expired"]);
    assert_eq!(response.message.matches("What to do:\n").count(), 1, "{}", response.message);
    let texts = response.message.lines().chain(response.audit_annotations.values().map(String::as_str));
    assert!(texts.flat_map(str::chars).all(|c| !c.is_control()), "{response:?}");
}

#[test]
fn glass_without_groups_is_not_broken() {
    let mut shop = namespace("shop", json!({"cascade-guard.io/break-glass": "INC-9"}));
    refused(&delete("root", &shop, std::slice::from_ref(&shop), &enforced()), &["nobody approved"]);
    shop["metadata"]["annotations"] = json!({});
    refused(&delete("root", &shop, std::slice::from_ref(&shop), &enforced()), &["nobody approved"]);
}

#[test]
fn glass_that_does_not_break_says_why() {
    let shop = namespace("shop", json!({"cascade-guard.io/break-glass": "INC-9"}));
    let said = |user: &str, options: &str| delete(user, &shop, std::slice::from_ref(&shop), &with(options)).message;
    let groups = "breakGlass: {groups: [sre, leads]}";
    assert!(
        said("bob", groups).contains(
            "cascade-guard.io/break-glass is set but does not count: bob is in none of its groups (sre, leads)"
        ),
        "{}",
        said("bob", groups)
    );
    assert!(said("bob", "{}").contains("does not count: the policy names no group"), "{}", said("bob", "{}"));
    let plain = namespace("shop", json!({}));
    let message = delete("bob", &plain, std::slice::from_ref(&plain), &with(groups)).message;
    assert!(!message.contains("does not count"), "{message}");
    let blank = namespace("shop", json!({"cascade-guard.io/break-glass": " "}));
    let message = delete("oncall", &blank, std::slice::from_ref(&blank), &with(groups)).message;
    assert!(message.contains("does not count: it gives no reason"), "{message}");
}

// ---- four eyes

#[test]
fn approver_may_not_delete_with_four_eyes_and_argocd_may_unless_it_approved() {
    let policy = with("rules: {namespaceApproval: {fourEyes: true}}");
    let shop = tracked(approved("shop"), "shop");
    let app = application("shop", &["shop"]);
    let world = [app.clone(), shop.clone()];
    refused(&delete("alice", &shop, std::slice::from_ref(&shop), &policy), &["may not delete it (four eyes)"]);
    // To approve once more would only write the same name again.
    let words =
        ["may not delete it (four eyes)", "\n- let somebody else than alice delete it while the approval lasts"];
    refused(&delete("alice", &app, &world, &policy), &words);
    silent(&delete("bob", &app, &world, &policy));
    let world = [terminating(app.clone(), "2026-11-29T11:59:00Z"), shop.clone()];
    silent(&delete(CONTROLLER, &shop, &world, &policy));
    let by_argocd =
        namespace("shop", approval("system:serviceaccount:argocd:argocd-server", "2026-11-29T16:00:00Z", "u-shop"));
    refused(&delete(CONTROLLER, &by_argocd, std::slice::from_ref(&by_argocd), &policy), &["Argo CD", "four eyes"]);
}

// ---- exemptions, overrides, modes

fn exemption(matches: &str, until: &str) -> Policy {
    with(&format!(
        "exemptions: [{{name: previews, match: {matches}, rules: [namespaceApproval], until: '{until}', reason: previews}}]"
    ))
}

#[test]
fn exemption_holds_by_name_pattern_label_and_user_until_it_ends() {
    let shop = namespace("pr-1", json!({}));
    let world = std::slice::from_ref(&shop);
    for matches in [
        "{namespaces: [pr-1]}",
        "{namespaces: ['pr-*']}",
        "{namespaces: ['pr-*'], namespaceSelector: {matchLabels: {team: previews}}}",
        "{users: [bob]}",
    ] {
        let (response, lists) = delete_counting("bob", &shop, world, &exemption(matches, "2026-11-29T12:00:01Z"));
        silent(&response);
        assert_eq!(lists, 0, "what is exempt is not looked into");
        refused(&delete("bob", &shop, world, &exemption(matches, "2026-11-29T12:00:00Z")), &["nobody approved"]);
    }
    for matches in [
        "{namespaces: [pr-2]}",
        "{namespaces: ['pr-*'], namespaceSelector: {matchLabels: {team: shop}}}",
        "{users: [alice]}",
        "{namespaces: ['pr-*'], projects: [shop]}",
    ] {
        refused(&delete("bob", &shop, world, &exemption(matches, "2027-01-01T00:00:00Z")), &["nobody approved"]);
    }
}

#[test]
fn label_alone_exempts_nothing() {
    let spec = json!({"exemptions": [{"name": "x", "match": {"namespaceSelector": {"matchLabels": {"team": "previews"}}},
        "rules": ["namespaceApproval"], "until": "2027-01-01T00:00:00Z", "reason": "x"}]});
    let error = Policy::new(serde_json::from_value::<GuardPolicySpec>(spec).unwrap()).unwrap_err();
    assert_eq!(error.field, "spec.exemptions[0].match.namespaceSelector");
}

#[test]
fn preview_goes_with_its_pull_request_but_not_by_hand() {
    let policy = exemption("{namespaces: ['pr-*'], projects: [shop]}", "2027-01-01T00:00:00Z");
    let shop = tracked(namespace("pr-1", json!({})), "pr-1");
    let app = generated_by(application("pr-1", &["pr-1"]), "previews");
    let world = [set("previews"), app.clone(), shop.clone()];
    silent(&delete(APPSET_CONTROLLER, &app, &world, &policy));
    let ending = [set("previews"), terminating(app, "2026-11-29T11:59:00Z"), shop.clone()];
    silent(&delete(CONTROLLER, &shop, &ending, &policy));
    refused(&delete("bob", &shop, &world, &policy), &["nobody approved"]);
}

#[test]
fn override_weakens_the_rule_where_it_matches() {
    let policy = with("overrides: [{match: {namespaces: ['dev-*']}, modes: {namespaceApproval: warn}}]");
    let dev = namespace("dev-1", json!({}));
    let response = delete("bob", &dev, std::slice::from_ref(&dev), &policy);
    assert!(response.allowed);
    assert!(said(&response).contains("[namespace-approval] would deny: namespace dev-1"), "{}", said(&response));
    let shop = namespace("shop", json!({}));
    refused(&delete("bob", &shop, std::slice::from_ref(&shop), &policy), &["nobody approved"]);
}

#[test]
fn override_by_project_holds_for_the_set_whose_applications_are_all_of_it() {
    let policy = with("overrides: [{match: {projects: [shop]}, modes: {namespaceApproval: audit}}]");
    let shops = ["pr-1", "pr-2"].map(|name| tracked(namespace(name, json!({})), name));
    let mut apps = ["pr-1", "pr-2"].map(|name| generated_by(application(name, &[name]), "previews"));
    let world = |apps: &[Value]| [&[set("previews")], apps, &shops].concat();
    silent(&delete("bob", &set("previews"), &world(&apps), &policy));
    apps[1]["spec"]["project"] = json!("other");
    refused(&delete("bob", &set("previews"), &world(&apps), &policy), &["nobody approved"]);
}

#[test]
fn audit_records_what_it_would_deny_and_tells_nobody() {
    let shop = namespace("shop", json!({}));
    let policy = with("rules: {namespaceApproval: {mode: audit}}");
    let response = delete("bob", &shop, std::slice::from_ref(&shop), &policy);
    silent(&response);
    assert_eq!(response.audit_annotations["decision"], "would-deny");
    assert_eq!(response.audit_annotations["rule"], "namespace-approval");
}

// ---- what is in it

/// What makes a Namespace worth a second look.
fn content(namespace: &str) -> Vec<Value> {
    let object = |api: &str, kind: &str, name: &str, finalizers: &[&str], rest: (&str, Value)| {
        json!({"apiVersion": api, "kind": kind, rest.0: rest.1,
            "metadata": {"name": name, "namespace": namespace, "finalizers": finalizers}})
    };
    vec![
        object("v1", "Pod", "web", &[], ("status", json!({"phase": "Running"}))),
        object(
            "v1",
            "PersistentVolumeClaim",
            "data",
            &["kubernetes.io/pvc-protection"],
            ("status", json!({"phase": "Bound"})),
        ),
        object("v1", "Service", "web", &[], ("spec", json!({"type": "LoadBalancer"}))),
        object("networking.k8s.io/v1", "Ingress", "web", &["ingress.k8s.aws/resources"], ("spec", json!({}))),
        object("batch/v1", "Job", "migrate", &["argocd.argoproj.io/hook-finalizer"], ("spec", json!({}))),
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "status": {"conditions": [{"type": "Available", "status": "False"}]}}),
    ]
}

#[test]
fn refusal_says_what_would_go_and_what_would_hang() {
    let shop = namespace("shop", json!({}));
    let mut world = vec![shop.clone(), application("shop", &[])];
    world.extend(content("shop"));
    let response = delete("bob", &shop, &world, &enforced());
    refused(
        &response,
        &[
            "argocd/shop",
            "1 bound PersistentVolumeClaim (data), 1 LoadBalancer (web), 1 running Pod, 1 Ingress",
            "Ingress shop/web waits for the AWS Load Balancer Controller",
            "Job shop/migrate waits for Argo CD",
            "API v1beta1.metrics.k8s.io is not available",
            "cascade-guard approve shop",
        ],
    );
}

#[test]
fn whoever_may_delete_is_warned_of_what_goes_and_what_hangs() {
    let shop = approved("shop");
    let mut world = vec![shop.clone()];
    world.extend(content("shop"));
    let response = delete("bob", &shop, &world, &enforced());
    assert!(response.allowed, "{}", said(&response));
    assert_eq!(
        response.warnings,
        [
            "[namespace-approval] Job shop/migrate waits for Argo CD (argocd.argoproj.io/hook-finalizer)",
            "[namespace-approval] Ingress shop/web waits for the AWS Load Balancer Controller (ingress.k8s.aws/resources)",
            "[namespace-approval] it stays Terminating while API v1beta1.metrics.k8s.io is not available",
            "[namespace-approval] Namespace shop takes along 1 bound PersistentVolumeClaim (data), 1 LoadBalancer (web), …",
        ]
    );
    assert!(response.warnings.iter().all(|warning| warning.chars().count() <= 120));
}

#[test]
fn approved_namespace_without_content_is_answered_with_evidence_alone() {
    let shop = approved("shop");
    let (response, lists) = delete_counting("bob", &shop, std::slice::from_ref(&shop), &enforced());
    silent(&response);
    assert_eq!(lists, 6);
    assert_eq!(response.audit_annotations.get("decision").map(String::as_str), Some("allow"));
    assert_eq!(response.audit_annotations.get("approved-by").map(String::as_str), Some("alice"));
}

#[test]
fn what_an_approved_namespace_in_a_cascade_takes_along_is_said_at_the_root() {
    let app = application("shop", &["shop"]);
    let mut world = vec![app.clone(), tracked(approved("shop"), "shop")];
    world.extend(content("shop"));
    let response = delete("bob", &app, &world, &enforced());
    assert!(response.allowed, "{}", said(&response));
    assert!(
        said(&response).contains("1 bound persistentvolumeclaim (data), 1 loadbalancer (web)"),
        "{}",
        said(&response)
    );
    // Whoever deletes it below was told at the root.
    let began =
        [terminating(application("shop", &["shop"]), "2026-11-29T11:49:00Z"), tracked(approved("shop"), "shop")];
    let world: Vec<Value> = began.into_iter().chain(content("shop")).collect();
    silent(&delete(CONTROLLER, &world[1], &world, &enforced()));
}

#[test]
fn cascade_of_many_approved_namespaces_lists_nothing() {
    let names: Vec<String> = (0..20).map(|number| format!("shop-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let app = application("shop", &names);
    let mut world: Vec<Value> = names.iter().map(|name| tracked(approved(name), "shop")).collect();
    world.push(app.clone());
    let (response, lists) = delete_counting("bob", &app, &world, &enforced());
    silent(&response);
    assert_eq!(lists, 0);
}

#[test]
fn only_the_first_two_of_many_refused_namespaces_are_looked_into() {
    let names: Vec<String> = (0..7).map(|number| format!("shop-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let app = application("shop", &names);
    let mut world: Vec<Value> = names.iter().map(|name| tracked(namespace(name, json!({})), "shop")).collect();
    world.push(app.clone());
    let (response, lists) = delete_counting("bob", &app, &world, &enforced());
    refused(&response, &["shop-0, shop-1"]);
    // Five kinds in each of the two, and the API services once.
    assert_eq!(lists, 11);
}

#[test]
fn what_is_looked_into_leaves_the_reads_to_what_decides() {
    let names: Vec<String> = (0..40).map(|number| format!("shop-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let app = application("shop", &names);
    let mut world: Vec<Value> = names.iter().map(|name| tracked(namespace(name, json!({})), "shop")).collect();
    world.push(app.clone());
    let (response, lists) = delete_counting("bob", &app, &world, &enforced());
    refused(&response, &["shop-0, shop-1"]);
    assert!(!said(&response).contains("cannot be read"), "{}", said(&response));
    assert_eq!(lists, 0);
}
