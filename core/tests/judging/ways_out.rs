//! Ways out that lead out, and what is said although nobody claims it.

use serde_json::{Value, json};

use crate::world::*;

const ROLE: &str = "rbac.authorization.k8s.io/Role shop/api";
const NAMESPACE: &str = "Namespace shop";

fn healing(app: Value) -> Value {
    with(app, "/spec/syncPolicy/automated", json!({"selfHeal": true}))
}

fn generated(app: Value, set: &str) -> Value {
    let owner = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": set, "uid": format!("uid-{set}"), "controller": true}]);
    with(app, "/metadata/ownerReferences", owner)
}

fn set(name: &str) -> Value {
    object(&format!("argoproj.io/ApplicationSet argocd/{name}"), "")
}

fn message(world: &World, object: &str, user: &str) -> String {
    let answer = world.delete(object, user);
    assert!(!answer.allowed, "{answer:?}");
    answer.message
}

/// Whether each of these is said, and none of those.
fn says(message: &str, said: &[&str], not: &[&str]) {
    for words in said {
        assert!(message.contains(words), "no `{words}` in {message}");
    }
    for words in not {
        assert!(!message.contains(words), "`{words}` in {message}");
    }
}

// ---- a sync that replaces

fn replaced(object_options: Option<&str>, operation: Value) -> World {
    let syncing = with(app("api", &["Namespace shop OutOfSync"]), "/operation", operation);
    let mut namespace = object(NAMESPACE, "platform");
    if let Some(options) = object_options {
        namespace["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] = json!(options);
    }
    World::new([app("platform", &[NAMESPACE]), syncing, namespace])
}

#[test]
fn forced_sync_of_a_shared_namespace_is_told_to_sync_otherwise() {
    for sync in [
        json!({"sync": {"syncStrategy": {"hook": {"force": true}}}}),
        json!({"sync": {"syncStrategy": {"apply": {"force": true}}}}),
        json!({"sync": {"syncOptions": ["Replace=true"]}}),
    ] {
        let message = message(&replaced(None, sync), NAMESPACE, CONTROLLER);
        says(
            &message,
            &["argocd/api", "argocd/platform", "Force or Replace", "    argocd app terminate-op argocd/api"],
            &["cascade-guard approve", "delete or move"],
        );
    }
}

#[test]
fn option_on_the_namespace_is_named_as_what_to_change() {
    let world = replaced(Some("Force=true,Replace=true"), json!({"sync": {}}));
    says(&message(&world, NAMESPACE, CONTROLLER), &["says Force and Replace", "sync-options-"], &["delete or move"]);
}

// ---- two that heal themselves

#[test]
fn two_healing_applications_with_one_namespace_go_one_after_the_other() {
    let namespace = approved(&object(NAMESPACE, "a"));
    let world = World::new([healing(app("a", &[NAMESPACE])), healing(app("b", &[NAMESPACE])), namespace]);
    says(
        &message(&world, "argoproj.io/Application argocd/a", "alice"),
        &[
            "both heal themselves",
            "    argocd app set argocd/a --self-heal=false",
            "    argocd app delete argocd/a --cascade=false",
        ],
        &[],
    );
}

#[test]
fn generated_application_is_changed_through_its_generator() {
    let namespace = approved(&object(NAMESPACE, "a"));
    let of = |name: &str| generated(healing(app(name, &[NAMESPACE])), "previews");
    let world = World::new([of("a"), of("b"), set("previews"), namespace]);
    says(
        &message(&world, "argoproj.io/Application argocd/a", "alice"),
        &["ApplicationSet argocd/previews", "argocd app delete argocd/a --cascade=false"],
        &["argocd app set argocd/a"],
    );
    let world = World::new([
        generated(healing(app("a", &[ROLE])), "previews"),
        app("b", &[ROLE]),
        set("previews"),
        object(ROLE, "a"),
    ]);
    says(
        &message(&world, "argoproj.io/Application argocd/a", "alice"),
        &["turn self-heal off in the template of ApplicationSet argocd/previews", "argocd app sync argocd/b"],
        &["argocd app set argocd/a"],
    );
}

// ---- a claimant that cannot be synced

#[test]
fn claimant_in_error_is_to_be_repaired_and_not_synced() {
    let broken = with(
        with(app("new", &[ROLE]), "/status/conditions", json!([{"type": "ComparisonError", "message": "path gone"}])),
        "/status/sync/status",
        "Unknown",
    );
    let world = World::new([app("old", &[&format!("{ROLE} OutOfSync")]), broken, object(ROLE, "old")]);
    says(
        &message(&world, "argoproj.io/Application argocd/old", "alice"),
        &["repair argocd/new (ComparisonError: path gone)", "argocd app delete argocd/old --cascade=false"],
        &["argocd app sync argocd/new"],
    );
}

fn never_compared(change: impl FnOnce(Value) -> Value) -> String {
    let mut unknown = app("paused", &[]);
    unknown["status"] = json!({});
    unknown["spec"]["destination"]["namespace"] = json!("shop");
    let world = World::new([app("old", &[ROLE]), change(unknown), object(ROLE, "old")]);
    message(&world, "argoproj.io/Application argocd/old", "alice")
}

#[test]
fn unknown_claimant_says_in_its_own_words_what_is_wrong() {
    let invalid = json!([{"type": "InvalidSpecError", "message": "project gone which does not exist"}]);
    says(
        &never_compared(|app| with(app, "/status/conditions", invalid)),
        &["InvalidSpecError: project gone which does not exist", "repair argocd/paused"],
        &[],
    );
    says(
        &never_compared(|app| with(app, "/metadata/annotations/argocd.argoproj.io~1skip-reconcile", "true")),
        &["skip-reconcile", "resume argocd/paused", "skip-reconcile-"],
        &[],
    );
    says(&never_compared(|app| app), &["argocd app get argocd/paused --refresh"], &["repair", "resume"]);
}

// ---- deleted by hand

#[test]
fn manager_of_what_is_deleted_by_hand_is_named() {
    let world = World::new([app("owner", &[ROLE]), app("other", &[ROLE]), object(ROLE, "owner")]);
    says(
        &message(&world, ROLE, "alice"),
        &["so that only argocd/owner, which manages it, wants it", "the manifests of argocd/other"],
        &[],
    );
}

// ---- nobody wants that

#[test]
fn application_that_prunes_itself_is_refused() {
    let itself = "argoproj.io/Application argocd/a";
    let world = World::new([with(
        app("a", &[&format!("{itself} Prune"), ROLE]),
        "/operation",
        json!({"sync": {"prune": true}}),
    )]);
    says(
        &message(&world, itself, CONTROLLER),
        &["argocd/a lists itself to be pruned", "app.kubernetes.io/instance-", "argocd app delete argocd/a"],
        &[],
    );
    // Whoever means it deletes it himself, and a parent may prune its child.
    passes(&world.delete(itself, "alice"));
    let parent = World::new([
        app("parent", &[&format!("{itself} Prune")]),
        with(
            app("a", &[]),
            "/metadata/annotations/argocd.argoproj.io~1tracking-id",
            "parent:argoproj.io/Application:argocd/a",
        ),
    ]);
    passes(&parent.delete(itself, CONTROLLER));
}

#[test]
fn renamed_set_keeps_the_applications_of_the_old_one() {
    let message_of = "Object argocd/web is already owned by another ApplicationSet controller old";
    let wanting = with(set("new"), "/status/conditions", json!([{"type": "ErrorOccurred", "message": message_of}]));
    let old = "argoproj.io/ApplicationSet argocd/old";
    let world = World::new([set("old"), wanting.clone(), generated(app("web", &[ROLE]), "old"), object(ROLE, "web")]);
    says(
        &message(&world, old, "alice"),
        &["ApplicationSet argocd/new wants", "delete applicationset.argoproj.io/old --cascade=orphan"],
        &[],
    );
    // Another set's trouble is none of this one's, and a set without Applications takes none.
    let world = World::new([set("old"), set("new"), generated(app("web", &[ROLE]), "old"), object(ROLE, "web")]);
    passes(&world.delete(old, "alice"));
    passes(&World::new([set("old"), wanting]).delete(old, "alice"));
}

// ---- said, not silent

#[test]
fn burst_of_deletes_by_a_set_is_slowed_down_where_the_policy_limits_it() {
    const SETS: &str = "system:serviceaccount:argocd:argocd-applicationset-controller";
    let cluster = |going: usize, at: &str| {
        let going = (0..going).map(|number| {
            let app = generated(app(&format!("gone-{number}"), &[]), "previews");
            with(app, "/metadata/deletionTimestamp", at)
        });
        World::new(going.chain([generated(app("next", &[]), "previews"), set("previews")]))
    };
    let limited = || {
        let enforce = json!({"mode": "enforce"});
        crate::support::policy(
            json!({"rules": {"sharedClaim": enforce}, "applicationSets": {"maxDeletesPerMinute": 3}}),
        )
    };
    let next = "argoproj.io/Application argocd/next";
    let recent = "2026-11-29T11:59:30Z";
    refused(
        &cluster(3, recent).under(limited()).delete(next, SETS),
        &["ApplicationSet argocd/previews deleted 3 Applications within a minute", "the policy allows 3"],
    );
    passes(&cluster(2, recent).under(limited()).delete(next, SETS));
    // Earlier deletes, other users and a policy without a limit.
    passes(&cluster(3, "2026-11-29T11:58:59Z").under(limited()).delete(next, SETS));
    passes(&cluster(3, recent).under(limited()).delete(next, "alice"));
    passes(&cluster(3, recent).delete(next, SETS));
    // A large number is worth a line, once.
    warned(&cluster(9, recent).delete(next, SETS), &["deletes 10 Applications within a minute"]);
    passes(&cluster(10, recent).delete(next, SETS));
}

#[test]
fn largest_burst_is_that_of_one_set_within_the_last_minute() {
    let gone = |number: usize, set: &str, at: &str| {
        with(generated(app(&format!("{set}-{number}"), &[]), set), "/metadata/deletionTimestamp", at)
    };
    let recent = "2026-11-29T11:59:30Z";
    let objects = [
        gone(1, "a", recent),
        gone(2, "a", recent),
        gone(3, "a", "2026-11-29T11:58:30Z"),
        gone(1, "b", recent),
        with(app("by-hand", &[]), "/metadata/deletionTimestamp", recent),
    ];
    let inventory = crate::support::snapshot(&objects).inventory(&strict(), (1, 2));
    assert_eq!(inventory.largest_burst(NOW.parse().unwrap()), 2);
    assert_eq!(inventory.largest_burst("2026-11-29T12:01:00Z".parse().unwrap()), 0);
}

// ---- evidence

#[test]
fn approved_delete_leaves_who_approved_until_when_and_why() {
    let mut namespace = approved(&object(NAMESPACE, ""));
    namespace["metadata"]["annotations"]["cascade-guard.io/deletion-reason"] = json!("CHG-1");
    let answer = World::new([namespace]).delete(NAMESPACE, "bob");
    passes(&answer);
    for (key, value) in [
        ("decision", "allow"),
        ("approved-by", "alice"),
        ("approved-until", "2026-11-29T20:00:00Z"),
        ("reason", "CHG-1"),
    ] {
        assert_eq!(
            answer.audit_annotations.get(key).map(String::as_str),
            Some(value),
            "{:?}",
            answer.audit_annotations
        );
    }
}

#[test]
fn exempted_delete_leaves_the_exemption() {
    let exempt = json!({"rules": {"namespaceApproval": {"mode": "enforce"}}, "exemptions": [{"name": "previews",
        "match": {"namespaces": ["shop"]}, "rules": ["namespaceApproval"], "until": "2027-01-01T00:00:00Z", "reason": "short-lived"}]});
    let answer = World::new([object(NAMESPACE, "")]).under(crate::support::policy(exempt)).delete(NAMESPACE, "bob");
    passes(&answer);
    let by = answer.audit_annotations.get("exempted-by").cloned().unwrap_or_default();
    assert!(by.contains("exemption `previews`"), "{:?}", answer.audit_annotations);
}

fn definition() -> Value {
    let definition = object("apiextensions.k8s.io/CustomResourceDefinition widgets.example.com", "");
    with(
        definition,
        "/spec",
        json!({"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true}]}),
    )
}

const DEFINITION: &str = "apiextensions.k8s.io/CustomResourceDefinition widgets.example.com";

#[test]
fn instances_that_nobody_claims_are_told() {
    let instance = |name: &str| object(&format!("example.com/Widget shop/{name}"), "");
    let world = World::new([definition(), instance("a"), instance("b")]);
    warned(&world.delete(DEFINITION, "alice"), &["takes 2 Widgets nobody claims"]);
    passes(&World::new([definition()]).delete(DEFINITION, "alice"));
}

#[test]
fn claim_that_is_to_be_kept_goes_with_its_namespace_all_the_same() {
    let data = "PersistentVolumeClaim shop/data";
    let kept = with(object(data, "a"), "/metadata/annotations/argocd.argoproj.io~1sync-options", "Delete=false");
    let world = World::new([app("a", &[NAMESPACE, data]), kept, approved(&object(NAMESPACE, "a"))]);
    warned(
        &world.delete("argoproj.io/Application argocd/a", "alice"),
        &["PersistentVolumeClaim shop/data is marked Delete=false, but goes with Namespace shop"],
    );
}

#[test]
fn finalizer_whose_controller_goes_along_is_told() {
    let (operator, realm) = ("apps/Deployment shop/operator", "example.com/Widget shop/main");
    let held = |finalizer: &str| with(object(realm, "a"), "/metadata/finalizers", json!([finalizer]));
    let delete = |lists: &[&str], realm: Value| {
        World::new([app("a", lists), object(operator, "a"), realm]).delete("argoproj.io/Application argocd/a", "alice")
    };
    warned(&delete(&[operator, realm], held("widget.cleanup")), &["Widget shop/main hangs on widget.cleanup"]);
    // Its controller stays, or it is none of a controller's.
    let alone = World::new([app("a", &[realm]), held("widget.cleanup")]);
    passes(&alone.delete("argoproj.io/Application argocd/a", "alice"));
    passes(&delete(&[operator, realm], held("foregroundDeletion")));
    // The operator has the lower wave: it is deleted after what it looks after.
    let mut world_app = app("a", &[operator, realm]);
    world_app["status"]["resources"][1]["syncWave"] = json!(5);
    let world = World::new([world_app, object(operator, "a"), held("widget.cleanup")]);
    passes(&world.delete("argoproj.io/Application argocd/a", "alice"));
}
