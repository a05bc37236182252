//! Applications whose comparison fails: Argo CD empties their lists, and they go on claiming what they wanted.

use cascade_guard_core::{
    argo::{Application, Clusters},
    inventory::{Inventory, LOCAL},
    object::ObjectRef,
};
use serde_json::{Value, json};

use crate::world::*;

const ROLE: &str = "rbac.authorization.k8s.io/Role shop/api";
const OLD: &str = "argoproj.io/Application argocd/old";

/// The status as Argo CD writes it when it cannot render: `Unknown`, a condition, and a list without what is not owned.
fn failing(application: Value) -> Value {
    let mut application = application;
    application["status"]["sync"]["status"] = json!("Unknown");
    application["status"]["resources"] = json!([]);
    application["status"]["conditions"] =
        json!([{"type": "ComparisonError", "message": "Failed to load target state: connection refused"}]);
    application
}

/// The same with a last sync of this phase and operation that made the Role.
fn after_a_sync(application: Value, phase: &str, operation: &Value) -> Value {
    let role = json!({"group": "rbac.authorization.k8s.io", "kind": "Role", "namespace": "shop", "name": "api", "status": "Synced"});
    let state = json!({"phase": phase, "operation": operation, "syncResult": {"resources": [role]}});
    with(application, "/status/operationState", state)
}

/// Deploys elsewhere, so that it is no unknown claimant of what goes.
fn elsewhere(application: Value) -> Value {
    with(application, "/spec/destination/namespace", "elsewhere")
}

#[test]
fn what_was_wanted_counts_until_a_comparison_says_otherwise() {
    let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
    let mut apply = |application: &Value| {
        inventory.apply_application(&serde_json::from_str::<Application<'_>>(&application.to_string()).unwrap());
        let role = ObjectRef::new("rbac.authorization.k8s.io", "Role", "shop", "api");
        inventory.claimants(inventory.key_of(LOCAL, &role), &strict()).count()
    };
    assert_eq!(apply(&app("new", &[&format!("{ROLE} OutOfSync")])), 1);
    // However often the comparison fails, and whatever of the list is left.
    assert_eq!(apply(&failing(app("new", &[]))), 1);
    assert_eq!(apply(&failing(app("new", &[]))), 1);
    let mut partial = failing(app("new", &[]));
    partial["status"]["resources"] = app("new", &["ConfigMap shop/own"])["status"]["resources"].clone();
    assert_eq!(apply(&partial), 1);
    // It can be rendered again, and the Role is no longer in it.
    assert_eq!(apply(&app("new", &["ConfigMap shop/own"])), 0);
    assert_eq!(apply(&failing(app("new", &[]))), 0);
    // Another Application of the same name starts anew.
    assert_eq!(apply(&app("new", &[ROLE])), 1);
    assert_eq!(apply(&with(failing(app("new", &[])), "/metadata/uid", "another")), 0);
}

#[test]
fn last_whole_sync_counts_where_the_list_was_never_seen() {
    let delete = |new: Value| World::new([app("old", &[ROLE]), new, object(ROLE, "old")]).delete(OLD, "alice");
    let whole = json!({"sync": {}});
    let new = || elsewhere(failing(app("new", &[])));
    refused(&delete(after_a_sync(new(), "Succeeded", &whole)), &["argocd/new"]);
    passes(&delete(after_a_sync(new(), "Failed", &whole)));
    passes(&delete(after_a_sync(new(), "Succeeded", &json!({"sync": {"dryRun": true}}))));
    passes(&delete(after_a_sync(
        new(),
        "Succeeded",
        &json!({"sync": {"resources": [{"kind": "Role", "name": "api"}]}}),
    )));
    // While it can be compared, the list alone says what it wants.
    let compared = elsewhere(app("new", &[]));
    passes(&delete(after_a_sync(compared, "Succeeded", &whole)));
}

#[test]
fn without_a_list_and_a_sync_it_is_an_unknown_claimant_where_it_deploys() {
    let delete = |new: Value| World::new([app("old", &[ROLE]), new, object(ROLE, "old")]).delete(OLD, "alice");
    let to = |namespace: &str| with(failing(app("new", &[])), "/spec/destination/namespace", namespace);
    refused(&delete(to("shop")), &["argocd/new", "cannot be compared now"]);
    passes(&delete(to("elsewhere")));
}

#[test]
fn what_was_synced_but_has_no_comparison_takes_nobody_knows_what() {
    let delete = |application: Value| World::new([application]).delete(OLD, "alice");
    let history = json!([{"id": 0, "revision": "a", "deployedAt": "2026-11-01T10:00:00Z"}]);
    let compared = with(app("old", &[]), "/status/history", history);
    passes(&delete(compared.clone()));
    let mut restored = compared;
    restored["status"].as_object_mut().unwrap().remove("reconciledAt");
    refused(&delete(restored.clone()), &["argocd/old was synced before, but lists nothing"]);
    // One that was never synced made nothing.
    restored["status"].as_object_mut().unwrap().remove("history");
    passes(&delete(restored));
}

/// An Application of which `pointer` has another shape than Argo CD gives it.
fn odd(name: &str, lists: &[&str], pointer: &str) -> Value {
    with(app(name, lists), pointer, json!(5))
}

#[test]
fn application_that_cannot_be_read_still_claims_what_it_lists() {
    for pointer in ["/spec/source", "/spec/destination/server", "/spec/project", "/metadata/labels", "/operation"] {
        let world = World::new([app("old", &[ROLE]), odd("new", &[ROLE], pointer), object(ROLE, "old")]);
        let answer = world.delete("argoproj.io/Application argocd/old", "alice");
        refused(&answer, &["Role shop/api is claimed by argocd/new"]);
    }
}

#[test]
fn application_that_cannot_be_read_may_want_whatever_is_where_it_deploys() {
    let apps = || [app("old", &["ConfigMap target/c"]), object("ConfigMap target/c", "old")];
    let world = World::new(apps().into_iter().chain([odd("new", &[], "/status/resources")]));
    let answer = world.delete("argoproj.io/Application argocd/old", "alice");
    refused(&answer, &["Application argocd/new cannot be read and may claim what would go", "kubectl get application"]);
    // One that deploys elsewhere, and one that can be read, want nothing here.
    let elsewhere = with(odd("new", &[], "/status/resources"), "/spec/destination/namespace", "other");
    let world = World::new(apps().into_iter().chain([elsewhere]));
    passes(&world.delete("argoproj.io/Application argocd/old", "alice"));
    passes(
        &World::new(apps().into_iter().chain([app("new", &[])])).delete("argoproj.io/Application argocd/old", "alice"),
    );
}

#[test]
fn one_application_that_cannot_be_read_spoils_nothing_else() {
    let world = World::new([
        app("old", &[ROLE]),
        object(ROLE, "old"),
        odd("odd", &[], "/status"),
        app("far", &["ConfigMap x/y"]),
    ]);
    passes(&world.delete("argoproj.io/Application argocd/far", "alice"));
}

#[test]
fn delete_of_an_application_that_cannot_be_read_is_judged_by_what_can_be_read() {
    let world = World::new([odd("old", &[ROLE], "/spec/source"), app("new", &[ROLE]), object(ROLE, "old")]);
    refused(&world.delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new", "argocd/old cannot be read"]);
}

#[test]
fn list_that_leaves_out_what_carries_the_marker_is_told() {
    let marked = || approved(&object("Namespace shop", "old"));
    let world = World::new([app("old", &["ConfigMap target/c"]), marked()]);
    warned(&world.delete(OLD, "bob"), &["argocd/old does not list 1 object that its marker is on"]);
    // What is listed, or marked by another, or lies in a list that is not believed, contradicts nothing.
    let quiet = |world: World| {
        let answer = world.delete(OLD, "bob");
        assert!(!answer.warnings.iter().any(|warning| warning.contains("does not list")), "{:?}", answer.warnings);
    };
    quiet(World::new([app("old", &["Namespace shop"]), marked()]));
    quiet(World::new([app("old", &["ConfigMap target/c"]), approved(&object("Namespace shop", "new"))]));
    quiet(World::new([failing(app("old", &["ConfigMap target/c"])), marked()]));
}
