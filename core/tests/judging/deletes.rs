//! `shared-claim` in every situation that a delete can be in.

use serde_json::json;

use crate::world::*;

const ROLE: &str = "rbac.authorization.k8s.io/Role shop/api";

/// `old` and `new` both want the Role; the marker says `owner`.
fn shared(owner: &str) -> [serde_json::Value; 3] {
    [app("old", &[&format!("{ROLE} OutOfSync")]), app("new", &[ROLE]), object(ROLE, owner)]
}

#[test]
fn what_another_application_claims_is_refused_with_names_and_a_way_out() {
    let world = World::new(shared("old"));
    refused(
        &world.delete("argoproj.io/Application argocd/old", "alice"),
        &["argocd/new", "Role shop/api", "argocd app sync argocd/new"],
    );
}

#[test]
fn what_was_taken_over_is_spared() {
    passes(&World::new(shared("new")).delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn what_carries_the_marker_of_a_stranger_is_spared() {
    passes(&World::new(shared("somebody-else")).delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn a_marker_says_nothing_while_the_application_heals_itself_or_syncs() {
    for (path, value) in
        [("/spec/syncPolicy/automated", json!({"selfHeal": true})), ("/operation", json!({"sync": {}}))]
    {
        let [old, new, role] = shared("new");
        let world = World::new([with(old, path, value), new, role]);
        refused(&world.delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
    }
    // Self-heal without automated sync in force does nothing.
    let [old, new, role] = shared("new");
    let old = with(old, "/spec/syncPolicy/automated", json!({"selfHeal": true, "enabled": false}));
    passes(&World::new([old, new, role]).delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn an_object_without_marker_is_spared_only_where_the_method_is_known() {
    let world = World::new(shared(""));
    refused(&world.delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
    let world = World::new(shared("").into_iter().chain([argocd_cm(json!({}))]));
    passes(&world.delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn label_tracking_goes_by_the_label_and_its_configured_key() {
    let settings =
        argocd_cm(json!({"application.resourceTrackingMethod": "label", "application.instanceLabelKey": "argo/app"}));
    let label = |owner: &str| {
        let [old, new, role] = shared("old");
        [old, new, with(role, "/metadata/labels/argo~1app", owner), settings.clone()]
    };
    passes(&World::new(label("new")).delete("argoproj.io/Application argocd/old", "alice"));
    refused(&World::new(label("old")).delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
}

#[test]
fn an_object_of_another_installation_is_not_ours() {
    let settings = argocd_cm(json!({"installationID": "one"}));
    let [old, new, role] = shared("old");
    let foreign = with(role.clone(), "/metadata/annotations/argocd.argoproj.io~1installation-id", "two");
    passes(
        &World::new([old.clone(), new.clone(), foreign, settings.clone()])
            .delete("argoproj.io/Application argocd/old", "alice"),
    );
    let ours = with(role, "/metadata/annotations/argocd.argoproj.io~1installation-id", "one");
    refused(
        &World::new([old, new, ours, settings]).delete("argoproj.io/Application argocd/old", "alice"),
        &["argocd/new"],
    );
}

#[test]
fn what_is_kept_is_spared() {
    for (path, value) in [
        ("/metadata/annotations/argocd.argoproj.io~1sync-options", "Prune=false, Delete=false"),
        ("/metadata/annotations/helm.sh~1resource-policy", "keep"),
    ] {
        let [old, new, role] = shared("old");
        passes(&World::new([old, new, with(role, path, value)]).delete("argoproj.io/Application argocd/old", "alice"));
    }
    // Prune=false does not help against a cascade.
    let [old, new, role] = shared("old");
    let role = with(role, "/metadata/annotations/argocd.argoproj.io~1sync-options", "Prune=false");
    refused(&World::new([old, new, role]).delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
}

#[test]
fn an_application_can_keep_all_its_objects_and_an_object_can_object() {
    let keeping = |role| {
        let [old, new, _] = shared("old");
        World::new([with(old, "/spec/syncPolicy/syncOptions", json!(["Delete=false"])), new, role])
    };
    passes(&keeping(object(ROLE, "old")).delete("argoproj.io/Application argocd/old", "alice"));
    let role = with(object(ROLE, "old"), "/metadata/annotations/argocd.argoproj.io~1sync-options", "Delete=true");
    refused(&keeping(role).delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
}

#[test]
fn what_something_else_owns_is_left_to_the_garbage_collector() {
    let [old, new, role] = shared("old");
    let role = with(
        role,
        "/metadata/ownerReferences",
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}]),
    );
    passes(&World::new([old, new, role]).delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn an_object_that_is_gone_is_no_loss_unless_a_list_contradicts() {
    let [old, new, _] = shared("old");
    refused(&World::new([old.clone(), new]).delete("argoproj.io/Application argocd/old", "alice"), &["not found"]);
    let missing = app("new", &[&format!("{ROLE} OutOfSync")]);
    passes(&World::new([old, missing]).delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn version_does_not_count_and_neither_does_the_namespace_of_a_cluster_scoped_object() {
    let cluster_role = "rbac.authorization.k8s.io/ClusterRole reader";
    let mut other = app("new", &["rbac.authorization.k8s.io/ClusterRole wherever/reader"]);
    other["status"]["resources"][0]["version"] = json!("v1beta1");
    let world = World::new([app("old", &[cluster_role]), other, object(cluster_role, "old")]);
    refused(&world.delete("argoproj.io/Application argocd/old", "alice"), &["ClusterRole reader", "argocd/new"]);
}

#[test]
fn custom_kinds_without_a_namespace_are_known_by_their_definition() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tenants.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"kind": "Tenant", "plural": "tenants"}}});
    let world = World::new([
        definition,
        app("old", &["example.com/Tenant t"]),
        app("new", &["example.com/Tenant somewhere/t"]),
        object("example.com/Tenant t", "old"),
    ]);
    refused(&world.delete("argoproj.io/Application argocd/old", "alice"), &["Tenant t", "argocd/new"]);
}

#[test]
fn every_spelling_of_a_cluster_is_that_cluster() {
    for destination in [
        json!({"server": "https://kubernetes.default.svc/"}),
        json!({"name": "in-cluster"}),
        json!({"server": "https://api.example.com:6443"}),
        json!({"name": "home"}),
    ] {
        let [old, new, role] = shared("old");
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c", "namespace": "argocd",
            "labels": {"argocd.argoproj.io/secret-type": "cluster"}}, "stringData": {"name": "home", "server": "https://api.example.com:6443/"}});
        let policy = crate::support::policy(
            json!({"argocd": {"clusterAliases": [["https://api.example.com:6443", "in-cluster"]]},
            "rules": {"sharedClaim": {"mode": "enforce"}}}),
        );
        let world = World::new([old, with(new, "/spec/destination", destination.clone()), role, secret]).under(policy);
        refused(&world.delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
    }
}

#[test]
fn objects_of_another_cluster_stay_there() {
    let elsewhere = json!({"server": "https://east.example.com"});
    let [old, new, role] = shared("old");
    let world = World::new([old.clone(), with(new.clone(), "/spec/destination", elsewhere.clone()), role.clone()]);
    passes(&world.delete("argoproj.io/Application argocd/old", "alice"));
    // Both on the other cluster: nothing can be read there, so the lists decide.
    let both = |old, new| {
        World::new([
            with(old, "/spec/destination", elsewhere.clone()),
            with(new, "/spec/destination", elsewhere.clone()),
        ])
    };
    passes(&both(old.clone(), new.clone()).delete("argoproj.io/Application argocd/old", "alice"));
    let later =
        with(old, "/status/operationState", json!({"phase": "Succeeded", "finishedAt": "2026-11-29T11:30:00Z"}));
    refused(&both(later, new).delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
}

#[test]
fn a_terminating_application_claims_nothing() {
    let [old, new, role] = shared("old");
    let new = with(new, "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
    passes(&World::new([old, new, role]).delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn a_list_that_cannot_be_believed_claims_all_it_holds() {
    for spoil in [
        ("/status/sync/status", json!("Unknown")),
        ("/status/conditions", json!([{"type": "ComparisonError"}])),
        ("/status/sync/comparedTo", json!({"source": {"repoURL": "other"}, "destination": {}})),
        ("/metadata/annotations/argocd.argoproj.io~1skip-reconcile", json!("true")),
        ("/status/operationState", json!({"phase": "Succeeded", "operation": {"sync": {"manifests": ["x"]}}})),
    ] {
        let [old, _, role] = shared("old");
        let pruning = app("new", &[&format!("{ROLE} Prune")]);
        passes(
            &World::new([old.clone(), pruning.clone(), role.clone()])
                .delete("argoproj.io/Application argocd/old", "alice"),
        );
        let world = World::new([old, with(pruning, spoil.0, spoil.1), role]);
        refused(&world.delete("argoproj.io/Application argocd/old", "alice"), &["argocd/new"]);
    }
}

#[test]
fn an_application_never_compared_may_want_what_its_namespace_holds() {
    let never = |namespace: &str| {
        let app = with(app("fresh", &[]), "/status", json!({}));
        with(app, "/spec/destination/namespace", namespace)
    };
    let world = |namespace: &str| World::new([app("old", &[ROLE]), object(ROLE, "old"), never(namespace)]);
    refused(&world("shop").delete("argoproj.io/Application argocd/old", "alice"), &["argocd/fresh", "never compared"]);
    passes(&world("elsewhere").delete("argoproj.io/Application argocd/old", "alice"));
    let lenient = crate::support::policy(json!({"rules": {"sharedClaim": {"mode": "enforce", "onUnknown": "warn"}}}));
    warned(&world("shop").under(lenient).delete("argoproj.io/Application argocd/old", "alice"), &["argocd/fresh"]);
}

#[test]
fn an_application_never_compared_that_renders_the_same_source_is_an_unknown_claimant() {
    let fresh = |source: serde_json::Value| {
        let app = with(app("fresh", &[]), "/status", json!({}));
        with(with(app, "/spec/destination/namespace", "other"), "/spec/source", source)
    };
    let world = |source| World::new([app("old", &[ROLE]), object(ROLE, "old"), fresh(source)]);
    let same = json!({"repoURL": "https://git.example.com/deploy.git", "path": "old", "targetRevision": "v2"});
    refused(&world(same).delete("argoproj.io/Application argocd/old", "alice"), &["argocd/fresh"]);
    let other_values =
        json!({"repoURL": "https://git.example.com/deploy.git", "path": "old", "helm": {"releaseName": "x"}});
    passes(&world(other_values).delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn a_list_that_was_lost_is_replaced_by_the_last_sync() {
    let result = json!([{"group": "rbac.authorization.k8s.io", "kind": "Role", "namespace": "shop", "name": "api", "status": "Synced"}]);
    let lost = with(
        app("old", &[]),
        "/status/operationState",
        json!({"phase": "Succeeded", "syncResult": {"resources": result}}),
    );
    let lost = with(lost, "/status/conditions", json!([{"type": "ComparisonError"}]));
    let response = World::new([lost, app("new", &[ROLE]), object(ROLE, "old")])
        .delete("argoproj.io/Application argocd/old", "alice");
    refused(&response, &["argocd/new"]);
    assert!(response.warnings.iter().any(|warning| warning.contains("last sync")), "{:?}", response.warnings);
}

#[test]
fn an_empty_list_takes_nothing_unless_it_cannot_be_believed_after_a_sync() {
    let synced = with(app("old", &[]), "/status/history", json!([{"id": 1}]));
    let delete = |app| World::new([app]).delete("argoproj.io/Application argocd/old", "alice");
    passes(&delete(synced.clone()));
    passes(&delete(app("old", &[])));
    refused(&delete(with(synced, "/status/sync/status", "Unknown")), &["not known"]);
}

#[test]
fn without_a_finalizer_nothing_goes() {
    let [old, new, role] = shared("old");
    let world = World::new([
        with(old, "/metadata/finalizers", json!([])),
        new,
        role,
        app("parent", &["argoproj.io/Application argocd/old"]),
    ]);
    passes(&world.delete("argoproj.io/Application argocd/old", "alice"));
}

#[test]
fn an_application_of_applications_takes_them_all_to_any_depth() {
    let world = World::new([
        app("root", &["argoproj.io/Application argocd/middle"]),
        app("middle", &["argoproj.io/Application argocd/old"]),
        app("old", &[ROLE]),
        app("new", &[ROLE]),
        object(ROLE, "old"),
    ]);
    refused(&world.delete("argoproj.io/Application argocd/root", "alice"), &["argocd/new", "argocd/old"]);
    // Within the plan nobody is another.
    let world = World::new([
        app("root", &["argoproj.io/Application argocd/old", "argoproj.io/Application argocd/new"]),
        app("old", &[ROLE]),
        app("new", &[ROLE]),
        object(ROLE, "old"),
    ]);
    passes(&world.delete("argoproj.io/Application argocd/root", "alice"));
}

#[test]
fn a_child_that_leaves_its_objects_behind_takes_nothing() {
    let world = World::new([
        app("root", &["argoproj.io/Application argocd/old"]),
        with(app("old", &[ROLE]), "/metadata/finalizers", json!([])),
        app("new", &[ROLE]),
        object(ROLE, "old"),
    ]);
    passes(&world.delete("argoproj.io/Application argocd/root", "alice"));
}

#[test]
fn a_child_that_another_parent_defines_too_is_claimed() {
    let child = with(
        app("child", &[]),
        "/metadata/annotations/argocd.argoproj.io~1tracking-id",
        "one:argoproj.io/Application:argocd/child",
    );
    let parents = ["one", "two"].map(|parent| app(parent, &["argoproj.io/Application argocd/child"]));
    let world = World::new(parents.into_iter().chain([child]));
    refused(&world.delete("argoproj.io/Application argocd/one", "alice"), &["argocd/two", "Application argocd/child"]);
    passes(&world.delete("argoproj.io/Application argocd/two", "alice"));
    refused(&world.delete("argoproj.io/Application argocd/child", "alice"), &["argocd/two"]);
}

fn appset() -> serde_json::Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "set", "namespace": "argocd", "uid": "set-uid"}})
}

fn generated(name: &str, lists: &[&str]) -> serde_json::Value {
    let owner = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set", "uid": "set-uid", "controller": true}]);
    with(app(name, lists), "/metadata/ownerReferences", owner)
}

#[test]
fn an_applicationset_takes_what_it_generated() {
    let world = World::new([appset(), generated("old", &[ROLE]), app("new", &[ROLE]), object(ROLE, "old")]);
    refused(&world.delete("argoproj.io/ApplicationSet argocd/set", "alice"), &["argocd/new", "argocd/old"]);
    passes(&world.judge(&appset(), "alice", json!({"propagationPolicy": "Orphan"})));
    // Its own controller lets them go first where its policy forbids deletes.
    let keeping = with(appset(), "/spec/syncPolicy/applicationsSync", "create-update");
    refused(&world.judge(&keeping, "alice", json!({})), &["argocd/new"]);
    passes(&world.judge(
        &with(keeping, "/metadata/finalizers", json!(["resources-finalizer.argocd.argoproj.io"])),
        "alice",
        json!({}),
    ));
}

#[test]
fn siblings_of_a_vanished_applicationset_do_not_refuse_each_other() {
    let children = || [generated("one", &[ROLE]), generated("two", &[ROLE]), object(ROLE, "one")];
    let gone = World::new(children());
    passes(&gone.delete("argoproj.io/Application argocd/one", COLLECTOR));
    refused(&gone.delete("argoproj.io/Application argocd/one", "alice"), &["argocd/two"]);
    let alive = World::new(children().into_iter().chain([appset()]));
    refused(&alive.delete("argoproj.io/Application argocd/one", COLLECTOR), &["argocd/two"]);
    let going = World::new(children().into_iter().chain([with(appset(), "/metadata/deletionTimestamp", NOW)]));
    passes(
        &going.delete(
            "argoproj.io/Application argocd/one",
            "system:serviceaccount:argocd:argocd-applicationset-controller",
        ),
    );
}

#[test]
fn a_namespace_takes_what_anybody_claims_in_it() {
    let namespace = approved(&object("Namespace shop", "one"));
    let world = World::new([
        app("one", &["Namespace shop", ROLE]),
        app("two", &["apps/Deployment shop/web"]),
        namespace.clone(),
    ]);
    refused(&world.delete("Namespace shop", "alice"), &["argocd/two", "Deployment"]);
    refused(&world.delete("argoproj.io/Application argocd/one", "alice"), &["argocd/two", "Namespace shop"]);
    // Whoever manages it gives up its own.
    passes(&World::new([app("one", &["Namespace shop", ROLE]), namespace]).delete("Namespace shop", "alice"));
}

#[test]
fn applications_that_live_in_a_namespace_cascade_with_it() {
    let world = World::new([
        approved(&object("Namespace team", "")),
        app("team/old", &[ROLE]),
        app("new", &[ROLE]),
        object(ROLE, "team_old"),
    ]);
    refused(&world.delete("Namespace team", "alice"), &["argocd/new", "Role shop/api"]);
}

#[test]
fn a_definition_takes_its_instances_without_a_review() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com", "uid": "u"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Gadget", "plural": "gadgets"}}});
    let world = World::new([definition.clone(), app("one", &["example.com/Gadget shop/g"])]);
    refused(
        &world.delete("apiextensions.k8s.io/CustomResourceDefinition gadgets.example.com", "alice"),
        &["argocd/one", "Gadget"],
    );
    passes(
        &World::new([definition]).delete("apiextensions.k8s.io/CustomResourceDefinition gadgets.example.com", "alice"),
    );
}

#[test]
fn an_object_that_only_its_manager_wants_may_be_deleted_by_hand() {
    for user in ["alice", SERVER] {
        passes(&World::new([app("one", &[ROLE]), object(ROLE, "one")]).delete(ROLE, user));
        passes(&World::new([app("one", &[ROLE]), object(ROLE, "long-gone")]).delete(ROLE, user));
        passes(&World::new([object(ROLE, "")]).delete(ROLE, user));
        let both = World::new([app("one", &[ROLE]), app("two", &[ROLE]), object(ROLE, "one")]);
        refused(&both.delete(ROLE, user), &["argocd/two"]);
        let nobody = World::new([app("one", &[ROLE]), app("two", &[ROLE]), object(ROLE, "")]);
        refused(&nobody.delete(ROLE, user), &["argocd/one", "argocd/two"]);
    }
}

#[test]
fn a_child_of_an_admitted_cascade_goes_unless_others_claim_it() {
    let terminating =
        |name: &str, lists: &[&str]| with(app(name, lists), "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
    passes(&World::new([terminating("old", &[ROLE]), object(ROLE, "old")]).delete(ROLE, CONTROLLER));
    let contested = World::new([terminating("old", &[ROLE]), app("new", &[ROLE]), object(ROLE, "old")]);
    refused(&contested.delete(ROLE, CONTROLLER), &["argocd/new", "cascade"]);
    // Children of the same parent go together.
    let family = World::new([
        terminating("root", &["argoproj.io/Application argocd/old", "argoproj.io/Application argocd/new"]),
        terminating("old", &[ROLE]),
        app("new", &[ROLE]),
        with(object(ROLE, "old"), "/metadata/annotations/x", "y"),
    ]);
    passes(&family.delete("argoproj.io/Application argocd/new", CONTROLLER));
    // Argo CD deletes them wave by wave: one may go before the other is marked.
    passes(&family.delete(ROLE, CONTROLLER));
    let kept = with(app("new", &[ROLE]), "/metadata/annotations/argocd.argoproj.io~1sync-options", "Delete=false");
    let family = World::new([
        terminating("root", &["argoproj.io/Application argocd/old", "argoproj.io/Application argocd/new"]),
        terminating("old", &[ROLE]),
        kept,
        object(ROLE, "old"),
    ]);
    refused(&family.delete(ROLE, CONTROLLER), &["argocd/new"]);
}

#[test]
fn what_was_waived_at_the_root_stays_waived_below_it() {
    let policy = crate::support::policy(json!({"rules": {"sharedClaim": {"mode": "enforce"}},
        "overrides": [{"match": {"projects": ["legacy"]}, "modes": {"sharedClaim": "audit"}}]}));
    let old = with(app("old", &[ROLE]), "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
    let world =
        World::new([with(old, "/spec/project", "legacy"), app("new", &[ROLE]), object(ROLE, "old")]).under(policy);
    passes(&world.delete(ROLE, CONTROLLER));
    let broken = with(app("old", &[ROLE]), "/metadata/annotations/cascade-guard.io~1break-glass", "CHG-1");
    let broken = with(broken, "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
    let policy = crate::support::policy(
        json!({"rules": {"sharedClaim": {"mode": "enforce"}}, "breakGlass": {"groups": ["on-call"]}}),
    );
    let world = World::new([broken, app("new", &[ROLE]), object(ROLE, "old")]).under(policy);
    warned(&world.delete(ROLE, CONTROLLER), &["CHG-1", "argocd/new"]);
}

#[test]
fn a_prune_goes_unless_others_claim_it() {
    let prune = format!("{ROLE} Prune");
    passes(&World::new([app("old", &[&prune]), object(ROLE, "old")]).delete(ROLE, CONTROLLER));
    let contested = World::new([app("old", &[&prune]), app("new", &[ROLE]), object(ROLE, "old")]);
    refused(&contested.delete(ROLE, CONTROLLER), &["argocd/new", "prune"]);
    // The list may be older than the revision that is synced.
    let running = with(app("old", &[ROLE]), "/operation", json!({"sync": {"prune": true}}));
    passes(&World::new([running.clone(), object(ROLE, "old")]).delete(ROLE, CONTROLLER));
    refused(&World::new([running, app("new", &[ROLE]), object(ROLE, "old")]).delete(ROLE, CONTROLLER), &["argocd/new"]);
}

#[test]
fn a_replacement_passes_and_tells_the_others() {
    let replacing = |operation| with(app("old", &[ROLE]), "/operation", operation);
    for operation in [
        json!({"sync": {"syncOptions": ["Replace=true"], "prune": true}}),
        json!({"sync": {"syncStrategy": {"apply": {"force": true}}}}),
        json!({"sync": {"syncStrategy": {"hook": {"force": true}}}}),
        json!({"sync": {}}),
    ] {
        passes(&World::new([replacing(operation.clone()), object(ROLE, "old")]).delete(ROLE, CONTROLLER));
        warned(
            &World::new([replacing(operation), app("new", &[ROLE]), object(ROLE, "old")]).delete(ROLE, CONTROLLER),
            &["argocd/new"],
        );
    }
}

#[test]
fn a_binding_with_a_changed_role_and_a_hook_are_made_anew() {
    let binding = "rbac.authorization.k8s.io/RoleBinding shop/api";
    let syncing = |lists: &[&str]| with(app("old", lists), "/operation", json!({"sync": {"prune": true}}));
    passes(&World::new([syncing(&[binding]), object(binding, "old")]).delete(binding, CONTROLLER));
    let account = "ServiceAccount shop/migrate";
    let hook = with(object(account, "old"), "/metadata/annotations/argocd.argoproj.io~1hook", "PreSync");
    let fresh = with(with(app("fresh", &[]), "/status", json!({})), "/spec/destination/namespace", "shop");
    passes(&World::new([syncing(&[]), hook, fresh]).delete(account, CONTROLLER));
}

/// What is said when Argo CD deletes a ClusterRole with these annotations during a sync, and another Application lists it.
fn hook_deleted(annotations: &[(&str, &str)]) -> cascade_guard_core::admission::Response {
    let role = "rbac.authorization.k8s.io/ClusterRole h";
    let running = json!({"phase": "Running", "operation": {"sync": {"prune": true}}});
    let syncing = with(app("old", &[]), "/status/operationState", running);
    let mut live = object(role, "old");
    for (key, value) in annotations {
        live["metadata"]["annotations"][key] = json!(value);
    }
    World::new([syncing, app("new", &[role]), live]).delete(role, CONTROLLER)
}

#[test]
fn only_what_argo_cd_runs_is_a_hook_that_comes_back() {
    for (key, value) in [
        ("argocd.argoproj.io/hook", "Skip"),
        ("argocd.argoproj.io/hook", "presync"),
        ("helm.sh/hook", "test"),
        ("helm.sh/hook", "crd-install"),
    ] {
        refused(&hook_deleted(&[(key, value)]), &["ClusterRole h is claimed by argocd/new"]);
    }
    for (key, value) in [("argocd.argoproj.io/hook", "PreSync"), ("helm.sh/hook", "test,post-install")] {
        warned(&hook_deleted(&[(key, value)]), &["ClusterRole h comes back in one Application's version"]);
    }
}

#[test]
fn hook_that_its_delete_policy_removes_is_not_said_to_come_back() {
    for (key, value) in [
        ("argocd.argoproj.io/hook-delete-policy", "HookSucceeded"),
        ("argocd.argoproj.io/hook-delete-policy", "HookFailed"),
        ("helm.sh/hook-delete-policy", "hook-succeeded"),
    ] {
        let answer = hook_deleted(&[("argocd.argoproj.io/hook", "PreSync"), (key, value)]);
        warned(&answer, &["its delete policy (Hook", "argocd/new claims it too"]);
        assert!(!answer.warnings.iter().any(|warning| warning.contains("comes back")), "{:?}", answer.warnings);
    }
}

#[test]
fn a_replacement_of_a_namespace_is_judged_with_all_it_takes() {
    let replacing = with(
        app("old", &["Namespace shop"]),
        "/operation",
        json!({"sync": {"syncOptions": ["Replace=true", "Force=true"]}}),
    );
    let world = World::new([replacing, app("new", &[ROLE]), object("Namespace shop", "old")]);
    refused(&world.delete("Namespace shop", CONTROLLER), &["argocd/new", "cascade-guard.io/deletion-approved"]);
}

#[test]
fn impersonated_and_named_accounts_sync_for_argo_cd_and_no_others() {
    let prune = format!("{ROLE} Prune");
    let account = "system:serviceaccount:shop:deployer";
    let old = with(app("old", &[&prune]), "/spec/project", "p");
    let objects = || [old.clone(), app("new", &[ROLE]), object(ROLE, "old")];
    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "p", "namespace": "argocd"},
        "spec": {"destinationServiceAccounts": [{"server": "*", "namespace": "shop", "defaultServiceAccount": "deployer"}]}});
    refused(&World::new(objects().into_iter().chain([project])).delete(ROLE, account), &["this prune"]);
    let policy = crate::support::policy(
        json!({"rules": {"sharedClaim": {"mode": "enforce"}}, "identities": {"argocd": [account]}}),
    );
    refused(&World::new(objects()).under(policy).delete(ROLE, account), &["this prune"]);
    let response = World::new(objects()).delete(ROLE, account);
    refused(&response, &["argocd/new"]);
    assert!(!response.message.contains("this prune"), "{}", response.message);
}

#[test]
fn what_is_half_gone_is_let_go() {
    let [old, new, role] = shared("old");
    let going = with(role.clone(), "/metadata/deletionTimestamp", NOW);
    passes(&World::new([old.clone(), new.clone(), going]).delete(ROLE, "alice"));
    let terminating = with(object("Namespace shop", ""), "/metadata/deletionTimestamp", NOW);
    passes(&World::new([old.clone(), new.clone(), role.clone(), terminating]).delete(ROLE, NAMESPACE_CONTROLLER));
    refused(
        &World::new([old.clone(), new.clone(), role.clone(), object("Namespace shop", "")])
            .delete(ROLE, NAMESPACE_CONTROLLER),
        &["argocd/new"],
    );
    passes(&World::new([old, new, role]).delete(ROLE, COLLECTOR));
}

#[test]
fn applications_of_two_argo_cds_with_one_name_are_told_apart() {
    let tenant = with(app("tenant/web", &[ROLE]), "/status/controllerNamespace", "tenant");
    // Both are called `web` in markers. The one that is deleted lists the object, so its marker may mean itself.
    let world = World::new([app("web", &[ROLE]), tenant, object(ROLE, "web")]);
    refused(&world.delete("argoproj.io/Application argocd/web", "alice"), &["tenant/web"]);
}

#[test]
fn a_review_without_objects_is_looked_up_by_name() {
    let request = |name: &str| {
        json!({"uid": "1", "kind": {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application"},
        "operation": "DELETE", "name": name, "namespace": "argocd", "userInfo": {"username": "alice"}})
    };
    let judged = |name: &str| {
        let snapshot = crate::support::snapshot(&[app("old", &[ROLE]), app("new", &[ROLE]), object(ROLE, "old")]);
        let policy = strict();
        crate::support::review(
            &request(name),
            &snapshot,
            &snapshot.inventory(&policy, (1, 2)),
            &policy,
            NOW.parse().unwrap(),
        )
    };
    refused(&judged("old"), &["argocd/new"]);
    passes(&judged("unknown"));
    passes(&judged(""));
}

#[test]
fn before_the_caches_are_filled_only_what_goes_anyway_may_go() {
    let [old, new, role] = shared("old");
    let terminating = with(object("Namespace shop", ""), "/metadata/deletionTimestamp", NOW);
    let bare = with(app("bare", &[ROLE]), "/metadata/finalizers", json!([]));
    let world = World::new([old, new, role, terminating, bare]).not_ready();
    refused(&world.delete("argoproj.io/Application argocd/old", "alice"), &["not ready"]);
    refused(&world.delete("argoproj.io/Application argocd/old", COLLECTOR), &["not ready"]);
    passes(&world.delete("argoproj.io/Application argocd/bare", "alice"));
    passes(&world.delete(ROLE, NAMESPACE_CONTROLLER));
    passes(&world.delete(ROLE, COLLECTOR));
}

#[test]
fn argo_cd_of_another_cluster_is_asked_about_claims() {
    let role = "rbac.authorization.k8s.io/Role shop/api";
    let remote = "system:serviceaccount:kube-system:argocd-manager";
    let policy = crate::support::policy(json!({"rules": {"sharedClaim": {"mode": "enforce"}},
        "identities": {"argocd": [CONTROLLER, remote]}}));
    let world = World::new([app("new", &[role]), object(role, "of-another-cluster")]).under(policy.clone());
    refused(&world.delete(role, remote), &["argocd/new"]);
    passes(&World::new([object(role, "of-another-cluster")]).under(policy).delete(role, remote));
    // A person, the dashboard for one and the Argo CD of the Application itself may delete what one Application wants: the
    // marker may be that of an Application that was renamed.
    for user in ["alice", SERVER, CONTROLLER] {
        passes(&world.delete(role, user));
    }
}

#[test]
fn first_sync_of_an_application_made_anew_replaces_what_carries_its_marker() {
    let role = "rbac.authorization.k8s.io/Role shop/api";
    let fresh = |sync: serde_json::Value| {
        let fresh = with(
            app("fresh", &[]),
            "/status",
            json!({"operationState": {"phase": "Running", "operation": {"sync": sync}}}),
        );
        with(fresh, "/spec/destination/namespace", "shop")
    };
    let forced = || fresh(json!({"syncOptions": ["Replace=true", "Force=true"]}));
    passes(&World::new([forced(), object(role, "fresh")]).delete(role, CONTROLLER));
    refused(&World::new([forced(), object(role, "other")]).delete(role, "alice"), &["argocd/fresh"]);
    // Another's claim is told, as for any replacement.
    warned(
        &World::new([forced(), app("new", &[role]), object(role, "fresh")]).delete(role, CONTROLLER),
        &["argocd/new"],
    );
    // By hand whoever manages it is not another, compared or not.
    passes(&World::new([fresh(json!({})), object(role, "fresh")]).delete(role, "alice"));
}

#[test]
fn what_only_the_last_sync_names_is_no_claim() {
    let role = "rbac.authorization.k8s.io/Role shop/api";
    // `old` synced the Role once; `new` has taken it over since, and now `old` is not compared any more.
    let old =
        with(app("old", &["ConfigMap shop/c"]), "/metadata/annotations/argocd.argoproj.io~1skip-reconcile", "true");
    let result = json!({"phase": "Succeeded", "syncResult": {"resources": [{"group": "rbac.authorization.k8s.io",
        "version": "v1", "kind": "Role", "namespace": "shop", "name": "api", "status": "Synced"}]}});
    let old = with(old, "/status/operationState", result);
    let world = World::new([old, app("new", &[role]), object(role, "new")]);
    passes(&world.delete("argoproj.io/Application argocd/new", "alice"));
    passes(&world.delete(role, "alice"));
}

#[test]
fn sync_of_an_application_whose_list_is_in_error_replaces_what_it_holds() {
    let role = "rbac.authorization.k8s.io/Role shop/api";
    let failing = with(app("new", &[&format!("{role} Unknown")]), "/status/sync/status", "Unknown");
    let failing = with(failing, "/status/conditions", json!([{"type": "ComparisonError", "message": "m"}]));
    let replacing =
        with(failing.clone(), "/operation", json!({"sync": {"syncOptions": ["Replace=true", "Force=true"]}}));
    passes(&World::new([replacing, object(role, "renamed")]).delete(role, CONTROLLER));
}

#[test]
fn hooks_of_an_ending_application_may_be_cleaned_up() {
    let account = "ServiceAccount shop/cleanup";
    let hook = with(object(account, "a"), "/metadata/annotations/argocd.argoproj.io~1hook", "PostDelete");
    let a = with(app("a", &[]), "/metadata/deletionTimestamp", "2026-11-29T11:00:00Z");
    let a = with(a, "/metadata/finalizers", json!(["post-delete-finalizer.argocd.argoproj.io"]));
    let fresh = with(with(app("a2", &[]), "/status", json!({})), "/spec/destination/namespace", "shop");
    passes(&World::new([a.clone(), fresh.clone(), hook.clone()]).delete(account, CONTROLLER));
    // A person who deletes it, and a hook that another wants, are judged as ever.
    refused(&World::new([a.clone(), fresh, hook.clone()]).delete(account, "alice"), &["argocd/a2"]);
    refused(&World::new([a, app("new", &[account]), hook]).delete(account, CONTROLLER), &["argocd/new"]);
}

#[test]
fn application_never_compared_is_not_asked_about_what_another_one_marks_or_something_owns() {
    let binding = "rbac.authorization.k8s.io/RoleBinding shop/api";
    let fresh = || with(with(app("fresh", &[]), "/status", json!({})), "/spec/destination/namespace", "shop");
    // The watch may not show yet that `old` runs an operation.
    passes(&World::new([app("old", &[binding]), fresh(), object(binding, "old")]).delete(binding, CONTROLLER));
    refused(
        &World::new([app("old", &[binding]), fresh(), object(binding, "old")]).delete(binding, "alice"),
        &["fresh"],
    );
    let owned =
        with(object(binding, ""), "/metadata/ownerReferences", json!([{"kind": "Operator", "name": "o", "uid": "u"}]));
    passes(&World::new([fresh(), owned]).delete(binding, "operator"));
}

#[test]
fn tracking_id_is_believed_before_a_label_where_the_method_is_not_known() {
    let role = "rbac.authorization.k8s.io/Role shop/api";
    let labelled = with(object(role, "new"), "/metadata/labels", json!({"app.kubernetes.io/instance": "old"}));
    let apps = || [app("old", &[&format!("{role} OutOfSync")]), app("new", &[role])];
    passes(
        &World::new(apps().into_iter().chain([labelled.clone()])).delete("argoproj.io/Application argocd/old", "alice"),
    );
    let by_label = argocd_cm(json!({"application.resourceTrackingMethod": "label"}));
    refused(
        &World::new(apps().into_iter().chain([labelled, by_label]))
            .delete("argoproj.io/Application argocd/old", "alice"),
        &["argocd/new"],
    );
}
