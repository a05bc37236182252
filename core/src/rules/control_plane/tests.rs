//! What comes to a delete without being one. Deletes themselves are judged in `tests/judging`.

use serde_json::{Value, json};

use crate::{
    decision::Decision,
    rules::testing::{World, create, delete, details, update},
};

const ENFORCE: &str = "rules: {controlPlane: {mode: enforce}}";

fn app(name: &str, destination: &Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name,
            "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "default", "source": {"repoURL": "https://g", "path": name}, "destination": destination},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"}, "resources": []}})
}

fn here() -> Value {
    json!({"server": "https://kubernetes.default.svc", "namespace": "shop"})
}

fn said(decision: &Decision) -> String {
    details(decision).join("\n")
}

fn refuses(decision: &Decision, words: &[&str]) {
    assert!(!decision.allowed(), "it passed: {}", said(decision));
    for word in words {
        assert!(said(decision).contains(word), "no `{word}` in {}", said(decision));
    }
    for outcome in &decision.outcomes {
        assert!(!outcome.finding.remedies.is_empty(), "no way out");
    }
}

mod definitions {
    use super::*;

    fn version(name: &str, served: bool, storage: bool) -> Value {
        json!({"name": name, "served": served, "storage": storage})
    }

    fn definition(kind: &str, plural: &str, scope: &str, versions: &[Value]) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.argoproj.io"), "uid": "crd"},
            "spec": {"group": "argoproj.io", "scope": scope, "names": {"kind": kind, "plural": plural}, "versions": versions}})
    }

    fn applications(versions: &[Value]) -> Value {
        definition("Application", "applications", "Namespaced", versions)
    }

    fn now() -> Value {
        applications(&[version("v1alpha1", true, true)])
    }

    fn world() -> World {
        World::new(ENFORCE).with(&[app("old", &here())])
    }

    #[test]
    fn change_that_hides_the_instances_is_refused() {
        let hidden = [
            (applications(&[version("v1alpha1", false, true)]), "would no longer serve version v1alpha1"),
            (applications(&[version("v1alpha1", false, false), version("v2", true, true)]), "no longer serve version v1alpha1"),
            (applications(&[version("v2", true, true)]), "no longer serve version v1alpha1"),
            (definition("Application", "applications", "Cluster", &[version("v1alpha1", true, true)]), "scope Cluster"),
            (definition("App", "applications", "Namespaced", &[version("v1alpha1", true, true)]), "another kind"),
        ];
        for (new, word) in hidden {
            refuses(&world().judge(&update("ops", &now(), &new)), &["applications.argoproj.io", word, "its 1 Application"]);
        }
        let two = applications(&[version("v1alpha1", true, false), version("v2", true, true)]);
        let decision = world().judge(&update("ops", &two, &now()));
        refuses(&decision, &["would drop version v2, in which its objects are stored"]);
    }

    #[test]
    fn every_definition_of_argo_cd_is_judged() {
        for (kind, plural) in [("ApplicationSet", "applicationsets"), ("AppProject", "appprojects")] {
            let old = definition(kind, plural, "Namespaced", &[version("v1alpha1", true, true)]);
            let new = definition(kind, plural, "Namespaced", &[version("v1alpha1", false, true)]);
            let instance = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind,
                "metadata": {"name": "one", "namespace": "argocd", "uid": "u"}, "spec": {}});
            let world = World::new(ENFORCE).with(&[instance]);
            refuses(&world.judge(&update("ops", &old, &new)), &[plural, &format!("its 1 {kind}")]);
        }
    }

    #[test]
    fn change_that_hides_nothing_passes() {
        let mut labelled = now();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        let second = applications(&[version("v1alpha1", true, false), version("v2", true, true)]);
        for new in [labelled, second.clone(), applications(&[version("v1alpha1", true, true), version("v2", true, false)])] {
            assert!(world().judge(&update("ops", &now(), &new)).is_plain_allow(), "{new}");
        }
        // A version that Argo CD does not use, and in which nothing is stored, may go.
        let extra = applications(&[version("v1alpha1", true, true), version("v0", true, false)]);
        assert!(world().judge(&update("ops", &extra, &now())).is_plain_allow());
        let unserved = applications(&[version("v1alpha1", false, true)]);
        assert!(world().judge(&update("ops", &unserved, &now())).is_plain_allow(), "it is served again");
    }

    #[test]
    fn definition_without_instances_or_of_another_group_or_half_gone_may_change() {
        let unserved = applications(&[version("v1alpha1", false, true)]);
        assert!(World::new(ENFORCE).judge(&update("ops", &now(), &unserved)).is_plain_allow());
        let (mut old, mut new) = (now(), unserved.clone());
        for object in [&mut old, &mut new] {
            object["metadata"]["name"] = json!("widgets.example.com");
        }
        assert!(world().judge(&update("ops", &old, &new)).is_plain_allow());
        let mut leaving = now();
        leaving["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:00:00Z");
        assert!(world().judge(&update("ops", &leaving, &unserved)).is_plain_allow());
        let audit = World::new("rules: {}").with(&[app("old", &here())]);
        assert!(audit.judge(&update("ops", &now(), &unserved)).allowed());
    }

    #[test]
    fn definition_that_is_not_served_hides_what_its_delete_would_take() {
        let unserved = applications(&[version("v1alpha1", false, true)]);
        refuses(&World::new(ENFORCE).judge(&delete("ops", &unserved)), &["is not served, so nobody can see"]);
        assert!(World::new(ENFORCE).judge(&delete("ops", &now())).is_plain_allow());
    }
}

mod routes {
    use super::*;

    fn route(group: &str, service: &Value) -> Value {
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1alpha1.{group}"), "uid": "r"},
            "spec": {"group": group, "version": "v1alpha1", "service": service, "groupPriorityMinimum": 1000}})
    }

    fn service() -> Value {
        json!({"namespace": "evil", "name": "api", "port": 443})
    }

    #[test]
    fn group_of_argo_cd_is_not_handed_to_a_service() {
        let world = World::new(ENFORCE);
        let words = ["v1alpha1.argoproj.io", "Service evil/api"];
        refuses(&world.judge(&create("ops", &route("argoproj.io", &service()))), &words);
        refuses(
            &world.judge(&update("ops", &route("argoproj.io", &Value::Null), &route("argoproj.io", &service()))),
            &words,
        );
        let other = json!({"namespace": "good", "name": "api"});
        refuses(&world.judge(&update("ops", &route("argoproj.io", &other), &route("argoproj.io", &service()))), &words);
        refuses(&world.judge(&create("ops", &route("cascade-guard.io", &service()))), &["Service evil/api"]);
    }

    #[test]
    fn other_routes_pass() {
        let world = World::new(ENFORCE);
        for object in [route("metrics.k8s.io", &service()), route("argoproj.io", &Value::Null), route("argoproj.io.example.com", &service())]
        {
            assert!(world.judge(&create("ops", &object)).is_plain_allow(), "{object}");
        }
        let local = route("argoproj.io", &Value::Null);
        assert!(world.judge(&update("ops", &route("argoproj.io", &service()), &local)).is_plain_allow());
        let mut labelled = route("argoproj.io", &service());
        labelled["metadata"]["labels"] = json!({"a": "b"});
        assert!(world.judge(&update("ops", &route("argoproj.io", &service()), &labelled)).is_plain_allow());
        assert!(world.judge(&create("system:apiserver", &route("argoproj.io", &service()))).is_plain_allow());
    }
}

mod registrations {
    use super::*;

    fn secret(data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cluster-east", "namespace": "argocd", "uid": "s",
            "labels": {"argocd.argoproj.io/secret-type": "cluster", "env": "prod"}}, "stringData": data})
    }

    fn east() -> Value {
        secret(&json!({"name": "east", "server": "https://east"}))
    }

    fn relabelled(secret: &Value, labels: &Value) -> Value {
        let mut secret = secret.clone();
        secret["metadata"]["labels"] = labels.clone();
        secret
    }

    fn set(generators: &Value, policy: &str) -> [Value; 2] {
        let mut child = app("made", &here());
        child["metadata"]["ownerReferences"] = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "name": "each", "uid": "set", "controller": true}]);
        let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "each", "namespace": "argocd", "uid": "set"},
            "spec": {"generators": generators, "syncPolicy": {"applicationsSync": policy}}});
        [set, child]
    }

    #[test]
    fn cluster_that_is_deployed_to_is_not_forgotten() {
        for destination in [json!({"server": "https://east/"}), json!({"name": "east"})] {
            let world = World::new(ENFORCE).with(&[east(), app("one", &destination)]);
            let unlabelled = relabelled(&east(), &json!({"env": "prod"}));
            let repository = relabelled(&east(), &json!({"argocd.argoproj.io/secret-type": "repository"}));
            for review in [delete("ops", &east()), update("ops", &east(), &unlabelled), update("ops", &east(), &repository)] {
                refuses(&world.judge(&review), &["Secret argocd/cluster-east", "deploys to east", "argocd/one"]);
            }
        }
    }

    #[test]
    fn cluster_that_the_review_does_not_name_counts_as_any() {
        let bare = secret(&json!({}));
        let world = World::new(ENFORCE).with(&[app("one", &json!({"name": "west"}))]);
        refuses(&world.judge(&delete("ops", &bare)), &["a cluster that the review does not name", "argocd/one"]);
        let local = World::new(ENFORCE).with(&[app("one", &here())]);
        assert!(local.judge(&delete("ops", &bare)).is_plain_allow());
    }

    #[test]
    fn cluster_that_a_generator_finds_is_not_forgotten() {
        let prod = json!([{"clusters": {"selector": {"matchLabels": {"env": "prod"}}}}]);
        for generators in [json!([{"clusters": {}}]), prod.clone(), json!([{"matrix": {"generators": prod}}])] {
            let world = World::new(ENFORCE).with(&set(&generators, "sync"));
            refuses(&world.judge(&delete("ops", &east())), &["ApplicationSet argocd/each finds east by it"]);
        }
    }

    #[test]
    fn generator_that_finds_other_clusters_or_deletes_nothing_does_not_matter() {
        let test = json!([{"clusters": {"selector": {"matchLabels": {"env": "test"}}}}]);
        let every = json!([{"clusters": {}}]);
        for objects in [set(&test, "sync"), set(&every, "create-update"), set(&json!([{"git": {}}]), "sync")] {
            assert!(World::new(ENFORCE).with(&objects).judge(&delete("ops", &east())).is_plain_allow(), "{objects:?}");
        }
        let [set, _] = set(&every, "sync");
        assert!(World::new(ENFORCE).with(&[set]).judge(&delete("ops", &east())).is_plain_allow(), "it generated nothing");
    }

    #[test]
    fn other_secrets_and_other_changes_pass() {
        let world = World::new(ENFORCE).with(&[east(), app("one", &json!({"name": "east"}))]);
        let mut plain = east();
        plain["metadata"]["labels"] = json!({});
        let mut elsewhere = east();
        elsewhere["metadata"]["namespace"] = json!("shop");
        let rotated = secret(&json!({"name": "east", "server": "https://east", "config": "{}"}));
        for review in [
            delete("ops", &plain),
            delete("ops", &elsewhere),
            update("ops", &east(), &rotated),
            update("ops", &east(), &relabelled(&east(), &json!({"argocd.argoproj.io/secret-type": "cluster"}))),
            update("ops", &plain, &east()),
        ] {
            assert!(world.judge(&review).is_plain_allow(), "{review}");
        }
    }
}

mod own {
    use super::*;

    fn object(group: &str, kind: &str, namespace: &str, name: &str) -> Value {
        let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace, "uid": "u"}})
    }

    #[test]
    fn delete_of_the_rights_of_the_guard_is_warned_of() {
        let rbac = "rbac.authorization.k8s.io";
        for object in [
            object("", "ServiceAccount", "cascade-guard", "cascade-guard"),
            object(rbac, "ClusterRoleBinding", "", "cascade-guard"),
            object(rbac, "ClusterRoleBinding", "", "cascade-guard-reader"),
        ] {
            let decision = World::new(ENFORCE).judge(&delete("ops", &object));
            assert!(decision.allowed() && said(&decision).contains("cascade-guard sees nothing"), "{}", said(&decision));
        }
        for object in [object("", "ServiceAccount", "shop", "cascade-guard"), object(rbac, "ClusterRoleBinding", "", "other")] {
            let decision = World::new(ENFORCE).judge(&delete("ops", &object));
            assert!(!said(&decision).contains("cascade-guard sees"), "{}", said(&decision));
        }
    }
}
