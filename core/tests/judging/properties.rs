//! What must hold for every world, not only for those somebody thought of.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::support::{review, said, snapshot};
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
    in_error: bool,
}

#[derive(Clone, Debug)]
struct RandomWorld {
    apps: Vec<RandomApp>,
    /// Whose marker each object of the pool carries.
    markers: Vec<Option<usize>>,
}

fn random_app() -> impl Strategy<Value = RandomApp> {
    let entries = prop::collection::btree_map(0..pool().len(), 0u8..3, 0..5);
    (
        entries,
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.15),
    )
        .prop_map(|(entries, cascades, terminating, self_heals, in_error)| RandomApp {
            entries,
            cascades,
            terminating,
            self_heals,
            in_error,
        })
}

fn random_world() -> impl Strategy<Value = RandomWorld> {
    let markers = prop::collection::vec(prop::option::of(0..APPS), pool().len());
    (prop::collection::vec(random_app(), APPS), markers).prop_map(|(apps, markers)| RandomWorld { apps, markers })
}

impl RandomWorld {
    fn application(&self, number: usize) -> Value {
        let app = &self.apps[number];
        let resources: Vec<Value> = app
            .entries
            .iter()
            .map(|(place, state)| {
                let object = &pool()[*place];
                let status = if *state == 0 { "Synced" } else { "OutOfSync" };
                json!({"group": object.kind.group, "kind": object.kind.kind, "namespace": object.namespace, "name": object.name,
                    "version": "v1", "status": status, "requiresPruning": *state == 2})
            })
            .collect();
        let mut meta = json!({"name": format!("app-{number}"), "namespace": "argocd", "uid": format!("uid-{number}"), "annotations": {}});
        if app.cascades {
            meta["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
        }
        if app.terminating {
            meta["deletionTimestamp"] = json!("2026-11-29T11:00:00Z");
        }
        let at = pool().iter().position(|object| object.name == format!("app-{number}")).unwrap();
        if let Some(marker) = self.markers[at] {
            meta["annotations"] = json!({"argocd.argoproj.io/tracking-id": format!("app-{marker}:x/Y:a/b")});
        }
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": meta,
            "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "elsewhere"},
                "syncPolicy": {"automated": {"selfHeal": app.self_heals}}},
            "status": {"reconciledAt": "2026-11-29T10:00:00Z", "sync": {"status": if app.in_error { "Unknown" } else { "Synced" }},
                "resources": resources}})
    }

    fn objects(&self) -> Vec<Value> {
        let live = pool().into_iter().zip(&self.markers).filter(|(object, _)| !object.is_application()).map(|(object, marker)| {
            let version = if object.kind.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", object.kind.group) };
            let mut annotations = json!({});
            if let Some(marker) = marker {
                annotations = json!({"argocd.argoproj.io/tracking-id": format!("app-{marker}:x/Y:a/b")});
            }
            json!({"apiVersion": version, "kind": object.kind.kind,
                "metadata": {"name": object.name, "namespace": object.namespace, "uid": "u", "annotations": annotations}})
        });
        let settings =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"}});
        live.chain((0..APPS).map(|number| self.application(number))).chain([settings]).collect()
    }

    /// The definition of `shared-claim`, read slowly: who outside the plan claims something that the delete of `root`
    /// takes? Nothing here knows an index or a fingerprint.
    fn claimed_by_others(&self, root: usize) -> BTreeSet<usize> {
        let pool = pool();
        let claims = |app: usize, object: usize| {
            let app = &self.apps[app];
            !app.terminating && app.entries.get(&object).is_some_and(|state| *state < 2 || app.in_error)
        };
        let number = |object: usize| pool[object].name.strip_prefix("app-").and_then(|number| number.parse().ok());
        // What may go: it carries the marker of an Application that cascades, or one that heals itself lists it.
        let (mut going, mut taken, mut swept): (BTreeSet<usize>, BTreeSet<usize>, BTreeSet<usize>) =
            (BTreeSet::from([root]), BTreeSet::new(), BTreeSet::new());
        loop {
            let before = (going.len(), taken.len(), swept.len());
            let cascading: Vec<usize> = going.iter().copied().filter(|app| self.apps[*app].cascades).collect();
            let goes = |object: &usize| {
                let lists =
                    |app: &&usize| self.apps[**app].entries.contains_key(object) && number(*object) != Some(**app);
                let marked = self.markers[*object].filter(|app| number(*object) != Some(*app));
                marked.is_some_and(|app| cascading.contains(&app))
                    || cascading.iter().filter(lists).any(|app| self.apps[*app].self_heals)
            };
            taken.extend((0..pool.len()).filter(goes));
            going.extend(taken.iter().filter_map(|object| number(*object)));
            for namespace in taken.clone().into_iter().filter(|object| pool[*object].is_namespace()) {
                let listed = |place: &usize| self.apps.iter().any(|app| app.entries.contains_key(place));
                let inside = |place: &usize| pool[*place].namespace == pool[namespace].name;
                swept.extend((0..pool.len()).filter(inside).filter(listed));
            }
            if (going.len(), taken.len(), swept.len()) == before {
                break;
            }
        }
        // What surely goes: its marker names an Application that surely goes and cascades.
        let mut sure = BTreeSet::from([root]);
        loop {
            let by = |object: usize| self.markers[object].filter(|app| number(object) != Some(*app));
            let named = |object: &usize| by(*object).is_some_and(|app| sure.contains(&app) && self.apps[app].cascades);
            let more: BTreeSet<usize> = (0..pool.len()).filter(named).filter_map(number).collect();
            if more.is_subset(&sure) {
                break;
            }
            sure.extend(more);
        }
        let others = |object: usize| -> Vec<usize> {
            (0..APPS).filter(|app| !sure.contains(app) && claims(*app, object)).collect()
        };
        // An Application whose deletion has begun is lost to whoever claims it.
        let lost = |object: usize| number(object).is_some_and(|own| self.apps[own].terminating);
        let contested = taken.iter().chain(&swept).filter(|object| !lost(**object));
        contested.flat_map(|object| others(*object)).collect()
    }
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
    fn verdict_is_the_definition_read_slowly(world in random_world()) {
        let mut world = world;
        // What is deleted is not being deleted yet, cascades, and is nobody's child: a parent's own claim on it is another
        // question.
        world.apps[0].terminating = false;
        world.apps[0].cascades = true;
        let own = pool().len() - APPS;
        for app in &mut world.apps {
            app.entries.remove(&own);
        }
        let policy = only_shared_claim();
        let snapshot = snapshot(&world.objects());
        let inventory = snapshot.inventory(&policy, (7, 8));
        let response = review(&delete(&world.application(0)), &snapshot, &inventory, &policy, "2026-11-29T12:00:00Z".parse().unwrap());
        let claimants = world.claimed_by_others(0);
        prop_assert_eq!(response.allowed, claimants.is_empty(), "{:?} {}", claimants, said(&response));
    }

    #[test]
    fn any_order_of_events_gives_the_claims_of_a_fresh_list(
        events in prop::collection::vec((0..APPS, prop::option::weighted(0.8, random_app()), any::<bool>()), 1..40)
    ) {
        let mut world = RandomWorld { apps: Vec::new(), markers: vec![None; pool().len()] };
        let mut last: BTreeMap<usize, String> = BTreeMap::new();
        let mut inventory = empty();
        for (number, app, relist) in events {
            if let Some(mut app) = app {
                // What is kept while a comparison fails hangs on what was there before.
                app.in_error = false;
                world.apps = vec![app; APPS];
                let text = world.application(number).to_string();
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
