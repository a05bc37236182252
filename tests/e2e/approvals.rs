//! Who may approve the deletion of a Namespace.

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    harness::{
        argo::gone,
        manifests,
        outcome::refused,
        wait::eventually,
        world::{World, dry_run},
    },
    tests,
};

tests!(
    approver_approves_and_somebody_else_deletes,
    approval_by_somebody_without_the_right_is_refused,
    approval_in_another_name_is_refused,
    withdrawn_approval_is_none,
);

/// Two groups that may patch Namespaces, of which one may also approve.
async fn people(world: &World) -> Result<()> {
    let admin = world.plane.admin()?;
    let patchers = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "test-patchers"},
        "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "patch"]}],
    });
    manifests::apply(&admin, &serde_json::from_value(patchers)?).await?;
    for (group, role) in [("approvers", "cascade-guard-namespace-approver"), ("patchers", "test-patchers")] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("test-{group}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        });
        manifests::apply(&admin, &serde_json::from_value(binding)?).await?;
    }
    Ok(())
}

/// `client` writes an approval that names `approver`.
async fn approve(client: Client, namespace: &str, approver: &str) -> kube::Result<Namespace> {
    let namespaces: Api<Namespace> = Api::all(client);
    let uid = namespaces.get(namespace).await?.metadata.uid;
    let until = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let approval = json!({"metadata": {"annotations": {
        "cascade-guard.io/deletion-approved-by": approver,
        "cascade-guard.io/deletion-approved-until": until.to_string(),
        "cascade-guard.io/deletion-approved-uid": uid,
    }}});
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(approval)).await
}

async fn approver_approves_and_somebody_else_deletes(world: &World) -> Result<()> {
    people(world).await?;
    world.namespace("approved").await?;
    let alice = world.plane.person("alice@example.com", "approvers")?;
    eventually("the right to be known", async || Ok(approve(alice.clone(), "approved", "alice@example.com").await?))
        .await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    namespaces.delete("approved", &DeleteParams::default()).await?;
    gone(&namespaces, "approved").await
}

async fn approval_by_somebody_without_the_right_is_refused(world: &World) -> Result<()> {
    people(world).await?;
    world.namespace("self-served").await?;
    let mallory = world.plane.person("mallory@example.com", "patchers")?;
    eventually("the right to patch to be known", async || {
        let outcome = approve(mallory.clone(), "self-served", "mallory@example.com").await;
        refused(outcome, "approvals", &["approval-integrity", "mallory@example.com"])
    })
    .await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    refused(namespaces.delete("self-served", &dry_run()).await, "namespaces", &["namespace-approval"])
}

async fn approval_in_another_name_is_refused(world: &World) -> Result<()> {
    world.namespace("borrowed-name").await?;
    let outcome = approve(world.ops.clone(), "borrowed-name", "alice@example.com").await;
    refused(outcome, "approvals", &["approval-integrity", "alice@example.com"])
}

async fn withdrawn_approval_is_none(world: &World) -> Result<()> {
    world.namespace("withdrawn").await?;
    world.approve("withdrawn").await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    namespaces.delete("withdrawn", &dry_run()).await?;
    let withdrawal = json!({"metadata": {"annotations": {
        "cascade-guard.io/deletion-approved-by": null,
        "cascade-guard.io/deletion-approved-until": null,
        "cascade-guard.io/deletion-approved-uid": null,
    }}});
    namespaces.patch("withdrawn", &PatchParams::default(), &Patch::Merge(withdrawal)).await?;
    refused(namespaces.delete("withdrawn", &dry_run()).await, "namespaces", &["namespace-approval"])
}
