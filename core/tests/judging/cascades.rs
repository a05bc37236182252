//! `shared-claim` and `namespace-approval` below an admitted cascade, and around what is already going.

use serde_json::json;

use crate::world::*;

const ROLE: &str = "rbac.authorization.k8s.io/Role shop/api";

/// `old` and `new` both want the Role; the marker says `owner`.
fn shared(owner: &str) -> [serde_json::Value; 3] {
    [app("old", &[&format!("{ROLE} OutOfSync")]), app("new", &[ROLE]), object(ROLE, owner)]
}

const EARLIER: &str = "2026-11-29T11:00:00Z";

/// `app` with its deletion begun.
fn going(app: serde_json::Value) -> serde_json::Value {
    with(app, "/metadata/deletionTimestamp", EARLIER)
}

/// `top` holds `first` and `second`, which share the Role; the cascade of `top` has come to `first` only.
fn cascade_of_two_levels() -> [serde_json::Value; 4] {
    let top = app("top", &["argoproj.io/Application argocd/first", "argoproj.io/Application argocd/second"]);
    [going(top), going(app("first", &[ROLE])), app("second", &[&format!("{ROLE} OutOfSync")]), object(ROLE, "first")]
}

#[test]
fn a_child_of_a_child_goes_although_its_cousin_is_not_marked_yet() {
    passes(&World::new(cascade_of_two_levels()).delete(ROLE, CONTROLLER));
    // An outsider's claim still counts.
    let world = World::new(cascade_of_two_levels().into_iter().chain([app("new", &[ROLE])]));
    refused(&world.delete(ROLE, CONTROLLER), &["argocd/new"]);
    // So does the cousin's own once nothing takes it.
    let [_, first, second, role] = cascade_of_two_levels();
    refused(&World::new([app("top", &[]), first, second, role]).delete(ROLE, CONTROLLER), &["argocd/second"]);
}

#[test]
fn a_cascade_from_a_terminating_applicationset_is_one_cascade() {
    let [_, first, second, role] = cascade_of_two_levels();
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "set", "namespace": "argocd", "uid": "uid-set", "deletionTimestamp": EARLIER}});
    let owner =
        json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set", "uid": "uid-set"}]);
    let middle = with(app("middle", &["argoproj.io/Application argocd/first"]), "/metadata/ownerReferences", owner);
    let top = app("top", &["argoproj.io/ApplicationSet argocd/set", "argoproj.io/Application argocd/second"]);
    passes(&World::new([going(top), set, going(middle), first, second, role]).delete(ROLE, CONTROLLER));
}

#[test]
fn what_was_waived_at_the_top_is_waived_two_levels_down() {
    let namespace = object("Namespace shop", "first");
    let world = |top: serde_json::Value| {
        World::new([
            going(top),
            going(with(app("first", &["Namespace shop"]), "/spec/project", "p")),
            namespace.clone(),
        ])
    };
    let top = || with(app("top", &["argoproj.io/Application argocd/first"]), "/spec/project", "sandbox");
    refused(&world(top()).delete("Namespace shop", CONTROLLER), &["cascade-guard.io/deletion-approved"]);
    for matched in [json!({"projects": ["sandbox"]}), json!({"projects": ["sandbox"], "namespaces": ["shop"]})] {
        let policy = crate::support::policy(json!({"rules": {"namespaceApproval": {"mode": "enforce"}},
            "overrides": [{"match": matched, "modes": {"namespaceApproval": "audit"}}]}));
        passes(&world(top()).under(policy).delete("Namespace shop", CONTROLLER));
    }
    let policy = crate::support::policy(
        json!({"rules": {"namespaceApproval": {"mode": "enforce"}}, "breakGlass": {"groups": ["on-call"]}}),
    );
    let broken = with(top(), "/metadata/annotations/cascade-guard.io~1break-glass", "CHG-1");
    warned(&world(broken).under(policy).delete("Namespace shop", CONTROLLER), &["CHG-1"]);
}

#[test]
fn an_approval_is_judged_at_the_time_the_first_cascade_began() {
    let until = "/metadata/annotations/cascade-guard.io~1deletion-approved-until";
    let namespace = with(approved(&object("Namespace shop", "first")), until, "2026-11-29T11:30:00Z");
    let first = with(app("first", &["Namespace shop"]), "/metadata/deletionTimestamp", "2026-11-29T11:45:00Z");
    let world = |top| World::new([top, first.clone(), namespace.clone()]);
    let top = app("top", &["argoproj.io/Application argocd/first"]);
    passes(&world(going(top.clone())).delete("Namespace shop", CONTROLLER));
    refused(&world(top).delete("Namespace shop", CONTROLLER), &["expired"]);
}

#[test]
fn what_is_already_going_is_not_contested() {
    let [old, new, role] = shared("old");
    let application = "argoproj.io/Application argocd/old";
    passes(&World::new([old.clone(), new.clone(), going(role.clone())]).delete(application, "alice"));
    let namespace = object("Namespace shop", "old");
    passes(&World::new([old, new.clone(), role.clone(), going(namespace.clone())]).delete(application, "alice"));
    let holder = app("old", &["Namespace shop", ROLE]);
    passes(&World::new([holder, new, role, going(namespace)]).delete(application, "alice"));
    // A child whose deletion has begun cannot be kept by a second parent, but what it holds can still be claimed.
    let child = "argoproj.io/Application argocd/child";
    let parents = || [app("old", &[child]), app("new", &[child])];
    let held = going(with(
        app("child", &[ROLE]),
        "/metadata/annotations",
        json!({"argocd.argoproj.io/tracking-id": "old:argoproj.io/Application:argocd/child"}),
    ));
    passes(&World::new(parents().into_iter().chain([held.clone()])).delete(application, "alice"));
    let third = [held, app("third", &[ROLE]), object(ROLE, "child")];
    refused(&World::new(parents().into_iter().chain(third)).delete(application, "alice"), &["argocd/third"]);
}

#[test]
fn who_marks_an_object_may_replace_it_while_another_application_that_lists_it_goes() {
    let replacing =
        with(app("new", &[ROLE]), "/operation", json!({"sync": {"syncOptions": ["Replace=true", "Force=true"]}}));
    let old = going(app("old", &[&format!("{ROLE} OutOfSync")]));
    passes(&World::new([old.clone(), replacing.clone(), object(ROLE, "new")]).delete(ROLE, CONTROLLER));
    refused(&World::new([old, replacing, object(ROLE, "old")]).delete(ROLE, CONTROLLER), &["argocd/new"]);
}

#[test]
fn more_objects_than_may_be_read_are_judged_by_the_lists_of_both_sides() {
    let names: Vec<String> = (0..80).map(|number| format!("ConfigMap shop/c{number}")).collect();
    let lists = |state: &str| names.iter().map(|name| format!("{name} {state}")).collect::<Vec<_>>();
    let world = |old: &str, marker: &str| {
        let app = |name: &str, lists: Vec<String>| app(name, &lists.iter().map(String::as_str).collect::<Vec<_>>());
        let apps = [app("old", lists(old)), app("new", lists("Synced"))];
        World::new(apps.into_iter().chain(names.iter().map(|name| object(name, marker))))
    };
    passes(&world("OutOfSync", "new").delete("argoproj.io/Application argocd/old", "alice"));
    // The lists do not agree, so what was not read is not spared.
    let response = world("Synced", "new").delete("argoproj.io/Application argocd/old", "alice");
    refused(&response, &["argocd/new", "more than 50 objects would have to be read"]);
    refused(&world("OutOfSync", "old").delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
}

#[test]
fn an_application_that_cannot_be_read_is_not_taken_to_hold_nothing() {
    let [old, new, role] = shared("old");
    let garbled = with(old.clone(), "/spec/source", "not a source");
    let world = World::new([old, new, role]);
    refused(&world.judge(&garbled, "alice", json!({})), &["argocd/new", "cannot be read"]);
    let nothing = with(garbled, "/metadata/finalizers", json!([]));
    passes(&world.judge(&nothing, "alice", json!({})));
    // Fields that are null are fields that are absent.
    let [old, new, role] = shared("old");
    let null = with(
        old,
        "/status/resources",
        json!([{"group": null, "kind": "ConfigMap", "name": "c", "namespace": null, "status": null}, entry_of_role()]),
    );
    refused(&World::new([null, new, role]).delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
}

fn entry_of_role() -> serde_json::Value {
    json!({"group": "rbac.authorization.k8s.io", "kind": "Role", "namespace": "shop", "name": "api", "status": "OutOfSync"})
}

#[test]
fn more_namespaces_than_may_be_read_are_known_from_the_watch() {
    let names: Vec<String> = (0..70).map(|number| format!("Namespace n{number}")).collect();
    let lists: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = |approvals: usize| {
        let namespaces = names.iter().enumerate().map(|(number, name)| {
            let namespace = object(name, "tenants");
            if number < approvals { approved(&namespace) } else { namespace }
        });
        World::new(namespaces.chain([app("tenants", &lists)]))
    };
    passes(&world(70).delete("argoproj.io/Application argocd/tenants", "alice"));
    let response = world(69).delete("argoproj.io/Application argocd/tenants", "alice");
    refused(&response, &["Namespace n69", "cascade-guard.io/deletion-approved"]);
}

#[test]
fn while_an_operation_runs_the_way_out_is_to_wait_for_its_end() {
    let [old, new, role] = shared("new");
    let world = World::new([with(old, "/operation", json!({"sync": {}})), new, role]);
    let response = world.delete("argoproj.io/Application argocd/old", "alice");
    refused(&response, &["runs an operation", "argocd app wait argocd/old --operation"]);
}

#[test]
fn an_object_that_two_applications_claim_is_counted_once() {
    let world = World::new([app("old", &[ROLE]), app("new", &[ROLE]), object("Namespace shop", "")]);
    let response = world.delete("Namespace shop", "alice");
    refused(&response, &["1 claimed object"]);
    assert!(!response.message.contains("2 claimed"), "{}", response.message);
}

#[test]
fn who_alone_is_let_through_hears_where_the_cascade_will_rest() {
    let application = "argoproj.io/Application argocd/first";
    let world = |policy: serde_json::Value| {
        let policy = with(policy, "/rules/namespaceApproval/mode", "enforce");
        World::new([app("first", &["Namespace shop"]), object("Namespace shop", "first")])
            .under(crate::support::policy(policy))
    };
    let exempt = |matched: serde_json::Value| {
        world(json!({"exemptions": [{"name": "ops", "match": matched, "rules": ["namespaceApproval"],
            "until": "2027-01-01T00:00:00Z", "reason": "r"}]}))
    };
    let words = ["Argo CD itself may not delete Namespace shop"];
    let alone = exempt(json!({"users": ["alice"]}));
    warned(&alone.delete(application, "alice"), &words);
    refused(&alone.delete(application, "bob"), &["Namespace shop"]);
    // Nothing comes after what she deletes herself, and the namespace or Argo CD's own name holds for what it deletes.
    passes(&alone.delete("Namespace shop", "alice"));
    passes(&exempt(json!({"namespaces": ["shop"]})).delete(application, "alice"));
    passes(&exempt(json!({"users": ["alice", CONTROLLER]})).delete(application, "alice"));
    // Being in the group waives one request.
    let glass = world(json!({"breakGlass": {"groups": ["system:authenticated"], "requireReason": false}}));
    warned(&glass.delete(application, "alice"), &words);
}

#[test]
fn what_only_carries_the_marker_goes_with_the_cascade() {
    let application = "argoproj.io/Application argocd/old";
    let old = app("old", &["ConfigMap shop/c"]);
    // A hook that was left behind stands in no list.
    let left_behind = object("ServiceAccount shop/mig", "old");
    let new = app("new", &["ServiceAccount shop/mig OutOfSync"]);
    let world = World::new([old.clone(), new.clone(), left_behind.clone()]);
    refused(&world.delete(application, "alice"), &["ServiceAccount shop/mig", "argocd/new"]);
    let owned = with(left_behind, "/metadata/ownerReferences", json!([{"kind": "Job", "name": "j", "uid": "u"}]));
    passes(&World::new([old.clone(), new.clone(), owned]).delete(application, "alice"));
    passes(&World::new([old.clone(), new, object("ServiceAccount shop/mig", "new")]).delete(application, "alice"));

    let copied = with(
        object("Namespace copy", ""),
        "/metadata/annotations",
        json!({"argocd.argoproj.io/tracking-id": "old:/Namespace:shop/shop"}),
    );
    refused(&World::new([old.clone(), copied.clone()]).delete(application, "alice"), &["Namespace copy"]);
    let told = ["argocd/old does not list 1 object that its marker is on"];
    warned(&World::new([old, approved(&copied)]).delete(application, "alice"), &told);
}

#[test]
fn glass_broken_on_an_applicationset_counts_for_one_of_its_applications() {
    let set = |reason: &str| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "set", "namespace": "argocd", "uid": "uid-set",
                "annotations": {"cascade-guard.io/break-glass": reason}}})
    };
    let owner =
        json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set", "uid": "uid-set"}]);
    let one = with(app("one", &["Namespace shop"]), "/metadata/ownerReferences", owner);
    let world = |reason: &str, group: &str| {
        let policy = crate::support::policy(json!({"rules": {"namespaceApproval": {"mode": "enforce"}},
            "breakGlass": {"groups": [group], "requireReason": true}}));
        World::new([set(reason), one.clone(), object("Namespace shop", "one")]).under(policy)
    };
    let application = "argoproj.io/Application argocd/one";
    let passed = world("INC-7", "system:authenticated").delete(application, "alice");
    warned(&passed, &["INC-7"]);
    assert_eq!(passed.warnings.iter().filter(|warning| warning.contains("itself may not")).count(), 0);
    refused(&world("INC-7", "on-call").delete(application, "alice"), &["Namespace shop"]);
    refused(&world(" ", "system:authenticated").delete(application, "alice"), &["Namespace shop"]);
}

#[test]
fn exemption_that_ends_half_way_strands_nothing() {
    let namespace = object("Namespace shop", "first");
    let first = |began: &str| with(app("first", &["Namespace shop"]), "/metadata/deletionTimestamp", began);
    let world = |app: serde_json::Value| {
        let policy = crate::support::policy(json!({"rules": {"namespaceApproval": {"mode": "enforce"}},
            "exemptions": [{"name": "e", "match": {"namespaces": ["shop"]}, "rules": ["namespaceApproval"],
                "until": "2026-11-29T11:30:00Z", "reason": "r"}]}));
        World::new([app, namespace.clone()]).under(policy)
    };
    passes(&world(first("2026-11-29T11:00:00Z")).delete("Namespace shop", CONTROLLER));
    refused(&world(first("2026-11-29T11:45:00Z")).delete("Namespace shop", CONTROLLER), &["Namespace shop"]);
    refused(&world(app("first", &[])).delete("Namespace shop", "alice"), &["Namespace shop"]);
}

#[test]
fn application_never_compared_wants_nothing_of_a_namespace_from_which_nothing_goes() {
    let application = "argoproj.io/Application argocd/old";
    let fresh = || {
        let fresh = with(app("fresh", &[]), "/status", json!({}));
        with(fresh, "/spec/destination/namespace", "shop")
    };
    let names: Vec<String> = (0..20).map(|number| format!("ConfigMap shop/c{number} OutOfSync")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    passes(&World::new([app("old", &names), fresh()]).delete(application, "alice"));
    let there = object("ConfigMap shop/c19", "old");
    refused(&World::new([app("old", &names), fresh(), there]).delete(application, "alice"), &["argocd/fresh"]);
}
