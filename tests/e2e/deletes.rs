//! Deletes that reach far, on the real API server: trees of Applications, definitions, Applications nobody has compared,
//! objects that change hands between two requests.

use anyhow::{Context, Result};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    harness::{
        argo::{Application, CASCADE, Entry, applications, entry},
        outcome::refused,
        wait::eventually,
        world::{World, dry_run},
    },
    tests,
};

const RBAC: &str = "rbac.authorization.k8s.io";

tests!(
    tree_of_applications_is_judged_by_its_leaves,
    definition_whose_instance_is_claimed_is_refused,
    application_never_compared_is_an_unknown_claimant,
    object_that_changes_hands_changes_the_verdict,
);

async fn tree_of_applications_is_judged_by_its_leaves(world: &World) -> Result<()> {
    world.namespace("tree").await?;
    let shared = [entry(RBAC, "Role", "tree", "leaf")];
    let child = |name: &str| entry("argoproj.io", "Application", "argocd", name);
    Application::create(world, "tree-root", "argocd", &[CASCADE], &[child("tree-middle")]).await?;
    Application::create(world, "tree-middle", "argocd", &[CASCADE], &[child("tree-leaf")]).await?;
    let leaf = Application::create(world, "tree-leaf", "tree", &[CASCADE], &shared).await?;
    leaf.sync(&shared).await?;
    let applications = applications(world);
    // A child without its parent's marker stays when the parent goes.
    for (parent, name) in [("tree-root", "tree-middle"), ("tree-middle", "tree-leaf")] {
        let marked =
            json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": child(name).tracking_id(parent)}}});
        applications.patch(name, &PatchParams::default(), &Patch::Merge(marked)).await?;
    }
    eventually("the guard to know the tree", async || {
        applications.delete("tree-root", &dry_run()).await.map(drop).context("nobody else claims anything yet")
    })
    .await?;
    Application::create(world, "tree-other", "tree", &[CASCADE], &shared.clone().map(Entry::out_of_sync)).await?;
    eventually("the guard to know the other claim", async || {
        let words = ["shared-claim", "argocd/tree-other", "Role tree/leaf", "argocd/tree-leaf"];
        refused(applications.delete("tree-root", &dry_run()).await, "applications", &words)
    })
    .await
}

async fn definition_whose_instance_is_claimed_is_refused(world: &World) -> Result<()> {
    world.namespace("gadgets").await?;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.e2e.example.com"},
        "spec": {
            "group": "e2e.example.com", "scope": "Namespaced",
            "names": {"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    let definitions: Api<DynamicObject> = Api::all_with(world.ops.clone(), &kind);
    definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
    let instance = [entry("e2e.example.com", "Gadget", "gadgets", "one")];
    Application::create(world, "gadgets", "gadgets", &[CASCADE], &instance).await?;
    eventually("the guard to know the instance", async || {
        let words = ["shared-claim", "argocd/gadgets", "Gadget"];
        refused(definitions.delete("gadgets.e2e.example.com", &dry_run()).await, "definitions", &words)
    })
    .await?;
    // Once nobody wants an instance, the definition may go.
    applications(world)
        .patch("gadgets", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await?;
    applications(world).delete("gadgets", &DeleteParams::default()).await?;
    eventually("the guard to forget the instance", async || {
        definitions.delete("gadgets.e2e.example.com", &DeleteParams::default()).await.map(drop).context("still refused")
    })
    .await
}

async fn application_never_compared_is_an_unknown_claimant(world: &World) -> Result<()> {
    world.namespace("unknown").await?;
    let list = [entry(RBAC, "Role", "unknown", "reader")];
    let old = Application::create(world, "unknown-old", "unknown", &[CASCADE], &list).await?;
    old.sync(&list).await?;
    let fresh = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "unknown-fresh", "namespace": "argocd", "finalizers": [CASCADE]},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example.com/deploy.git", "path": "fresh"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "unknown"}},
    });
    let applications = applications(world);
    applications.create(&PostParams::default(), &serde_json::from_value(fresh)?).await?;
    eventually("the guard to know the new Application", async || {
        let words = ["shared-claim/unknown", "argocd/unknown-fresh", "never compared"];
        refused(applications.delete("unknown-old", &dry_run()).await, "applications", &words)
    })
    .await?;
    let compared = json!({"status": {"reconciledAt": jiff::Timestamp::now().to_string(), "sync": {"status": "Synced"},
        "resources": [{"version": "v1", "kind": "ConfigMap", "namespace": "unknown", "name": "own", "status": "Synced"}]}});
    applications.patch("unknown-fresh", &PatchParams::default(), &Patch::Merge(compared)).await?;
    eventually("the guard to know what it wants", async || {
        applications.delete("unknown-old", &dry_run()).await.map(drop).context("still refused")
    })
    .await
}

async fn object_that_changes_hands_changes_the_verdict(world: &World) -> Result<()> {
    world.namespace("hands").await?;
    let list = [entry(RBAC, "Role", "hands", "api")];
    let old = Application::create(world, "hands-old", "hands", &[CASCADE], &list).await?;
    old.sync(&list).await?;
    let new =
        Application::create(world, "hands-new", "hands", &[CASCADE], &list.clone().map(Entry::out_of_sync)).await?;
    let applications = applications(world);
    eventually("the guard to know both", async || {
        refused(applications.delete("hands-old", &dry_run()).await, "applications", &["argocd/hands-new"])
    })
    .await?;
    // The marker is read for each review, so nothing has to be waited for.
    new.sync(&list).await?;
    applications.delete("hands-old", &dry_run()).await?;
    old.sync(&list).await?;
    refused(applications.delete("hands-old", &dry_run()).await, "applications", &["argocd/hands-new"])
}
