//! Whose mode counts: the namespaces a finding covers, and what may waive it there.

use serde_json::{Value, json};

use crate::{support::policy, world::*};

const ROLE: &str = "rbac.authorization.k8s.io/Role shop/api";
const FOOS: &str = "apiextensions.k8s.io/CustomResourceDefinition foos.example.com";

fn override_of(matched: Value, modes: Value) -> Value {
    json!({"overrides": [{"match": matched, "modes": modes}]})
}

/// Everything enforces, and these fields on top.
fn strict_but(more: Value) -> cascade_guard_core::policy::Policy {
    let enforce = json!({"mode": "enforce"});
    let mut spec = json!({"rules": {"sharedClaim": enforce, "sharedUpdate": enforce, "namespaceApproval": enforce,
        "syncWave": enforce, "runtimeDependency": enforce, "controlPlane": enforce}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    policy(spec)
}

fn exempt(rule: &str, namespaces: &[&str]) -> Value {
    json!({"exemptions": [{"name": "e", "match": {"namespaces": namespaces}, "rules": [rule],
        "until": "2027-01-01T00:00:00Z", "reason": "r"}]})
}

fn definition() -> Value {
    with(object(FOOS, ""), "/spec", json!({"group": "example.com", "names": {"kind": "Foo", "plural": "foos"}}))
}

/// A definition with instances in these namespaces, as one Application lists them.
fn instances(namespaces: [&str; 2]) -> World {
    let lists = namespaces.map(|namespace| format!("example.com/Foo {namespace}/x"));
    World::new([definition(), app("new", &[&lists[0], &lists[1]])])
}

#[test]
fn strictest_of_the_namespaces_of_the_instances_decides() {
    let lenient = || strict_but(override_of(json!({"namespaces": ["sandbox"]}), json!({"sharedClaim": "audit"})));
    for order in [["sandbox", "prod"], ["prod", "sandbox"]] {
        refused(&instances(order).under(lenient()).delete(FOOS, "alice"), &["argocd/new"]);
    }
    passes(&instances(["sandbox", "sandbox"]).under(lenient()).delete(FOOS, "alice"));
    // And the other way round: one namespace is stricter than the rest.
    let spec = json!({"rules": {"sharedClaim": {"mode": "audit"}},
        "overrides": [{"match": {"namespaces": ["prod"]}, "modes": {"sharedClaim": "enforce"}}]});
    for order in [["sandbox", "prod"], ["prod", "sandbox"]] {
        refused(&instances(order).under(policy(spec.clone())).delete(FOOS, "alice"), &["argocd/new"]);
    }
    passes(&instances(["sandbox", "test"]).under(policy(spec)).delete(FOOS, "alice"));
}

#[test]
fn exemption_counts_only_where_it_covers_every_instance() {
    for order in [["pr-1", "prod"], ["prod", "pr-1"]] {
        let world = instances(order).under(strict_but(exempt("sharedClaim", &["pr-*"])));
        refused(&world.delete(FOOS, "alice"), &["argocd/new"]);
    }
    passes(&instances(["pr-1", "pr-2"]).under(strict_but(exempt("sharedClaim", &["pr-*"]))).delete(FOOS, "alice"));
}

#[test]
fn instances_of_several_claimants_are_judged_claimant_by_claimant() {
    let world = World::new([
        definition(),
        app("new", &["example.com/Foo pr-1/x", "example.com/Foo pr-2/x"]),
        app("other", &["example.com/Foo prod/x"]),
    ]);
    let answer = world.under(strict_but(exempt("sharedClaim", &["pr-*"]))).delete(FOOS, "alice");
    refused(&answer, &["argocd/other"]);
    assert!(!answer.message.contains("argocd/new"), "{}", answer.message);
}

/// An Application that was never compared and deploys into `namespace`.
fn fresh(namespace: &str) -> Value {
    let app = with(app("fresh", &[]), "/status", json!({}));
    with(app, "/spec/destination/namespace", namespace)
}

#[test]
fn unknown_claimant_is_judged_by_the_namespace_touched() {
    let config = "ConfigMap pr-1/cfg";
    let world = |more: Value| {
        World::new([app("preview", &[config]), fresh("pr-1"), object(config, "preview")]).under(strict_but(more))
    };
    let root = "argoproj.io/Application argocd/preview";
    refused(&world(json!({})).delete(root, "alice"), &["argocd/fresh"]);
    passes(&world(exempt("sharedClaim", &["pr-*"])).delete(root, "alice"));
    // The namespace that the deleted Application lives in has nothing to do with it.
    refused(&world(exempt("sharedClaim", &["argocd"])).delete(root, "alice"), &["argocd/fresh"]);
    passes(&world(override_of(json!({"namespaces": ["pr-1"]}), json!({"sharedClaim": "audit"}))).delete(root, "alice"));
}

#[test]
fn unknown_claimant_of_the_same_source_is_judged_by_all_that_goes() {
    // It deploys elsewhere, but renders what the deleted Application renders: nobody knows what of it is meant.
    let (first, second) = ("ConfigMap pr-1/cfg", "ConfigMap prod/cfg");
    let twin = with(fresh("elsewhere"), "/spec/source/path", "preview");
    let world = |lists: &[&str]| {
        let objects = lists.iter().map(|text| object(text, "preview")).collect::<Vec<_>>();
        World::new([vec![app("preview", lists), twin.clone()], objects].concat())
            .under(strict_but(exempt("sharedClaim", &["pr-*"])))
    };
    let root = "argoproj.io/Application argocd/preview";
    passes(&world(&[first]).delete(root, "alice"));
    refused(&world(&[first, second]).delete(root, "alice"), &["argocd/fresh"]);
}

#[test]
fn namespace_on_another_cluster_is_judged_by_its_own_name() {
    let remote = with(app("far", &["Namespace pr-1"]), "/spec/destination", json!({"server": "https://far:6443"}));
    let world = |more: Value| World::new([remote.clone()]).under(strict_but(more));
    let root = "argoproj.io/Application argocd/far";
    warned(&world(json!({})).delete(root, "alice"), &["Namespace pr-1 on https://far:6443 goes too"]);
    passes(&world(exempt("namespaceApproval", &["pr-*"])).delete(root, "alice"));
    warned(&world(exempt("namespaceApproval", &["argocd"])).delete(root, "alice"), &["Namespace pr-1"]);
}

#[test]
fn rights_lost_in_several_namespaces_are_judged_by_the_strictest() {
    let binding = |namespace: &str| {
        let binding = object(&format!("rbac.authorization.k8s.io/RoleBinding {namespace}/lead"), "rbac");
        let binding = with(binding, "/roleRef", json!({"kind": "ClusterRole", "name": "lead"}));
        with(binding, "/subjects", json!([{"kind": "ServiceAccount", "namespace": "jobs", "name": "flink"}]))
    };
    let pod = with(object("Pod jobs/one", ""), "/spec", json!({"serviceAccountName": "flink"}));
    let world = |second: &str| {
        let second_text = format!("rbac.authorization.k8s.io/RoleBinding {second}/lead");
        let rbac = app("rbac", &["rbac.authorization.k8s.io/RoleBinding pr-1/lead", &second_text]);
        World::new([rbac, binding("pr-1"), binding(second), pod.clone()])
            .under(strict_but(exempt("runtimeDependency", &["pr-*"])))
    };
    let root = "argoproj.io/Application argocd/rbac";
    passes(&world("pr-2").delete(root, "alice"));
    refused(&world("prod").delete(root, "alice"), &["Pod jobs/one loses"]);
}

#[test]
fn prune_does_not_take_over_the_mode_of_the_namespace_its_application_lives_in() {
    let lenient = |rule: &str| {
        let modes = json!({rule: "warn"});
        strict_but(override_of(json!({"namespaces": ["team-a"]}), modes))
    };
    let prune = format!("{ROLE} Prune");
    let world = || {
        World::new([app("team-a/web", &[&prune]), app("new", &[ROLE]), object(ROLE, "team-a_web")])
            .under(lenient("sharedClaim"))
    };
    refused(&world().delete(ROLE, CONTROLLER), &["argocd/new"]);
    // A Namespace neither.
    let world = World::new([app("team-a/web", &["Namespace shop Prune"]), object("Namespace shop", "team-a_web")]);
    refused(&world.under(lenient("namespaceApproval")).delete("Namespace shop", CONTROLLER), &["namespace-approval"]);
    // What is pruned from that namespace itself is waived there.
    let role = "rbac.authorization.k8s.io/Role team-a/api";
    let world = World::new([app("team-a/web", &[&format!("{role} Prune")]), app("new", &[role])]);
    let world = world.under(lenient("sharedClaim"));
    warned(&world.judge(&object(role, "team-a_web"), CONTROLLER, json!({})), &["argocd/new"]);
}

#[test]
fn replacement_does_not_take_over_the_mode_of_the_namespace_its_application_lives_in() {
    let running = json!({"sync": {"syncOptions": ["Replace=true", "Force=true"]}});
    let syncing = with(app("web", &["Namespace shop"]), "/operation", running.clone());
    let syncing = with(syncing, "/status/operationState", json!({"phase": "Running", "operation": running}));
    let world = World::new([syncing, object("Namespace shop", "web")]);
    let lenient = override_of(json!({"namespaces": ["argocd"]}), json!({"namespaceApproval": "audit"}));
    refused(&world.under(strict_but(lenient)).delete("Namespace shop", CONTROLLER), &["namespace-approval"]);
}

#[test]
fn prune_is_judged_by_the_project_of_the_application_that_prunes() {
    let prune = format!("{ROLE} Prune");
    let pruning = with(app("old", &[&prune]), "/spec/project", "legacy");
    let world = |project: &str| {
        let more = override_of(json!({"projects": [project]}), json!({"sharedClaim": "audit"}));
        World::new([pruning.clone(), app("new", &[ROLE]), object(ROLE, "old")]).under(strict_but(more))
    };
    passes(&world("legacy").delete(ROLE, CONTROLLER));
    refused(&world("default").delete(ROLE, CONTROLLER), &["argocd/new"]);
}

#[test]
fn admitted_cascade_still_waives_what_lies_below_it() {
    let going = with(app("team-a/web", &[ROLE]), "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
    let more = override_of(json!({"namespaces": ["team-a"]}), json!({"sharedClaim": "audit"}));
    let world = World::new([going, app("new", &[ROLE]), object(ROLE, "team-a_web")]).under(strict_but(more));
    passes(&world.delete(ROLE, CONTROLLER));
}

const GLASS: &str = "/metadata/annotations/cascade-guard.io~1break-glass";

#[test]
fn blank_reason_breaks_no_glass_below_a_cascade() {
    let world = |reason: &str| {
        let going = with(app("old", &[ROLE]), "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
        World::new([with(going, GLASS, reason), app("new", &[ROLE]), object(ROLE, "old")])
            .under(strict_but(json!({"breakGlass": {"groups": ["on-call"]}})))
    };
    for blank in ["", " ", " \t\n"] {
        refused(&world(blank).delete(ROLE, CONTROLLER), &["argocd/new"]);
    }
    warned(&world("  CHG-1 ").delete(ROLE, CONTROLLER), &["CHG-1"]);
}

#[test]
fn blank_reason_on_an_applicationset_breaks_no_glass() {
    let owner =
        json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set", "uid": "uid-set"}]);
    let world = |on_set: &str, on_app: &str| {
        let set = with(object("argoproj.io/ApplicationSet argocd/set", ""), GLASS, on_set);
        let going = with(app("old", &[ROLE]), "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
        let going = with(with(going, GLASS, on_app), "/metadata/ownerReferences", owner.clone());
        World::new([set, going, app("new", &[ROLE]), object(ROLE, "old")])
            .under(strict_but(json!({"breakGlass": {"groups": ["on-call"]}})))
    };
    refused(&world(" ", " ").delete(ROLE, CONTROLLER), &["argocd/new"]);
    // A blank one hides none that is given further up.
    warned(&world("CHG-2", " ").delete(ROLE, CONTROLLER), &["CHG-2"]);
}
