use serde_json::{Value, json};

use crate::{
    decision::{Decision, Effect},
    rules::testing::{self, World},
};

const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
const AGGREGATION: &str = "system:serviceaccount:kube-system:clusterrole-aggregation-controller";

/// An Application with this list: group, kind, namespace, name, whether it left Git.
fn application(name: &str, list: &[(&str, &str, &str, &str, bool)]) -> Value {
    let list: Vec<Value> = list
        .iter()
        .map(|(group, kind, namespace, name, pruned)| {
            json!({"group": group, "kind": kind, "namespace": namespace, "name": name,
                "status": if *pruned { "OutOfSync" } else { "Synced" }, "requiresPruning": pruned})
        })
        .collect();
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name},
        "spec": {"source": {"repoURL": "r", "path": name}, "destination": {"name": "in-cluster", "namespace": "shop"}},
        "status": {"sync": {"status": "Synced"}, "resources": list}})
}

fn enforce(objects: &[Value]) -> World {
    World::new("rules: {sharedUpdate: {mode: enforce}}").with(objects)
}

/// A world in which `alpha` and `beta` both list the object.
fn shared(object: &Value) -> World {
    let group = object["apiVersion"].as_str().unwrap().split_once('/').map_or("", |(group, _)| group);
    let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let list = [(group, kind, namespace, name, false)];
    enforce(&[application("alpha", &list), application("beta", &list), object.clone()])
}

fn object(api_version: &str, kind: &str, namespace: Option<&str>, rest: &Value) -> Value {
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": namespace}});
    for (key, value) in rest.as_object().unwrap() {
        if key == "labels" {
            object["metadata"]["labels"] = value.clone();
        } else {
            object[key] = value.clone();
        }
    }
    object
}

fn rbac(kind: &str, rest: &Value) -> Value {
    let namespace = (!kind.starts_with("Cluster")).then_some("shop");
    object("rbac.authorization.k8s.io/v1", kind, namespace, rest)
}

/// The same object after a sync by the Application with this name.
fn synced_by(instance: &str, mut object: Value) -> Value {
    object["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": format!("{instance}:/X:shop/x")});
    object
}

/// What is said when a person changes the object that both claim.
fn said(old: &Value, new: &Value) -> Vec<String> {
    testing::details(&shared(old).judge(&testing::update("bob", old, new)))
}

fn rule(resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": resources, "verbs": verbs})
}

#[test]
fn sync_that_drops_the_others_subject_is_refused_and_names_the_other() {
    let subject = |name: &str| json!({"kind": "ServiceAccount", "namespace": "shop", "name": name});
    let both = rbac("RoleBinding", &json!({"subjects": [subject("alpha"), subject("beta")]}));
    let one = rbac("RoleBinding", &json!({"subjects": [subject("alpha")]}));
    let decision =
        shared(&both).judge(&testing::update(CONTROLLER, &synced_by("beta", both.clone()), &synced_by("alpha", one)));
    assert!(!decision.allowed());
    let expected = "RoleBinding shop/x (claimed by argocd/beta) no longer binds ServiceAccount shop/beta";
    assert_eq!(testing::details(&decision), [expected]);
    assert_eq!(decision.outcomes[0].finding.claimants, ["argocd/beta"]);
}

#[test]
fn change_by_a_person_names_everybody_who_claims_it() {
    let role = |verbs: &[&str]| rbac("Role", &json!({"rules": [rule(&["pods"], verbs)]}));
    assert_eq!(
        said(&synced_by("alpha", role(&["get", "list", "watch"])), &synced_by("alpha", role(&["watch"]))),
        ["Role shop/x (claimed by argocd/alpha and argocd/beta) no longer grants get, list on pods"]
    );
}

#[test]
fn single_claimant_may_take_away() {
    let old = rbac("Role", &json!({"rules": [rule(&["pods"], &["get"])]}));
    let new = rbac("Role", &json!({"rules": []}));
    let list = [("rbac.authorization.k8s.io", "Role", "shop", "x", false)];
    let left = [("rbac.authorization.k8s.io", "Role", "shop", "x", true)];
    let request = testing::update("bob", &old, &new);
    assert!(enforce(&[application("alpha", &list)]).judge(&request).is_plain_allow());
    assert!(enforce(&[application("alpha", &list), application("beta", &left)]).judge(&request).is_plain_allow());
    let mut going = application("beta", &list);
    going["metadata"]["deletionTimestamp"] = json!(testing::NOW);
    assert!(enforce(&[application("alpha", &list), going]).judge(&request).is_plain_allow());
    let mut elsewhere = application("beta", &list);
    elsewhere["spec"]["destination"] = json!({"server": "https://east"});
    assert!(enforce(&[application("alpha", &list), elsewhere]).judge(&request).is_plain_allow());
}

#[test]
fn rules_are_compared_by_what_they_grant() {
    let role = |rules: Value| rbac("ClusterRole", &json!({"rules": rules}));
    let split = role(json!([rule(&["pods"], &["get"]), rule(&["secrets"], &["get", "list"])]));
    let merged = role(json!([rule(&["secrets", "pods"], &["list", "get"])]));
    let wildcard = role(json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]));
    assert_eq!(said(&split, &merged), [""; 0]);
    assert_eq!(said(&merged, &wildcard), [""; 0]);
    assert_eq!(
        said(&merged, &split),
        ["ClusterRole x (claimed by argocd/alpha and argocd/beta) no longer grants list on pods"]
    );
    assert_eq!(said(&wildcard, &merged).len(), 1);
}

#[test]
fn narrower_names_groups_and_paths_take_away() {
    let role = |rule: Value| rbac("ClusterRole", &json!({"rules": [rule]}));
    let say = |old: Value, new: Value| said(&role(old), &role(new)).join("\n");
    let all = json!({"apiGroups": ["", "apps"], "resources": ["x"], "verbs": ["get"]});
    let named = json!({"apiGroups": ["", "apps"], "resources": ["x"], "resourceNames": ["a"], "verbs": ["get"]});
    let core = json!({"apiGroups": [""], "resources": ["x"], "verbs": ["get"]});
    assert!(say(all.clone(), named.clone()).contains("no longer grants get on x.apps"));
    assert!(say(named, all.clone()).is_empty());
    assert!(say(all, core).ends_with("no longer grants get on x.apps"));
    let paths = |paths: &[&str]| json!({"nonResourceURLs": paths, "verbs": ["get"]});
    assert!(say(paths(&["/healthz", "/a"]), paths(&["/a"])).ends_with("no longer grants get on /healthz"));
    assert!(say(paths(&["/healthz/x"]), paths(&["/healthz/*"])).is_empty());
}

#[test]
fn rules_too_many_to_compare_grant_by_grant_are_compared_whole() {
    let words = |count: usize, of: &str| (0..count).map(|number| format!("{of}{number}")).collect::<Vec<_>>();
    let role = |resources: usize| {
        let rule = json!({"apiGroups": words(30, "g"), "resources": words(resources, "r"), "verbs": words(30, "v")});
        rbac("ClusterRole", &json!({"rules": [rule]}))
    };
    assert_eq!(said(&role(1000), &role(1001)), [""; 0]);
    assert_eq!(
        said(&role(1000), &role(999)),
        ["ClusterRole x (claimed by argocd/alpha and argocd/beta) has rules that no longer grant what they did"]
    );
}

#[test]
fn aggregated_rules_belong_to_the_control_plane() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let role = |selectors: &[&Value], rules: &[Value]| {
        rbac("ClusterRole", &json!({"aggregationRule": {"clusterRoleSelectors": selectors}, "rules": rules}))
    };
    let (full, empty) = (role(&[&selector], &[rule(&["pods"], &["get"])]), role(&[&selector], &[]));
    assert_eq!(said(&full, &empty), [""; 0]);
    assert_eq!(
        said(&full, &role(&[], &[])),
        [
            "ClusterRole x (claimed by argocd/alpha and argocd/beta) no longer aggregates {\"matchLabels\":{\"a\":\"b\"}}"
        ]
    );
    let own = rbac("ClusterRole", &json!({"rules": [rule(&["pods"], &["get"])]}));
    assert_eq!(
        said(&own, &full),
        ["ClusterRole x (claimed by argocd/alpha and argocd/beta) loses its own rules, an aggregation replaces them"]
    );
    let none = rbac("ClusterRole", &json!({"rules": []}));
    for user in [AGGREGATION, "system:apiserver"] {
        assert!(shared(&own).judge(&testing::update(user, &own, &none)).is_plain_allow(), "{user}");
    }
}

#[test]
fn service_account_keeps_its_secrets_and_its_token() {
    let account = |rest: Value| object("v1", "ServiceAccount", Some("shop"), &rest);
    let old = account(json!({"secrets": [{"name": "s"}, {"name": "t"}], "imagePullSecrets": [{"name": "p"}]}));
    let swapped =
        account(json!({"secrets": [{"name": "t"}, {"name": "s"}], "imagePullSecrets": [{"name": "p"}, {"name": "q"}]}));
    let bare =
        account(json!({"automountServiceAccountToken": false, "secrets": [{"name": "t"}], "imagePullSecrets": null}));
    assert_eq!(said(&old, &swapped), [""; 0]);
    let of = |loss: &str| format!("ServiceAccount shop/x (claimed by argocd/alpha and argocd/beta) {loss}");
    assert_eq!(
        said(&old, &bare),
        [of("loses imagePullSecret p"), of("loses secret s"), of("no longer mounts its token into Pods")]
    );
}

#[test]
fn labels_others_may_select_on_count_on_namespaces() {
    let (before, after) = (json!({"istio/injection": "on", "tier": "a"}), json!({"tier": "b", "more": "c"}));
    let old = object("v1", "Namespace", None, &json!({"labels": before}));
    let new = object("v1", "Namespace", None, &json!({"labels": after}));
    let of = |loss: &str| format!("Namespace x (claimed by argocd/alpha and argocd/beta) {loss}");
    assert_eq!(said(&old, &new), [of("has label tier=b instead of a"), of("loses label istio/injection=on")]);
    let role = |labels: Value| rbac("Role", &json!({"labels": labels}));
    assert_eq!(said(&role(json!({"tier": "a"})), &role(json!({}))), [""; 0]);
}

/// A ClusterRole that aggregates those with these labels.
fn aggregated(name: &str, selector: &Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "aggregationRule": {"clusterRoleSelectors": [selector]}})
}

#[test]
fn labels_of_cluster_roles_count_where_an_aggregation_selects_by_them() {
    let role = |labels: Value| rbac("ClusterRole", &json!({"labels": labels}));
    let all = json!({"tier": "a", "team": "a", "app": "x", "rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let (old, new) = (role(all), role(json!({"team": "b"})));
    let list = [("rbac.authorization.k8s.io", "ClusterRole", "", "x", false)];
    let of = |roles: &[Value]| {
        let mut objects = vec![application("alpha", &list), application("beta", &list), old.clone()];
        objects.extend_from_slice(roles);
        let said = testing::details(&enforce(&objects).judge(&testing::update("bob", &old, &new)));
        let loss = |line: &String| line.split_once("argocd/beta) ").unwrap().1.to_owned();
        said.iter().map(loss).collect::<Vec<_>>()
    };
    // What every cluster aggregates needs no proof.
    let view = "loses label rbac.authorization.k8s.io/aggregate-to-view=true";
    assert_eq!(of(&[]), [view]);
    let by_label = aggregated("one", &json!({"matchLabels": {"tier": "other"}}));
    let by_expression = aggregated("two", &json!({"matchExpressions": [{"key": "team", "operator": "Exists"}]}));
    assert_eq!(of(std::slice::from_ref(&by_label)), [view, "loses label tier=a"]);
    assert_eq!(of(&[by_label.clone(), by_expression]), ["has label team=b instead of a", view, "loses label tier=a"]);
    let crowd: Vec<Value> = (0..1000).map(|number| aggregated(&format!("r{number}"), &json!({}))).collect();
    assert_eq!(of(&crowd).len(), 4, "nobody has seen them all");
}

#[test]
fn every_label_of_a_cluster_role_counts_while_the_others_cannot_be_listed() {
    let role = |labels: Value| rbac("ClusterRole", &json!({"labels": labels}));
    let (old, new) = (role(json!({"tier": "a"})), role(json!({})));
    let list = [("rbac.authorization.k8s.io", "ClusterRole", "", "x", false)];
    let world = [application("alpha", &list), application("beta", &list)];
    let text = json!({"apiVersion": "v1", "kind": "List", "items": world}).to_string();
    let review = testing::update("bob", &old, &new).to_string();
    let request = crate::admission::decode(review.as_bytes()).unwrap();
    let policy =
        crate::policy::Policy::new(serde_saphyr::from_str("rules: {sharedUpdate: {mode: enforce}}").unwrap()).unwrap();
    let inventory = crate::snapshot::Snapshot::parse("test", text).unwrap().inventory(&policy, (1, 2));
    let case = crate::judge::Case::new(&request, &policy, testing::NOW.parse().unwrap());
    let decide = |facts: &mut crate::facts::Facts| crate::judge::judge(&case, &inventory, facts, None).decision;
    let mut facts = crate::facts::Facts::new();
    assert!(decide(&mut facts).allowed(), "the answer is out");
    assert_eq!(facts.take_pending().len(), 1);
    facts.close("clusterroles is forbidden");
    assert!(!decide(&mut facts).allowed());
}

#[test]
fn version_and_tracking_labels_and_all_other_metadata_pass() {
    let old = object(
        "v1",
        "Namespace",
        None,
        &json!({"labels": {"app.kubernetes.io/version": "1", "version": "1", "app.kubernetes.io/instance": "alpha",
            "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "x-1", "argocd.argoproj.io/instance": "a",
            "kubernetes.io/metadata.name": "x", "our/instance": "alpha"}, "status": {"phase": "Active"}}),
    );
    let mut new = synced_by("beta", object("v1", "Namespace", None, &json!({"labels": {}})));
    new["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {"application.instanceLabelKey": "our/instance"}});
    let list = [("", "Namespace", "", "x", false)];
    let world = enforce(&[application("alpha", &list), application("beta", &list), settings]);
    assert!(world.judge(&testing::update("bob", &old, &new)).is_plain_allow());
}

#[test]
fn terminating_objects_pass() {
    let mut old = rbac("Role", &json!({"rules": [rule(&["pods"], &["get"])]}));
    old["metadata"]["deletionTimestamp"] = json!(testing::NOW);
    let mut new = old.clone();
    new["rules"] = json!([]);
    assert_eq!(said(&old, &new), [""; 0]);
}

#[test]
fn object_that_cannot_be_read_is_said_to_be_so() {
    let old = rbac("Role", &json!({"rules": "none"}));
    let decision = shared(&old).judge(&testing::update("bob", &old, &old));
    assert!(decision.allowed());
    assert!(testing::details(&decision)[0].starts_with("Role shop/x cannot be read ("));
}

// ---- Applications

const MAP: (&str, &str, &str, &str) = ("", "ConfigMap", "shop", "m");

fn listed(application_name: &str, pruned: bool) -> Value {
    application(application_name, &[(MAP.0, MAP.1, MAP.2, MAP.3, pruned)])
}

fn with_prune(mut application: Value) -> Value {
    application["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
    application
}

fn live(instance: &str, options: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "shop", "annotations": {
        "argocd.argoproj.io/tracking-id": format!("{instance}:/ConfigMap:shop/m"),
        "argocd.argoproj.io/sync-options": options}}})
}

fn pruning(world: &World, change: impl FnOnce(Value) -> Value) -> Decision {
    let old = listed("alpha", true);
    world.judge(&testing::update("bob", &old, &change(old.clone())))
}

#[test]
fn switching_on_prune_over_what_another_application_claims_is_refused() {
    let world = enforce(&[listed("alpha", true), listed("beta", false), live("alpha", "")]);
    let expected = "ConfigMap shop/m (claimed by argocd/beta) would be pruned by argocd/alpha";
    let operation = |sync: Value| {
        move |mut application: Value| {
            application["operation"] = json!({"sync": sync});
            application
        }
    };
    for decision in [
        pruning(&world, with_prune),
        pruning(&world, operation(json!({"prune": true}))),
        pruning(
            &world,
            operation(json!({"prune": true, "resources": [{"group": "", "kind": "ConfigMap", "name": "m"}]})),
        ),
    ] {
        assert_eq!(testing::details(&decision), [expected]);
        assert!(!decision.allowed());
    }
    for harmless in [
        json!({"prune": false}),
        json!({"prune": true, "dryRun": true}),
        json!({"prune": true, "syncOptions": ["Prune=false"]}),
        json!({"prune": true, "resources": [{"kind": "Service", "name": "m"}]}),
    ] {
        assert!(pruning(&world, operation(harmless.clone())).is_plain_allow(), "{harmless}");
    }
}

#[test]
fn prune_that_spares_the_object_may_be_switched_on() {
    for live in [live("beta", ""), live("alpha", "Prune=false")] {
        let world = enforce(&[listed("alpha", true), listed("beta", false), live]);
        assert!(pruning(&world, with_prune).is_plain_allow());
    }
}

#[test]
fn object_that_is_listed_but_not_found_is_taken_to_be_there() {
    let world = enforce(&[listed("alpha", true), listed("beta", false)]);
    assert!(!pruning(&world, with_prune).allowed());
}

#[test]
fn prune_that_nobody_else_minds_may_be_switched_on() {
    assert!(pruning(&enforce(&[listed("alpha", true), listed("beta", true)]), with_prune).is_plain_allow());
    let on = with_prune(listed("alpha", true));
    let world = enforce(&[listed("alpha", true), listed("beta", false)]);
    assert!(world.judge(&testing::update("bob", &on, &on)).is_plain_allow());
}

#[test]
fn child_of_two_parents_that_is_pointed_elsewhere_is_worth_a_warning() {
    let child = |path: &str, destination: &str, project: &str| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "core", "namespace": "argocd"},
            "spec": {"project": project, "source": {"repoURL": "r", "path": path}, "destination": {"name": destination}}})
    };
    let list = [("argoproj.io", "Application", "argocd", "core", false)];
    let world = enforce(&[application("parent-a", &list), application("parent-b", &list)]);
    let old = child("a", "in-cluster", "");
    let say = |new: Value| {
        let decision = world.judge(&testing::update(CONTROLLER, &old, &synced_by("parent-b", new)));
        assert!(decision.allowed() && decision.outcomes.iter().all(|outcome| outcome.effect == Effect::Warned));
        testing::details(&decision)
    };
    assert_eq!(
        say(child("b", "in-cluster", "")),
        ["Application argocd/core (defined by argocd/parent-a too) has another source, set by argocd/parent-b"]
    );
    assert_eq!(
        say(child("a", "east", "ops")),
        [
            "Application argocd/core (defined by argocd/parent-a too) has another destination, project, set by argocd/parent-b"
        ]
    );
    assert_eq!(say(child("a", "in-cluster", "default")), [""; 0]);
}

#[test]
fn applications_that_a_set_drops_are_named() {
    let set = |names: &[&str]| {
        let elements: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "fleet", "namespace": "argocd", "uid": "s"},
            "spec": {"generators": [{"list": {"elements": elements}}], "template": {"metadata": {"name": "web-{{name}}"}}}})
    };
    let generated = |name: &str| {
        let mut app = application(name, &[]);
        app["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
        app["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "fleet", "uid": "s"}]);
        app
    };
    let old = set(&["a", "b", "c", "d"]);
    let world =
        enforce(&[old.clone(), generated("web-a"), generated("web-b"), generated("web-c"), application("web-d", &[])]);
    let said = |names: &[&str]| {
        let decision = world.judge(&testing::update("bob", &old, &set(names)));
        assert!(decision.allowed());
        testing::details(&decision)
    };
    let drops = "ApplicationSet argocd/fleet drops";
    assert_eq!(said(&["a", "b"]), [format!("{drops} 1 Application with its objects: web-c")]);
    assert_eq!(said(&[]), [format!("{drops} 3 Applications with their objects: web-a, web-b and 1 more")]);
    assert_eq!(said(&["a", "b", "c", "e"]), [""; 0], "what the set did not generate it cannot drop");
}
