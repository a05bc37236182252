//! Deletes while nothing is heard of the cluster: what is known of claims may no longer be true.

use cascade_guard_core::policy::{Mode, OnUnknown, Policy, RuleKey};
use serde_json::{Value, json};

use crate::world::*;

const WHY: &str = "nothing heard of Applications for 42 s";
const ROLE: &str = "rbac.authorization.k8s.io/Role shop/api";
const EARLIER: &str = "2026-11-29T11:00:00Z";

/// Whatever takes others along; nobody else wants any of it.
fn cascading() -> [(Value, &'static str); 4] {
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "set", "namespace": "argocd", "uid": "uid-set"}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gateways.example.com", "uid": "uid-crd"},
        "spec": {"group": "example.com", "names": {"kind": "Gateway", "plural": "gateways"}, "scope": "Namespaced"}});
    [
        (app("shop", &[ROLE]), "argoproj.io/Application argocd/shop"),
        (set, "argoproj.io/ApplicationSet argocd/set"),
        (approved(&object("Namespace shop", "")), "Namespace shop"),
        (definition, "apiextensions.k8s.io/CustomResourceDefinition gateways.example.com"),
    ]
}

#[test]
fn nothing_that_takes_others_along_begins() {
    for (stored, name) in cascading() {
        assert!(World::new([stored.clone()]).delete(name, "alice").allowed, "{name}");
        let world = World::new([stored]).stale(WHY);
        refused(&world.delete(name, "alice"), &["shared-claim", WHY, "try again"]);
    }
}

#[test]
fn on_unknown_decides_as_it_does_for_unknown_claimants() {
    let mut spec = Policy::every_rule(Mode::Enforce).spec.clone();
    spec.rules.shared_claim.on_unknown = OnUnknown::Warn;
    for (stored, name) in cascading() {
        let world = World::new([stored.clone()]).under(Policy::new(spec.clone()).unwrap()).stale(WHY);
        warned(&world.delete(name, "alice"), &[WHY]);
        let audited = strict().with_mode(RuleKey::SharedClaim, Mode::Audit);
        let answer = World::new([stored]).under(audited).stale(WHY).delete(name, "alice");
        assert!(answer.allowed, "audit refuses nothing: {}", answer.message);
    }
}

#[test]
fn a_cascade_that_runs_is_not_stranded() {
    let child = app("child", &[ROLE]);
    let parent = with(app("parent", &["argoproj.io/Application argocd/child"]), "/metadata/deletionTimestamp", EARLIER);
    let world = || World::new([parent.clone(), child.clone(), object(ROLE, "parent")]).stale(WHY);
    passes(&world().delete("argoproj.io/Application argocd/child", CONTROLLER));
    let going = with(child.clone(), "/metadata/deletionTimestamp", EARLIER);
    let world = World::new([parent.clone(), going.clone(), object(ROLE, "child")]).stale(WHY);
    passes(&world.delete(ROLE, CONTROLLER));
    passes(&world.delete("argoproj.io/Application argocd/child", "alice"));
}

#[test]
fn a_namespace_that_is_being_emptied_and_garbage_go_on() {
    let namespace = with(object("Namespace shop", ""), "/metadata/deletionTimestamp", EARLIER);
    let world = World::new([namespace, object(ROLE, "")]).stale(WHY);
    passes(&world.delete(ROLE, NAMESPACE_CONTROLLER));
    let owned = with(object(ROLE, ""), "/metadata/ownerReferences", json!([{"kind": "X", "name": "x", "uid": "gone"}]));
    passes(&World::new([owned]).stale(WHY).delete(ROLE, COLLECTOR));
}

#[test]
fn what_takes_nothing_along_passes() {
    let alone = with(app("shop", &[ROLE]), "/metadata/finalizers", json!([]));
    passes(&World::new([alone]).stale(WHY).delete("argoproj.io/Application argocd/shop", "alice"));
    // A single object is judged by what is known, and that is said.
    warned(&World::new([object(ROLE, "")]).stale(WHY).delete(ROLE, "alice"), &["known before", WHY]);
    let contested = World::new([app("one", &[ROLE]), app("two", &[ROLE]), object(ROLE, "one")]).stale(WHY);
    refused(&contested.delete(ROLE, "alice"), &["is claimed by"]);
}

#[test]
fn a_prune_of_a_child_begins_something_too() {
    let parent = app("parent", &["argoproj.io/Application argocd/child Prune"]);
    let objects = [parent, app("child", &[ROLE]), object(ROLE, "child")];
    let name = "argoproj.io/Application argocd/child";
    assert!(World::new(objects.clone()).delete(name, CONTROLLER).allowed);
    refused(&World::new(objects).stale(WHY).delete(name, CONTROLLER), &[WHY]);
}
