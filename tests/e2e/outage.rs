//! What happens while the guard does not answer. The test runs alone, and starts the guard again whatever happened.

use anyhow::{Result, ensure};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Namespace},
        rbac::v1::Role,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    harness::{
        argo::{Application, CASCADE, applications, gone},
        outcome::unanswered,
        wait::eventually,
        world::{World, dry_run},
    },
    hooks::{by_argocd, migration},
    tests,
};

tests!(alone: without_the_guard_deletes_wait_and_work_goes_on);

async fn without_the_guard_deletes_wait_and_work_goes_on(world: &World) -> Result<()> {
    world.namespace("outage").await?;
    Application::create(world, "outage", "outage", &[CASCADE], &[]).await?;
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "outage");
    roles.create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": "role"}}))?).await?;
    leave_half_gone(world).await?;

    world.guard.stop()?;
    let outcome = async {
        deletes_wait(world).await?;
        changes_pass(world).await?;
        the_cluster_goes_on(world).await
    }
    .await;
    world.guard.resume().await?;
    world.wait_for_protection().await?;
    outcome
}

/// A Namespace in Terminating with a Role in it that something still holds, and a Role that has an owner.
async fn leave_half_gone(world: &World) -> Result<()> {
    world.namespace("half-gone").await?;
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "half-gone");
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/held"]}});
    roles.create(&PostParams::default(), &serde_json::from_value(held)?).await?;
    world.approve("half-gone").await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    eventually("the deletion to be admitted", async || {
        Ok(namespaces.delete("half-gone", &DeleteParams::default()).await?)
    })
    .await?;

    let maps: Api<ConfigMap> = Api::namespaced(world.ops.clone(), "outage");
    let owner = serde_json::from_value(json!({"metadata": {"name": "owner"}}))?;
    let owner = maps.create(&PostParams::default(), &owner).await?;
    let dependent = json!({"metadata": {"name": "owned", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid},
    ]}});
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "outage");
    roles.create(&PostParams::default(), &serde_json::from_value(dependent)?).await?;
    Ok(())
}

async fn deletes_wait(world: &World) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    unanswered(namespaces.delete("outage", &DeleteParams::default()).await, "namespaces")?;
    unanswered(applications(world).delete("outage", &DeleteParams::default()).await, "applications")?;
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "outage");
    unanswered(roles.delete("role", &DeleteParams::default()).await, "rbac-deletes")?;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.ops.clone());
    unanswered(definitions.delete("applications.argoproj.io", &dry_run()).await, "definitions")?;
    // Nobody judges whether this user may approve, so nobody may.
    let approval = json!({"metadata": {"annotations": {"cascade-guard.io/deletion-approved-by": "ops@example.com"}}});
    unanswered(namespaces.patch("outage", &PatchParams::default(), &Patch::Merge(approval)).await, "approvals")?;
    let exempt = json!({"metadata": {"labels": {"cascade-guard.io/tier": "lab"}}});
    unanswered(namespaces.patch("outage", &PatchParams::default(), &Patch::Merge(exempt)).await, "exempting-labels")?;

    ensure!(namespaces.get("outage").await?.metadata.deletion_timestamp.is_none(), "the Namespace is going");
    ensure!(roles.get_opt("role").await?.is_some(), "the Role is gone");
    Ok(())
}

async fn changes_pass(world: &World) -> Result<()> {
    let jobs: Api<Job> = Api::namespaced(world.argocd.clone(), "outage");
    jobs.create(&by_argocd(), &migration("outage", "secretRef", &[("hook", "PreSync"), ("sync-wave", "first")])?)
        .await?;
    let merge = |patch: serde_json::Value| Patch::Merge(patch);
    let params = PatchParams::default();
    let aim = merge(json!({"spec": {"source": {"targetRevision": "v2"}}}));
    applications(world).patch("outage", &params, &aim).await?;
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "outage");
    roles
        .patch(
            "role",
            &params,
            &merge(json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})),
        )
        .await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    namespaces.patch("outage", &params, &merge(json!({"metadata": {"labels": {"team": "a"}}}))).await?;
    Ok(())
}

async fn the_cluster_goes_on(world: &World) -> Result<()> {
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "half-gone");
    let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    roles.patch("held", &PatchParams::default(), &released).await?;
    gone(&Api::<Namespace>::all(world.ops.clone()), "half-gone").await?;

    let maps: Api<ConfigMap> = Api::namespaced(world.ops.clone(), "outage");
    maps.delete("owner", &DeleteParams::background()).await?;
    gone(&Api::<Role>::namespaced(world.ops.clone(), "outage"), "owned").await
}
