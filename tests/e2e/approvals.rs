//! Who may approve the deletion of a Namespace, for how long, and for which Namespace.

use anyhow::{Context as _, Result, ensure};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        argo::gone,
        outcome::{refused, rejected},
        people::{APPROVER, DELETER, OUTSIDER, Said},
        wait::eventually,
        warnings::warnings,
        world::{World, approval, dry_run},
    },
    tests,
};

tests!(
    whole_workflow_by_the_commands,
    outsider_is_told_by_the_command_who_could_grant_the_right,
    approval_by_somebody_without_the_right_is_refused,
    approval_in_another_name_is_refused,
    approval_by_argo_cd_in_the_approvers_name_is_refused,
    approval_through_the_status_of_a_namespace_is_refused_to_an_outsider,
    withdrawn_approval_is_none,
    approval_that_ended_is_none,
    approval_does_not_pass_to_a_namespace_made_anew,
);

/// Namespaces, as `client` reaches them.
pub fn namespaces(client: Client) -> Api<Namespace> {
    Api::all(client)
}

/// `client` writes an approval that names `approver`.
pub async fn approve(client: Client, namespace: &str, approver: &str) -> kube::Result<Namespace> {
    let namespaces = namespaces(client);
    let patch = approval(&namespaces.get(namespace).await?, approver, SignedDuration::from_hours(1));
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// That a Namespace carries no approval and may not be deleted.
async fn is_not_approved(world: &World, name: &str) -> Result<()> {
    let annotations = namespaces(world.ops.clone()).get(name).await?.metadata.annotations.unwrap_or_default();
    ensure!(!annotations.keys().any(|key| key.starts_with("cascade-guard.io/")), "it carries {annotations:?}");
    let outcome = namespaces(DELETER.client(world)?).delete(name, &DeleteParams::default()).await;
    refused(outcome, "namespaces", &["namespace-approval", "nobody approved its deletion"])
}

async fn whole_workflow_by_the_commands(world: &World) -> Result<()> {
    world.namespace("workflow").await?;
    is_not_approved(world, "workflow").await?;
    let policy = world.policy().display().to_string();
    let status = || -> Result<Said> { APPROVER.runs(world, &["approvals", "status", "workflow", "--policy", &policy]) };
    status()?.ended(1, &["workflow", "not approved", "cascade-guard approve workflow --for 2h"])?;

    let arguments = ["approve", "workflow", "--for", "1h", "--reason", "CHG-7", "--yes", "--policy", &policy];
    APPROVER.runs(world, &arguments)?.ended(0, &["may be deleted until", APPROVER.name])?;
    status()?.ended(0, &["valid", APPROVER.name, "CHG-7"])?;
    let deleter = namespaces(DELETER.client(world)?);
    deleter.delete("workflow", &dry_run()).await.context("it was approved")?;

    APPROVER.runs(world, &["revoke", "workflow"])?.ended(0, &["withdrawn", APPROVER.name])?;
    status()?.ended(1, &["not approved"])?;
    is_not_approved(world, "workflow").await?;

    APPROVER.runs(world, &arguments)?.ended(0, &["may be deleted until"])?;
    // The approver of the shipped role approves; deleting is not among its rights.
    let approver = namespaces(APPROVER.client(world)?);
    rejected(approver.delete("workflow", &DeleteParams::default()).await, "cannot delete resource")?;
    deleter.delete("workflow", &DeleteParams::default()).await?;
    gone(&deleter, "workflow").await
}

async fn outsider_is_told_by_the_command_who_could_grant_the_right(world: &World) -> Result<()> {
    world.namespace("asked-for").await?;
    let policy = world.policy().display().to_string();
    let said = OUTSIDER.runs(world, &["approve", "asked-for", "--yes", "--policy", &policy])?;
    said.ended(1, &[OUTSIDER.name, "namespacedeletions.cascade-guard.io", "cascade-guard-namespace-approver"])?;
    is_not_approved(world, "asked-for").await
}

async fn approval_by_somebody_without_the_right_is_refused(world: &World) -> Result<()> {
    world.namespace("self-served").await?;
    let outcome = approve(OUTSIDER.client(world)?, "self-served", OUTSIDER.name).await;
    refused(outcome, "approvals", &["approval-integrity", OUTSIDER.name, "lacks the verb approve"])?;
    is_not_approved(world, "self-served").await
}

async fn approval_in_another_name_is_refused(world: &World) -> Result<()> {
    world.namespace("borrowed-name").await?;
    let words = ["approval-integrity", "names bob@example.com as approver", "approve in your own name"];
    refused(approve(APPROVER.client(world)?, "borrowed-name", DELETER.name).await, "approvals", &words)?;
    is_not_approved(world, "borrowed-name").await
}

async fn approval_by_argo_cd_in_the_approvers_name_is_refused(world: &World) -> Result<()> {
    // An approval that lies in Git is written by Argo CD at every sync.
    world.namespace("from-git").await?;
    let words = ["approval-integrity", APPROVER.name, "system:serviceaccount:argocd:argocd-application-controller"];
    refused(approve(world.argocd.clone(), "from-git", APPROVER.name).await, "approvals", &words)?;
    is_not_approved(world, "from-git").await
}

async fn approval_through_the_status_of_a_namespace_is_refused_to_an_outsider(world: &World) -> Result<()> {
    world.namespace("side-door").await?;
    let outsider = namespaces(OUTSIDER.client(world)?);
    let patch = approval(&outsider.get("side-door").await?, OUTSIDER.name, SignedDuration::from_hours(1));
    let outcome = outsider.patch_status("side-door", &PatchParams::default(), &Patch::Merge(&patch)).await;
    refused(outcome, "approvals", &["approval-integrity", OUTSIDER.name])?;

    let mut whole = outsider.get("side-door").await?;
    whole.metadata.annotations = Some(serde_json::from_value(patch["metadata"]["annotations"].clone())?);
    let request = http::Request::put("/api/v1/namespaces/side-door/finalize").body(serde_json::to_vec(&whole)?)?;
    let outcome = OUTSIDER.client(world)?.request::<Value>(request).await;
    refused(outcome, "approvals", &["approval-integrity", OUTSIDER.name])?;
    is_not_approved(world, "side-door").await?;

    // Writing a status that is one is nobody's business.
    let condition = json!({"status": {"conditions": [{
        "type": "example.com/Seen", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    outsider.patch_status("side-door", &PatchParams::default(), &Patch::Merge(condition)).await?;
    Ok(())
}

async fn withdrawn_approval_is_none(world: &World) -> Result<()> {
    world.namespace("withdrawn").await?;
    approve(APPROVER.client(world)?, "withdrawn", APPROVER.name).await?;
    let deleter = namespaces(DELETER.client(world)?);
    deleter.delete("withdrawn", &dry_run()).await?;
    // Whoever may write to a Namespace may take an approval away, whoever wrote it.
    let withdrawal = json!({"metadata": {"annotations": {
        "cascade-guard.io/deletion-approved-by": null,
        "cascade-guard.io/deletion-approved-until": null,
        "cascade-guard.io/deletion-approved-uid": null,
    }}});
    let outsider = namespaces(OUTSIDER.client(world)?);
    outsider.patch("withdrawn", &PatchParams::default(), &Patch::Merge(withdrawal)).await?;
    is_not_approved(world, "withdrawn").await
}

async fn approval_that_ended_is_none(world: &World) -> Result<()> {
    world.namespace("two-seconds").await?;
    let approver = namespaces(APPROVER.client(world)?);
    let object = approver.get("two-seconds").await?;
    // An approval that is not valid when it is written is refused, so that this one was valid for a while.
    eventually("an approval to be written before it ends", async || {
        let patch = Patch::Merge(approval(&object, APPROVER.name, SignedDuration::from_secs(2)));
        Ok(approver.patch("two-seconds", &PatchParams::default(), &patch).await?)
    })
    .await?;
    let deleter = namespaces(DELETER.client(world)?);
    let words = ["namespace-approval", "its approval by alice@example.com expired at"];
    eventually("the approval to end", async || {
        refused(deleter.delete("two-seconds", &dry_run()).await, "namespaces", &words)
    })
    .await?;
    refused(deleter.delete("two-seconds", &DeleteParams::default()).await, "namespaces", &words)?;
    ensure!(deleter.get("two-seconds").await?.metadata.deletion_timestamp.is_none(), "the Namespace is going");
    Ok(())
}

async fn approval_does_not_pass_to_a_namespace_made_anew(world: &World) -> Result<()> {
    world.namespace("anew").await?;
    let approved = approve(APPROVER.client(world)?, "anew", APPROVER.name).await?;
    let deleter = namespaces(DELETER.client(world)?);
    deleter.delete("anew", &DeleteParams::default()).await?;
    gone(&deleter, "anew").await?;

    let annotations = approved.metadata.annotations.context("it was not approved")?;
    let copy = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "anew", "annotations": annotations}});
    let said = warnings(&world.ops, "POST", "/api/v1/namespaces", &copy).await?;
    ensure!(said.iter().any(|line| line.contains("never counts")), "nobody was told that it never counts: {said:?}");
    let words = ["namespace-approval", "approved for an earlier Namespace of this name"];
    refused(deleter.delete("anew", &DeleteParams::default()).await, "namespaces", &words)?;

    // An approval of its own replaces the copied one.
    approve(APPROVER.client(world)?, "anew", APPROVER.name).await?;
    deleter.delete("anew", &DeleteParams::default()).await?;
    gone(&deleter, "anew").await?;
    namespaces(world.ops.clone())
        .create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": "anew"}}))?)
        .await?;
    is_not_approved(world, "anew").await
}
