//! Applications whose lists change under way: a child that moves between parents, a comparison that fails, and names that
//! change in one commit. Every status is as Argo CD writes it.

use anyhow::{Context, Result};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

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
const ARGO: &str = "argoproj.io";
const MARKER: &str = "argocd.argoproj.io/tracking-id";

tests!(
    child_that_moves_between_parents_goes_with_the_one_that_marks_it,
    repo_server_that_dies_leaves_what_was_claimed_claimed,
    project_and_service_account_renamed_in_one_commit_are_pruned,
);

async fn mark(world: &World, name: &str, parent: &str) -> Result<()> {
    let id = entry(ARGO, "Application", "argocd", name).tracking_id(parent);
    let marked = Patch::Merge(json!({"metadata": {"annotations": {MARKER: id}}}));
    applications(world).patch(name, &PatchParams::default(), &marked).await?;
    Ok(())
}

async fn child_that_moves_between_parents_goes_with_the_one_that_marks_it(world: &World) -> Result<()> {
    world.namespace("moving").await?;
    let shared = [entry(RBAC, "Role", "moving", "leader")];
    let child = entry(ARGO, "Application", "argocd", "moving-child");
    let from = Application::create(world, "moving-from", "argocd", &[CASCADE], std::slice::from_ref(&child)).await?;
    let to = Application::create(world, "moving-to", "argocd", &[CASCADE], &[]).await?;
    let synced = Application::create(world, "moving-child", "moving", &[CASCADE], &shared).await?;
    synced.sync(&shared).await?;
    mark(world, "moving-child", "moving-from").await?;
    Application::create(world, "moving-other", "moving", &[CASCADE], &shared.map(Entry::out_of_sync)).await?;
    let applications = applications(world);
    let words = ["shared-claim", "argocd/moving-other", "Role moving/leader"];
    eventually("the child to count as part of the first parent", async || {
        refused(applications.delete("moving-from", &dry_run()).await, "applications", &words)
    })
    .await?;
    // The second parent syncs it and takes it over; the first one sees it out of sync, to be pruned.
    mark(world, "moving-child", "moving-to").await?;
    to.compare(std::slice::from_ref(&child)).await?;
    from.compare(&[child.out_of_sync()]).await?;
    eventually("the child to count as part of the second parent", async || {
        refused(applications.delete("moving-to", &dry_run()).await, "applications", &words)
    })
    .await?;
    eventually("the first parent to pass it by", async || {
        applications.delete("moving-from", &dry_run()).await.map(drop).context("it still takes the child along")
    })
    .await
}

async fn repo_server_that_dies_leaves_what_was_claimed_claimed(world: &World) -> Result<()> {
    world.namespace("unrendered").await?;
    let shared = [entry(RBAC, "Role", "unrendered", "leader")];
    let old = Application::create(world, "unrendered-old", "unrendered", &[CASCADE], &shared).await?;
    old.sync(&shared).await?;
    let new =
        Application::create(world, "unrendered-new", "unrendered", &[CASCADE], &shared.map(Entry::out_of_sync)).await?;
    let applications = applications(world);
    eventually("the guard to know both claims", async || {
        let words = ["shared-claim", "argocd/unrendered-new"];
        refused(applications.delete("unrendered-old", &dry_run()).await, "applications", &words)
    })
    .await?;
    // Argo CD empties the list and leaves `reconciledAt` as it is.
    let message = "Failed to load target state: failed to generate manifest: connection error: desc = \"transport: \
                   Error while dialing: dial tcp 10.96.0.12:8081: connect: connection refused\"";
    new.patch_as_argocd(json!({"status": {
        "resources": [], "sync": {"status": "Unknown"},
        "conditions": [{"type": "ComparisonError", "message": message, "lastTransitionTime": jiff::Timestamp::now().to_string()}],
    }}))
    .await?;
    // Once it knows something that was written later, the guard has seen the comparison in error.
    let later = [entry(RBAC, "Role", "unrendered", "leader").out_of_sync()];
    Application::create(world, "unrendered-later", "unrendered", &[CASCADE], &later).await?;
    eventually("the guard to have seen what came later", async || {
        let words = ["shared-claim", "argocd/unrendered-later", "argocd/unrendered-new"];
        refused(applications.delete("unrendered-old", &dry_run()).await, "applications", &words)
    })
    .await
}

async fn project_and_service_account_renamed_in_one_commit_are_pruned(world: &World) -> Result<()> {
    world.namespace("renamed").await?;
    let project = |name: &str| entry(ARGO, "AppProject", "argocd", name);
    let account = |name: &str| entry("", "ServiceAccount", "renamed", name);
    let workload = entry("apps", "Deployment", "renamed", "web");
    let user = entry(ARGO, "Application", "argocd", "renamed-user");
    let before = [project("renamed-old"), account("renamed-old"), workload.clone(), user.clone()];
    let application = Application::create(world, "renamed", "renamed", &[CASCADE], &before).await?;
    let projects = projects(world);
    create(&projects, &project("renamed-old"), "argoproj.io/v1alpha1").await?;
    let accounts = account("renamed-old").api(world);
    create(&accounts, &account("renamed-old"), "v1").await?;
    Application::create(world, "renamed-user", "renamed", &[CASCADE], &[]).await?;
    let patch = Patch::Merge(json!({"spec": {"project": "renamed-old"}}));
    applications(world).patch("renamed-user", &PatchParams::default(), &patch).await?;
    mark(world, "renamed-user", "renamed").await?;
    eventually("the guard to know who uses the project", async || {
        refused(projects.delete("renamed-old", &dry_run()).await, "applications", &["control-plane", "renamed-user"])
    })
    .await?;
    // One commit gives both other names; Argo CD prunes the old ones before it applies the new ones and what uses them.
    let missing = |entry: &Entry| {
        json!({"group": entry.group, "version": "v1", "kind": entry.kind, "namespace": entry.namespace, "name": entry.name,
            "status": "OutOfSync"})
    };
    let pruned = |entry: &Entry| {
        let mut listed = missing(entry);
        listed["requiresPruning"] = json!(true);
        listed
    };
    let resources: Vec<Value> = [project("renamed-old"), account("renamed-old")]
        .iter()
        .map(pruned)
        .chain([project("renamed-new"), account("renamed-new"), workload, user].iter().map(missing))
        .collect();
    application
        .patch_as_argocd(json!({
            "status": {"resources": resources, "sync": {"status": "OutOfSync"}, "operationState": {
                "phase": "Running", "startedAt": jiff::Timestamp::now().to_string(), "message": "",
                "operation": {"sync": {"prune": true}},
            }},
        }))
        .await?;
    eventually("the prune of the project to be admitted", async || {
        projects.delete("renamed-old", &dry_run()).await.map(drop).context("the project is still refused")
    })
    .await?;
    accounts.delete("renamed-old", &dry_run()).await.map(drop).context("the ServiceAccount is refused")
}

/// Access to AppProjects, for Argo CD.
fn projects(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(ARGO, "v1alpha1", "AppProject"));
    Api::namespaced_with(world.argocd.clone(), "argocd", &kind)
}

/// Creates an object as the sync of the Application `renamed` does.
async fn create(api: &Api<DynamicObject>, object: &Entry, version: &str) -> Result<()> {
    let metadata = json!({"name": object.name, "annotations": {MARKER: object.tracking_id("renamed")}});
    let mut value = json!({"apiVersion": version, "kind": object.kind, "metadata": metadata});
    if object.kind == "AppProject" {
        value["spec"] = json!({"destinations": [{"server": "*", "namespace": "*"}], "sourceNamespaces": ["*"]});
    }
    api.create(&PostParams::default(), &serde_json::from_value(value)?).await?;
    Ok(())
}
