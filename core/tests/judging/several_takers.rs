//! Deletes that more than one Application may be behind, and what each of them answers for.

use serde_json::{Value, json};

use crate::world::*;

const CFG: &str = "ConfigMap shop/cfg";
const SHOP: &str = "Namespace shop";
const SYNCS: &str = "/operation/sync";
const TRACKING_ID: &str = "/metadata/annotations/argocd.argoproj.io~1tracking-id";

/// The same cluster in every order.
fn in_both_orders(objects: Vec<Value>) -> [World; 2] {
    let backwards = objects.iter().rev().cloned().collect::<Vec<_>>();
    [objects, backwards].map(|objects| World::new([argocd_cm(json!({}))].into_iter().chain(objects)))
}

fn going(app: Value) -> Value {
    with(app, "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z")
}

fn generated(name: &str, lists: &[&str]) -> Value {
    let owner =
        json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "gone", "uid": "uid-gone"}]);
    with(app(name, lists), "/metadata/ownerReferences", owner)
}

#[test]
fn of_two_syncs_the_one_that_wants_an_object_explains_its_prune_in_any_order() {
    let syncs = |app: Value| with(app, SYNCS, json!({"prune": true}));
    for names in [["first", "second"], ["second", "first"]] {
        let [wants, lists] = names;
        let objects = vec![
            syncs(app(wants, &[CFG])),
            with(syncs(app(lists, &[&format!("{CFG} Hook")])), "/status/sync/status", "OutOfSync"),
            object(CFG, ""),
        ];
        for world in in_both_orders(objects.clone()) {
            passes(&world.delete(CFG, CONTROLLER));
        }
        let third = [objects, vec![app("third", &[CFG])]].concat();
        for world in in_both_orders(third) {
            refused(&world.delete(CFG, CONTROLLER), &["argocd/third"]);
        }
    }
}

#[test]
fn of_a_sync_that_prunes_and_one_that_does_not_the_marker_decides_and_else_the_worse() {
    let prunes = || with(app("prunes", &[CFG]), SYNCS, json!({"prune": true}));
    let applies = || with(app("applies", &[CFG]), SYNCS, json!({}));
    for world in in_both_orders(vec![prunes(), applies(), object(CFG, "")]) {
        refused(&world.delete(CFG, CONTROLLER), &["argocd/applies"]);
    }
    for world in in_both_orders(vec![prunes(), applies(), object(CFG, "applies")]) {
        warned(&world.delete(CFG, CONTROLLER), &["comes back", "argocd/prunes"]);
    }
}

#[test]
fn of_two_cascades_that_list_what_nobody_marks_either_took_it() {
    for names in [["first", "second"], ["second", "first"]] {
        let [parent, other] = names;
        let child = with(app("child", &[CFG]), TRACKING_ID, format!("{parent}:argoproj.io/Application:target/child"));
        let objects = vec![going(app(parent, &[CFG])), going(app(other, &[CFG])), child, object(CFG, "")];
        for world in in_both_orders(objects.clone()) {
            passes(&world.delete(CFG, CONTROLLER));
        }
        let stranger = [objects, vec![app("stranger", &[CFG])]].concat();
        for world in in_both_orders(stranger) {
            refused(&world.delete(CFG, CONTROLLER), &["argocd/stranger"]);
        }
    }
}

#[test]
fn sibling_answers_for_what_carries_its_marker_and_for_nothing_else() {
    let world = World::new([
        argocd_cm(json!({})),
        generated("marks", &[]),
        generated("lists", &[CFG]),
        app("stranger", &[CFG]),
        object(CFG, "marks"),
    ]);
    passes(&world.delete("argoproj.io/Application argocd/lists", COLLECTOR));
    refused(&world.delete("argoproj.io/Application argocd/marks", COLLECTOR), &["argocd/stranger", "cfg"]);
}

#[test]
fn namespace_that_a_cascade_has_taken_already_holds_up_no_child_of_it() {
    let child = || app("child", &[SHOP]);
    let world = |root: Value| World::new([argocd_cm(json!({})), root, child()]);
    let root = || app("root", &["argoproj.io/Application argocd/child"]);
    // Its own list still says Synced.
    passes(&world(going(root())).delete("argoproj.io/Application argocd/child", CONTROLLER));
    // At the root list and read contradict, and nobody has approved anything.
    refused(&world(root()).delete("argoproj.io/Application argocd/root", "alice"), &["namespace-approval"]);
    // One that is there needs its approval all the same.
    let there = World::new([argocd_cm(json!({})), going(root()), child(), object(SHOP, "child")]);
    refused(&there.delete("argoproj.io/Application argocd/child", CONTROLLER), &["namespace-approval"]);
}

#[test]
fn siblings_are_not_held_up_by_a_namespace_that_has_gone_with_one_of_them() {
    let world = World::new([argocd_cm(json!({})), generated("first", &[SHOP]), generated("second", &[SHOP])]);
    passes(&world.delete("argoproj.io/Application argocd/first", COLLECTOR));
}

#[test]
fn child_of_a_cascade_that_may_take_it_takes_its_own_children_along() {
    let root = with(
        app("root", &["argoproj.io/Application argocd/child"]),
        "/spec/syncPolicy",
        json!({"automated": {"selfHeal": true}}),
    );
    let unmarked = format!("/metadata/annotations/{}", UNMARKED.replace('/', "~1"));
    // Nothing names the root on the child, so it only may go; once it does, what carries its marker surely goes.
    let child = with(app("child", &["argoproj.io/Application argocd/grandchild"]), &unmarked, "");
    let grandchild = app("grandchild", &["argoproj.io/Application argocd/child"]);
    let world = World::new([argocd_cm(json!({})), going(root), child, grandchild]);
    passes(&world.delete("argoproj.io/Application argocd/child", CONTROLLER));
}

#[test]
fn sync_that_failed_or_was_of_a_part_does_not_say_what_a_cascade_takes() {
    let row = json!({"kind": "ConfigMap", "namespace": "shop", "name": "cfg", "status": "Synced", "version": "v1"});
    let state = |phase: &str, sync: Value| json!({"phase": phase, "operation": {"sync": sync}, "syncResult": {"resources": [row]}});
    let lost = |state: Value| {
        let app = with(app("web", &[]), "/status/sync/status", "Unknown");
        let app = with(app, "/status/history", json!([{"id": 0}]));
        World::new([argocd_cm(json!({})), with(app, "/status/operationState", state), object(CFG, "web")])
            .delete("argoproj.io/Application argocd/web", "alice")
    };
    let whole = lost(state("Succeeded", json!({})));
    assert!(whole.allowed, "{}", whole.message);
    let part = json!({"resources": [{"kind": "ConfigMap", "name": "cfg"}]});
    for state in [
        state("Failed", json!({})),
        state("Error", json!({})),
        state("Succeeded", part),
        state("Succeeded", json!({"dryRun": true})),
    ] {
        refused(&lost(state), &["argocd/web", "not known"]);
    }
}

#[test]
fn children_of_siblings_go_with_their_parents() {
    let child = with(app("child", &[CFG]), TRACKING_ID, "second:argoproj.io/Application:target/child");
    let objects = |set: Vec<Value>| {
        let pair = [generated("first", &[CFG]), generated("second", &["argoproj.io/Application argocd/child"])];
        World::new([argocd_cm(json!({})), object(CFG, "first"), child.clone()].into_iter().chain(pair).chain(set))
    };
    let first = "argoproj.io/Application argocd/first";
    // The set was admitted with all of them.
    passes(&objects(Vec::new()).delete(first, COLLECTOR));
    // Deleted alone, it takes what the child of the other still wants.
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": {},
        "metadata": {"name": "gone", "namespace": "argocd", "uid": "uid-gone"}});
    passes(&objects(vec![set.clone()]).delete("argoproj.io/ApplicationSet argocd/gone", "alice"));
    refused(&objects(vec![set]).delete(first, "alice"), &["argocd/child"]);
}

#[test]
fn application_that_keeps_its_objects_takes_none_while_it_runs_an_operation() {
    let keeps = |more: Value| {
        let app = with(app("keeps", &[CFG]), "/spec/syncPolicy", json!({"syncOptions": ["Delete=false"]}));
        let app = with(app, TRACKING_ID, "parent:argoproj.io/Application:target/keeps");
        let parent = self::app("parent", &["argoproj.io/Application argocd/keeps", CFG]);
        World::new([argocd_cm(json!({})), parent, with(app, SYNCS, json!({})), self::app("stranger", &[CFG]), more])
            .delete("argoproj.io/Application argocd/parent", "alice")
    };
    passes(&keeps(object(CFG, "")));
    // What the object says of itself counts before what its Application says.
    let options = "/metadata/annotations/argocd.argoproj.io~1sync-options";
    refused(&keeps(with(object(CFG, ""), options, "Delete=true")), &["argocd/stranger"]);
}

#[test]
fn another_claimant_does_not_make_an_unknown_one_known() {
    let unknown = with(app("unknown", &[]), "/status", json!({}));
    let cfg = "ConfigMap target/cfg";
    let world = |more: Vec<Value>, marker: &str| {
        World::new([argocd_cm(json!({})), object(cfg, marker), unknown.clone()].into_iter().chain(more))
            .delete(cfg, CONTROLLER)
    };
    refused(&world(Vec::new(), ""), &["argocd/unknown"]);
    refused(&world(vec![app("claims", &[cfg])], ""), &["argocd/unknown"]);
    // What carries the marker of a known Application is that one's business.
    passes(&world(vec![app("claims", &[cfg])], "claims"));
}
