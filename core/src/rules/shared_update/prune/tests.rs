use serde_json::{Value, json};

use crate::{
    decision::{Decision, Effect},
    rules::testing::{self, World},
};

/// An Application with this list, each entry as `[group/]Kind [namespace/]name`, `-` in front of what left Git.
fn app(name: &str, list: &[&str]) -> Value {
    let entry = |text: &&str| {
        let (pruned, text) = text.strip_prefix('-').map_or((false, *text), |text| (true, text));
        let (kind, path) = text.split_once(' ').unwrap();
        let (group, kind) = kind.rsplit_once('/').unwrap_or(("", kind));
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        json!({"group": group, "kind": kind, "namespace": namespace, "name": name,
            "status": if pruned { "OutOfSync" } else { "Synced" }, "requiresPruning": pruned})
    };
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name,
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "annotations": {"argocd.argoproj.io/tracking-id": "root:argoproj.io/Application:argocd/x"}},
        "spec": {"source": {"repoURL": "r", "path": name}, "destination": {"name": "in-cluster", "namespace": "shop"}},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"},
            "resources": list.iter().map(entry).collect::<Vec<_>>()}})
}

/// A live object with the marker of an Application.
fn live(api_version: &str, kind: &str, namespace: &str, name: &str, instance: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace, "uid": name,
        "annotations": {"argocd.argoproj.io/tracking-id": format!("{instance}:/X:shop/x")}}})
}

fn namespace(name: &str) -> Value {
    live("v1", "Namespace", "", name, "root")
}

const POLICY: &str = "rules: {sharedUpdate: {mode: enforce}, namespaceApproval: {mode: enforce}}";

fn world_under(policy: &str, objects: &[Value]) -> World {
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": {}});
    World::new(policy).with(&[objects, &[settings]].concat())
}

fn world(objects: &[Value]) -> World {
    world_under(POLICY, objects)
}

/// What is decided when prune is switched on, and, which has to be the same, when a sync with prune is asked for.
fn prune(world: &World, app: &Value) -> Decision {
    let (mut on, mut asked) = (app.clone(), app.clone());
    on["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
    asked["operation"] = json!({"sync": {"prune": true}});
    let (on, asked) =
        (world.judge(&testing::update("bob", app, &on)), world.judge(&testing::update("bob", app, &asked)));
    assert_eq!(testing::details(&on), testing::details(&asked));
    on
}

#[track_caller]
fn refused(decision: &Decision, detail: &str) {
    assert!(!decision.allowed(), "{:?}", testing::details(decision));
    assert!(testing::details(decision).iter().any(|said| said == detail), "{:?}", testing::details(decision));
}

#[test]
fn namespace_that_others_have_objects_in_is_refused() {
    let root = app("root", &["-Namespace shop"]);
    let objects = |other: &str| [root.clone(), app("other", &[other]), namespace("shop")];
    refused(
        &prune(&world(&objects("ConfigMap shop/m")), &root),
        "Namespace shop would be pruned by argocd/root and takes along a ConfigMap in shop, claimed by argocd/other",
    );
    let elsewhere = prune(&world(&objects("ConfigMap bank/m")), &root);
    assert!(elsewhere.allowed(), "{:?}", testing::details(&elsewhere));
}

#[test]
fn definition_whose_instances_others_claim_is_refused() {
    let root = app("root", &["-apiextensions.k8s.io/CustomResourceDefinition foos.example.com"]);
    let mut definition = live("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "foos.example.com", "root");
    definition["spec"] = json!({"group": "example.com", "names": {"kind": "Foo", "plural": "foos"}});
    let objects = |other: &str| [root.clone(), app("other", &[other]), definition.clone()];
    refused(
        &prune(&world(&objects("example.com/Foo shop/x")), &root),
        "CustomResourceDefinition foos.example.com would be pruned by argocd/root and takes along a Foo in shop, claimed by argocd/other",
    );
    assert!(prune(&world(&objects("example.com/Bar shop/x")), &root).is_plain_allow());
}

#[test]
fn child_application_whose_cascade_takes_what_others_claim_is_refused() {
    let role = "rbac.authorization.k8s.io/Role shop/r";
    let root = app("root", &["-argoproj.io/Application argocd/child"]);
    let objects = |instance: &str| {
        let role_object = live("rbac.authorization.k8s.io/v1", "Role", "shop", "r", instance);
        [root.clone(), app("child", &[role]), app("other", &[role]), role_object]
    };
    refused(
        &prune(&world(&objects("child")), &root),
        "Application argocd/child would be pruned by argocd/root and takes along Role shop/r, claimed by argocd/other",
    );
    // The cascade of the child passes by what the other has taken over.
    assert!(prune(&world(&objects("other")), &root).is_plain_allow());
    // A child that leaves everything behind takes nothing.
    let mut leaving = objects("child");
    leaving[1]["metadata"]["finalizers"] = json!([]);
    assert!(prune(&world(&leaving), &root).is_plain_allow());
    // So does one that the prune passes by.
    for (key, value) in [
        ("argocd.argoproj.io/sync-options", "Prune=false"),
        ("argocd.argoproj.io/tracking-id", "stranger:argoproj.io/Application:argocd/child"),
    ] {
        let mut kept = objects("child");
        kept[1]["metadata"]["annotations"][key] = json!(value);
        assert!(prune(&world(&kept), &root).is_plain_allow(), "{key}");
    }
}

#[test]
fn child_of_a_child_and_what_an_applicationset_generated_are_followed() {
    let role = "rbac.authorization.k8s.io/Role shop/r";
    let role_object = live("rbac.authorization.k8s.io/v1", "Role", "shop", "r", "leaf");
    let root = app("root", &["-argoproj.io/Application argocd/middle"]);
    let mut leaf = app("leaf", &[role]);
    leaf["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
        json!("middle:argoproj.io/Application:argocd/leaf");
    let middle = app("middle", &["argoproj.io/Application argocd/leaf"]);
    let deep = world(&[root.clone(), middle, leaf.clone(), app("other", &[role]), role_object.clone()]);
    refused(
        &prune(&deep, &root),
        "Application argocd/middle would be pruned by argocd/root and takes along Role shop/r, claimed by argocd/other",
    );
    let root = app("root", &["-argoproj.io/ApplicationSet argocd/set"]);
    leaf["metadata"]["ownerReferences"] = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set", "uid": "set", "controller": true}]);
    let set = live("argoproj.io/v1alpha1", "ApplicationSet", "argocd", "set", "root");
    refused(
        &prune(&world(&[root.clone(), set.clone(), leaf.clone(), app("other", &[role]), role_object.clone()]), &root),
        "ApplicationSet argocd/set would be pruned by argocd/root and takes along Role shop/r, claimed by argocd/other",
    );
    // A set that lets go of its Applications before it vanishes takes none of them.
    let mut keeping = set;
    keeping["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    keeping["spec"] = json!({"syncPolicy": {"applicationsSync": "create-only"}});
    assert!(prune(&world(&[root.clone(), keeping, leaf, app("other", &[role]), role_object]), &root).is_plain_allow());
}

#[test]
fn namespace_of_another_cluster_is_looked_into_as_well() {
    let remote = |name: &str, list: &[&str]| {
        let mut app = app(name, list);
        app["spec"]["destination"] = json!({"server": "https://far:6443", "namespace": "shop"});
        app
    };
    let root = remote("root", &["-Namespace shop"]);
    refused(
        &prune(&world(&[root.clone(), remote("other", &["ConfigMap shop/m"])]), &root),
        "Namespace shop would be pruned by argocd/root and takes along a ConfigMap in shop, claimed by argocd/other",
    );
    // The Namespace of that name here is another one.
    assert!(prune(&world(&[root.clone(), app("other", &["ConfigMap shop/m"])]), &root).is_plain_allow());
}

#[test]
fn namespace_without_an_approval_is_where_the_sync_will_stop() {
    let child = [app("root", &["-argoproj.io/Application argocd/child"]), app("child", &["Namespace shop"])];
    let alone = [app("root", &["-Namespace shop"])];
    let mut approved = namespace("shop");
    for (key, value) in [("by", "alice"), ("until", "2026-11-29T20:00:00Z"), ("uid", "shop")] {
        approved["metadata"]["annotations"][format!("cascade-guard.io/deletion-approved-{key}")] = json!(value);
    }
    let exempt = "{rules: {sharedUpdate: {mode: enforce}, namespaceApproval: {mode: enforce}},
        exemptions: [{name: e, match: {namespaces: [shop]}, rules: [namespaceApproval], until: '2027-01-01T00:00:00Z', reason: r}]}";
    for apps in [&child[..], &alone[..]] {
        let mut open = namespace("shop");
        if apps.len() > 1 {
            open["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("child:/Namespace:shop/shop");
        }
        let decision = prune(&world(&[apps, &[open.clone()]].concat()), &apps[0]);
        assert!(decision.allowed());
        assert!(decision.outcomes.iter().all(|outcome| outcome.effect == Effect::Warned));
        let said = testing::details(&decision);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("the prune by argocd/root will stop at Namespace shop: "), "{said:?}");
        assert!(
            decision.outcomes[0].finding.remedies[0].commands[0].as_str().starts_with("cascade-guard approve shop")
        );
        // Nothing is said where nothing will be refused.
        assert!(prune(&world_under(exempt, &[apps, &[open]].concat()), &apps[0]).is_plain_allow());
        let mut approved = approved.clone();
        if apps.len() > 1 {
            approved["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("child:/Namespace:shop/shop");
        }
        assert!(prune(&world(&[apps, &[approved]].concat()), &apps[0]).is_plain_allow());
    }
}

#[test]
fn what_is_taken_along_is_judged_where_it_is() {
    let root = app("root", &["-argoproj.io/Application argocd/child"]);
    let (first, second) = ("rbac.authorization.k8s.io/Role pr-1/r", "rbac.authorization.k8s.io/Role prod/r");
    let objects = |lists: &[&str]| {
        let mut objects = vec![root.clone(), app("child", lists), app("other", lists)];
        for namespace in ["pr-1", "prod"] {
            objects.push(live("rbac.authorization.k8s.io/v1", "Role", namespace, "r", "child"));
        }
        objects
    };
    let exempt = "{rules: {sharedUpdate: {mode: enforce}},
        exemptions: [{name: e, match: {namespaces: ['pr-*']}, rules: [sharedUpdate], until: '2027-01-01T00:00:00Z', reason: r}]}";
    assert!(prune(&world_under(exempt, &objects(&[first])), &root).is_plain_allow());
    assert!(!prune(&world_under(exempt, &objects(&[first, second])), &root).allowed());
    assert!(!prune(&world_under(exempt, &objects(&[second, first])), &root).allowed());
    // Nor does the namespace of the Application that prunes waive anything.
    let argocd = exempt.replace("pr-*", "argocd");
    assert!(!prune(&world_under(&argocd, &objects(&[first])), &root).allowed());
}
