//! What must be refused. After every refusal everything is still there.

use anyhow::{Result, ensure};
use k8s_openapi::api::{core::v1::Namespace, rbac::v1::Role};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams},
};
use serde_json::json;

use crate::{
    harness::{
        argo::{Application, CASCADE, Entry, applications, entry},
        outcome::{refused, rejected},
        wait::eventually,
        world::{World, dry_run},
    },
    tests,
};

const RBAC: &str = "rbac.authorization.k8s.io";

tests!(
    cascade_over_shared_rbac_is_refused,
    cascade_over_another_applications_namespace_is_refused,
    namespace_that_an_application_wants_is_refused,
    unapproved_namespace_is_refused,
    dry_run_gets_the_same_verdict,
    collection_of_shared_roles_is_refused,
    application_set_whose_applications_share_rbac_is_refused,
    cascade_child_that_another_application_wants_is_refused_to_argo_cd,
    refusal_stands_in_the_audit_log,
);

/// The ServiceAccount, Role and RoleBinding of a Flink job.
fn flink(namespace: &str) -> Vec<Entry> {
    vec![
        entry("", "ServiceAccount", namespace, "flink"),
        entry(RBAC, "Role", namespace, "flink"),
        entry(RBAC, "RoleBinding", namespace, "flink"),
    ]
}

fn out_of_sync(entries: &[Entry]) -> Vec<Entry> {
    entries.iter().cloned().map(Entry::out_of_sync).collect()
}

/// That all of these objects are there and none is being deleted.
async fn nothing_is_lost(world: &World, entries: &[Entry]) -> Result<()> {
    for entry in entries {
        let object = entry.api(world).get(&entry.name).await?;
        ensure!(object.metadata.deletion_timestamp.is_none(), "{} {} is going", entry.kind, entry.name);
    }
    Ok(())
}

async fn cascade_over_shared_rbac_is_refused(world: &World) -> Result<()> {
    world.namespace("flink").await?;
    let shared = flink("flink");
    let old = Application::create(world, "flink-old", "flink", &[CASCADE], &shared).await?;
    old.sync(&shared).await?;
    Application::create(world, "flink-new", "flink", &[CASCADE], &out_of_sync(&shared)).await?;

    let words = ["shared-claim", "flink-new", "Role flink/flink", "ServiceAccount flink/flink"];
    let applications = applications(world);
    eventually("the guard to know the claims", async || {
        refused(applications.delete("flink-old", &dry_run()).await, "applications", &words)
    })
    .await?;
    refused(applications.delete("flink-old", &DeleteParams::default()).await, "applications", &words)?;
    // How kubectl was told to delete changes nothing: Argo CD goes by the finalizer.
    let orphan =
        DeleteParams { propagation_policy: Some(kube::api::PropagationPolicy::Orphan), ..DeleteParams::default() };
    refused(applications.delete("flink-old", &orphan).await, "applications", &words)?;

    old.is_untouched().await?;
    nothing_is_lost(world, &shared).await
}

async fn cascade_over_another_applications_namespace_is_refused(world: &World) -> Result<()> {
    let namespace = vec![entry("", "Namespace", "", "edge")];
    let config = entry("", "ConfigMap", "edge", "edge");
    let owner_list = [namespace.clone(), vec![config.clone()]].concat();
    let owner = Application::create(world, "edge", "edge", &[CASCADE], &owner_list).await?;
    owner.sync(&owner_list).await?;
    let duplicate = Application::create(world, "edge-duplicate", "edge", &[CASCADE], &namespace).await?;
    duplicate.sync(&namespace).await?;

    let applications = applications(world);
    eventually("the guard to know the claims", async || {
        refused(
            applications.delete("edge-duplicate", &dry_run()).await,
            "applications",
            &["shared-claim", "argocd/edge", "Namespace edge"],
        )
    })
    .await?;
    let outcome = applications.delete("edge-duplicate", &DeleteParams::default()).await;
    refused(outcome, "applications", &["shared-claim", "namespace-approval"])?;

    duplicate.is_untouched().await?;
    nothing_is_lost(world, &owner_list).await
}

async fn namespace_that_an_application_wants_is_refused(world: &World) -> Result<()> {
    world.namespace("wanted").await?;
    let list = [entry("", "ConfigMap", "wanted", "settings")];
    let application = Application::create(world, "wanted", "wanted", &[CASCADE], &list).await?;
    application.sync(&list).await?;
    world.approve("wanted").await?;

    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    eventually("the guard to know the claim", async || {
        refused(namespaces.delete("wanted", &dry_run()).await, "namespaces", &["shared-claim", "argocd/wanted"])
    })
    .await?;
    refused(namespaces.delete("wanted", &DeleteParams::default()).await, "namespaces", &["shared-claim"])?;
    nothing_is_lost(world, &list).await
}

async fn unapproved_namespace_is_refused(world: &World) -> Result<()> {
    world.namespace("unapproved").await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    let outcome = namespaces.delete("unapproved", &DeleteParams::default()).await;
    refused(outcome, "namespaces", &["namespace-approval", "Namespace unapproved"])?;
    // Not even Argo CD, not even the administrator.
    for client in [world.argocd.clone(), world.plane.admin()?] {
        let outcome = Api::<Namespace>::all(client).delete("unapproved", &DeleteParams::background()).await;
        refused(outcome, "namespaces", &["namespace-approval"])?;
    }
    ensure!(namespaces.get("unapproved").await?.metadata.deletion_timestamp.is_none());
    Ok(())
}

async fn dry_run_gets_the_same_verdict(world: &World) -> Result<()> {
    world.namespace("rehearsal").await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    refused(namespaces.delete("rehearsal", &dry_run()).await, "namespaces", &["namespace-approval"])?;
    world.approve("rehearsal").await?;
    namespaces.delete("rehearsal", &dry_run()).await?;
    ensure!(namespaces.get("rehearsal").await?.metadata.deletion_timestamp.is_none(), "a dry run deleted it");
    Ok(())
}

async fn collection_of_shared_roles_is_refused(world: &World) -> Result<()> {
    world.namespace("roles").await?;
    let shared = [entry(RBAC, "Role", "roles", "first"), entry(RBAC, "Role", "roles", "second")];
    let one = Application::create(world, "roles-one", "roles", &[CASCADE], &shared).await?;
    one.sync(&shared).await?;
    Application::create(world, "roles-two", "roles", &[CASCADE], &out_of_sync(&shared)).await?;

    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "roles");
    // The Application whose marker they carry is not another; the other is.
    let words = ["shared-claim", "roles-two"];
    eventually("the guard to know the claims", async || {
        refused(roles.delete("first", &dry_run()).await, "rbac-deletes", &words)
    })
    .await?;
    let outcome = roles.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    refused(outcome, "rbac-deletes", &words)?;
    nothing_is_lost(world, &shared).await
}

async fn application_set_whose_applications_share_rbac_is_refused(world: &World) -> Result<()> {
    world.namespace("fleet").await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "ApplicationSet"));
    let sets: Api<DynamicObject> = Api::namespaced_with(world.ops.clone(), "argocd", &kind);
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "fleet", "namespace": "argocd"},
        "spec": {"generators": [{"list": {"elements": [{"name": "fleet-one"}]}}], "template": {}},
    });
    let set = sets.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
    let shared = flink("fleet");
    let generated = Application::create(world, "fleet-one", "fleet", &[CASCADE], &shared).await?;
    generated.sync(&shared).await?;
    generated
        .patch_as_argocd(json!({"metadata": {"ownerReferences": [{
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "fleet", "uid": set.metadata.uid,
            "controller": true, "blockOwnerDeletion": true,
        }]}}))
        .await?;
    Application::create(world, "fleet-other", "fleet", &[CASCADE], &out_of_sync(&shared)).await?;

    eventually("the guard to know the claims", async || {
        refused(sets.delete("fleet", &dry_run()).await, "applications", &["shared-claim", "fleet-other"])
    })
    .await?;
    refused(sets.delete("fleet", &DeleteParams::background()).await, "applications", &["shared-claim"])?;
    generated.is_untouched().await?;
    nothing_is_lost(world, &shared).await
}

async fn cascade_child_that_another_application_wants_is_refused_to_argo_cd(world: &World) -> Result<()> {
    world.namespace("midway").await?;
    let own = entry("", "ServiceAccount", "midway", "own");
    let shared = entry(RBAC, "Role", "midway", "shared");
    let list = [own.clone(), shared.clone()];
    let going = Application::create(world, "midway-going", "midway", &[CASCADE], &list).await?;
    going.sync(&list).await?;
    let applications = applications(world);
    eventually("the deletion to be admitted", async || {
        Ok(applications.delete("midway-going", &DeleteParams::default()).await?)
    })
    .await?;
    // Only now does somebody else want one of the two.
    Application::create(world, "midway-staying", "midway", &[CASCADE], &[shared.clone().out_of_sync()]).await?;
    let roles = shared.api(world);
    eventually("the guard to know the claim", async || {
        refused(roles.delete("shared", &dry_run()).await, "rbac-deletes", &["shared-claim", "midway-staying"])
    })
    .await?;
    refused(roles.delete("shared", &DeleteParams::foreground()).await, "rbac-deletes", &["shared-claim"])?;
    nothing_is_lost(world, &[shared]).await?;
    going.cascade(&[own]).await
}

async fn refusal_stands_in_the_audit_log(world: &World) -> Result<()> {
    world.namespace("evidence").await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    rejected(namespaces.delete("evidence", &DeleteParams::default()).await, "namespace-approval")?;
    eventually("the audit event", async || {
        let log = world.plane.audit_log()?;
        let event = log
            .lines()
            .find(|line| line.contains("/api/v1/namespaces/evidence") && line.contains("\"verb\":\"delete\""));
        let event: serde_json::Value = serde_json::from_str(event.unwrap_or("{}"))?;
        let said = |key: &str| event["annotations"][format!("namespaces.cascade-guard.io/{key}")].as_str();
        ensure!(said("decision") == Some("deny"), "{event}");
        ensure!(said("rule").is_some_and(|rules| rules.contains("namespace-approval")), "{event}");
        ensure!(said("mode") == Some("enforce"), "{event}");
        Ok(())
    })
    .await
}
