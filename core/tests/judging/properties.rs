//! What must hold for every order of events, and for plans of any size. What must hold for every world stands in
//! `core/tests/reference`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::support::{review, snapshot};
use cascade_guard_core::{
    argo::{Application, Clusters},
    inventory::{Inventory, LOCAL},
    object::ObjectRef,
    policy::{Mode, Policy, RuleKey},
};
use proptest::prelude::*;
use serde_json::{Value, json};

const APPS: usize = 5;

/// Objects that the Applications of a random world fight over.
fn pool() -> Vec<ObjectRef> {
    let mut pool = vec![
        ObjectRef::new("", "ConfigMap", "a", "one"),
        ObjectRef::new("", "ConfigMap", "b", "two"),
        ObjectRef::new("rbac.authorization.k8s.io", "Role", "a", "three"),
        ObjectRef::new("rbac.authorization.k8s.io", "ClusterRole", "", "four"),
        ObjectRef::namespace("a"),
        ObjectRef::namespace("b"),
    ];
    pool.extend((0..APPS).map(|number| ObjectRef::application("argocd", &format!("app-{number}"))));
    pool
}

#[derive(Clone, Debug)]
struct RandomApp {
    /// Place in the pool and what the list says of it: 0 synced, 1 out of sync, 2 to be pruned.
    entries: BTreeMap<usize, u8>,
    cascades: bool,
    terminating: bool,
    self_heals: bool,
}

fn random_app() -> impl Strategy<Value = RandomApp> {
    let entries = prop::collection::btree_map(0..pool().len(), 0u8..3, 0..5);
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.15), prop::bool::weighted(0.2));
    (entries, flags).prop_map(|(entries, (cascades, terminating, self_heals))| RandomApp {
        entries,
        cascades,
        terminating,
        self_heals,
    })
}

/// The Application of this number.
fn application(number: usize, app: &RandomApp) -> Value {
    let entry = |(place, state): (&usize, &u8)| {
        let object = &pool()[*place];
        let status = if *state == 0 { "Synced" } else { "OutOfSync" };
        json!({"group": object.kind.group, "kind": object.kind.kind, "namespace": object.namespace, "name": object.name,
            "version": "v1", "status": status, "requiresPruning": *state == 2})
    };
    let resources: Vec<Value> = app.entries.iter().map(entry).collect();
    let mut meta = json!({"name": format!("app-{number}"), "namespace": "argocd", "uid": format!("uid-{number}"), "annotations": {}});
    if app.cascades {
        meta["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    }
    if app.terminating {
        meta["deletionTimestamp"] = json!("2026-11-29T11:00:00Z");
    }
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": meta,
        "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "elsewhere"},
            "syncPolicy": {"automated": {"selfHeal": app.self_heals}}},
        "status": {"reconciledAt": "2026-11-29T10:00:00Z", "sync": {"status": "Synced"}, "resources": resources}})
}

fn only_shared_claim() -> Policy {
    Policy::every_rule(Mode::Off).with_mode(RuleKey::SharedClaim, Mode::Enforce)
}

fn delete(application: &Value) -> Value {
    json!({"uid": "1", "kind": {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application"}, "operation": "DELETE",
        "name": application["metadata"]["name"], "namespace": "argocd", "userInfo": {"username": "alice"},
        "object": null, "oldObject": application})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_order_of_events_gives_the_claims_of_a_fresh_list(
        events in prop::collection::vec((0..APPS, prop::option::weighted(0.8, random_app()), any::<bool>()), 1..40)
    ) {
        let mut last: BTreeMap<usize, String> = BTreeMap::new();
        let mut inventory = empty();
        for (number, app, relist) in events {
            if let Some(app) = app {
                let text = application(number, &app).to_string();
                inventory.apply_application(&serde_json::from_str::<Application<'_>>(&text).unwrap());
                last.insert(number, text);
            } else {
                inventory.remove_application("argocd", &format!("app-{number}"));
                last.remove(&number);
            }
            if relist {
                // A relist delivers everything that is there once more, and what it leaves out is gone.
                for text in last.values() {
                    inventory.apply_application(&serde_json::from_str::<Application<'_>>(text).unwrap());
                }
                let names: HashSet<_> = last.keys().map(|number| ("argocd".to_owned(), format!("app-{number}"))).collect();
                inventory.retain_applications(&names);
            }
            let mut fresh = empty();
            for text in last.values() {
                fresh.apply_application(&serde_json::from_str::<Application<'_>>(text).unwrap());
            }
            prop_assert_eq!(claims(&inventory), claims(&fresh));
        }
    }
}

fn empty() -> Inventory {
    Inventory::new((9, 10), "argocd", Clusters::default())
}

/// Who lists what, by name.
fn claims(inventory: &Inventory) -> (usize, Vec<BTreeSet<String>>, Vec<usize>) {
    let owners = |object: &ObjectRef| {
        let key = inventory.key_of(LOCAL, object);
        let paths = inventory.claims().owners(key).iter().map(|id| {
            let app = inventory.app(*id).unwrap();
            format!("{} {:?}", app.path(), app.claim(key).unwrap().class)
        });
        paths.collect()
    };
    let in_namespace =
        |name: &str| inventory.claims().in_namespace(LOCAL, name).map(|(_, bucket)| bucket.apps().count()).sum();
    (inventory.claims().len(), pool().iter().map(owners).collect(), vec![in_namespace("a"), in_namespace("b")])
}

#[test]
fn plan_ends_on_a_ring_of_ten_thousand_applications() {
    let mut objects = Vec::new();
    let application = |number: usize| {
        let next = format!("app-{}", (number + 1) % 10_000);
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": format!("app-{number}"), "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"],
                "annotations": {"argocd.argoproj.io/tracking-id": format!("app-{}:argoproj.io/Application:argocd/app-{number}", (number + 9_999) % 10_000)}},
            "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "argocd"}},
            "status": {"reconciledAt": "2026-11-29T10:00:00Z", "sync": {"status": "Synced"}, "resources": [
                {"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": next, "status": "Synced"}]}})
    };
    objects.extend((0..10_000).map(application));
    let policy = only_shared_claim();
    let snapshot = snapshot(&objects);
    let inventory = snapshot.inventory(&policy, (1, 1));
    let response =
        review(&delete(&application(0)), &snapshot, &inventory, &policy, "2026-11-29T12:00:00Z".parse().unwrap());
    assert!(response.allowed, "{}", response.message);
}
