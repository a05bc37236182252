//! Children that a cascade passes by stay, and so do their claims; what they would take stays too.

use serde_json::{Value, json};

use crate::world::*;

const ROLE: &str = "rbac.authorization.k8s.io/Role shop/api";
const CHILD: &str = "argoproj.io/Application argocd/child";
const ROOT: &str = "argoproj.io/Application argocd/root";
const SYNC_OPTIONS: &str = "/metadata/annotations/argocd.argoproj.io~1sync-options";
const TRACKING_ID: &str = "/metadata/annotations/argocd.argoproj.io~1tracking-id";

/// `root` lists the child and a Role that carries its marker; the child lists the Role too.
fn family(child: Value) -> World {
    family_of(app("root", &[CHILD, ROLE]), child)
}

fn family_of(root: Value, child: Value) -> World {
    World::new([argocd_cm(json!({})), root, child, object(ROLE, "root")])
}

fn child() -> Value {
    app("child", &[&format!("{ROLE} OutOfSync")])
}

#[test]
fn child_that_goes_loses_its_claims_and_one_that_stays_keeps_them() {
    passes(&family(child()).delete(ROOT, "alice"));
    let stays = [
        with(child(), SYNC_OPTIONS, "Delete=false"),
        with(child(), "/metadata/annotations/helm.sh~1resource-policy", "keep"),
        with(child(), TRACKING_ID, "other:argoproj.io/Application:argocd/child"),
        with(child(), &format!("/metadata/annotations/{}", UNMARKED.replace('/', "~1")), ""),
        with(child(), "/metadata/ownerReferences", json!([{"kind": "ConfigMap", "name": "x", "uid": "x"}])),
    ];
    for child in stays {
        refused(&family(child.clone()).delete(ROOT, "alice"), &["argocd/child", "api"]);
    }
}

#[test]
fn parent_that_heals_itself_may_take_a_child_with_another_marker_and_its_claims_still_count() {
    let heals = with(app("root", &[CHILD, ROLE]), "/spec/syncPolicy", json!({"automated": {"selfHeal": true}}));
    let foreign = with(child(), TRACKING_ID, "other:argoproj.io/Application:argocd/child");
    refused(&family_of(heals.clone(), foreign).delete(ROOT, "alice"), &["argocd/child"]);
    // Its own marker settles it.
    passes(&family_of(heals.clone(), child()).delete(ROOT, "alice"));
    // What the child would take is looked at, because it may go.
    let takes = with(app("child", &["ConfigMap shop/cfg"]), TRACKING_ID, "other:argoproj.io/Application:argocd/child");
    let world = World::new([
        argocd_cm(json!({})),
        with(heals, "/status/resources", app("root", &[CHILD])["status"]["resources"].clone()),
        takes,
        app("third", &["ConfigMap shop/cfg"]),
        object("ConfigMap shop/cfg", "child"),
    ]);
    refused(&world.delete(ROOT, "alice"), &["argocd/third", "cfg"]);
}

#[test]
fn grandchildren_of_a_child_that_stays_stay() {
    let grandchild = app("grandchild", &[&format!("{ROLE} OutOfSync")]);
    let middle = |name: &str| with(app("child", &["argoproj.io/Application argocd/grandchild"]), name, "Delete=false");
    let world = |middle: Value| {
        World::new([
            argocd_cm(json!({})),
            app("root", &[CHILD, ROLE]),
            middle,
            grandchild.clone(),
            object(ROLE, "root"),
        ])
    };
    refused(&world(middle(SYNC_OPTIONS)).delete(ROOT, "alice"), &["argocd/grandchild"]);
    passes(&world(middle("/metadata/annotations/x")).delete(ROOT, "alice"));
}

/// A root that lists an ApplicationSet and a Role, which what the set generated lists too.
fn generated(set: Value) -> World {
    let owner =
        json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set", "uid": "uid-set"}]);
    World::new([
        argocd_cm(json!({})),
        app("root", &["argoproj.io/ApplicationSet argocd/set", ROLE]),
        set,
        with(child(), "/metadata/ownerReferences", owner),
        object(ROLE, "root"),
    ])
}

fn set() -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": {},
        "metadata": {"name": "set", "namespace": "argocd", "uid": "uid-set", "annotations": {}}})
}

#[test]
fn what_a_set_generated_goes_with_the_set() {
    passes(&generated(set()).delete(ROOT, "alice"));
    refused(&generated(with(set(), SYNC_OPTIONS, "Delete=false")).delete(ROOT, "alice"), &["argocd/child"]);
    refused(
        &generated(with(set(), TRACKING_ID, "other:argoproj.io/ApplicationSet:argocd/set")).delete(ROOT, "alice"),
        &["argocd/child"],
    );
    let policy = |policy: &str| with(set(), "/spec/syncPolicy", json!({"applicationsSync": policy}));
    let finalizers = json!(["resources-finalizer.argocd.argoproj.io"]);
    for keeps in ["create-only", "create-update"] {
        // Without the finalizer the garbage collector takes them all the same.
        passes(&generated(policy(keeps)).delete(ROOT, "alice"));
        let keeping = with(policy(keeps), "/metadata/finalizers", finalizers.clone());
        refused(&generated(keeping).delete(ROOT, "alice"), &["argocd/child"]);
    }
    let syncing = with(policy("sync"), "/metadata/finalizers", finalizers);
    passes(&generated(syncing).delete(ROOT, "alice"));
}

#[test]
fn object_with_the_marker_of_an_application_that_deploys_elsewhere_stays() {
    let remote = with(app("child", &["ConfigMap shop/x"]), "/spec/destination/server", "https://remote.example.com");
    let world = World::new([
        argocd_cm(json!({})),
        app("root", &[CHILD, ROLE]),
        remote,
        app("other", &[ROLE]),
        // The Role carries the marker of the child, whose cascade acts on another cluster.
        object(ROLE, "child"),
    ]);
    passes(&world.delete(ROOT, "alice"));
}
