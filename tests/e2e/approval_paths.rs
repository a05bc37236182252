//! The ways by which a Namespace goes without anybody deleting it: a cascade, the garbage collector, a finalizer that is
//! taken off by hand.

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{core::v1::Namespace, rbac::v1::Role, scheduling::v1::PriorityClass};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        argo::{Application, CASCADE, Entry, applications, entry, gone},
        outcome::refused,
        people::{APPROVER, OUTSIDER},
        wait::eventually,
        warnings::warnings,
        world::{World, approval},
    },
    tests,
};

tests!(
    cascade_with_an_approved_namespace_runs_to_its_end,
    cascade_outlives_the_approval_that_it_began_with,
    garbage_collector_takes_only_an_approved_namespace,
    finalizing_by_an_outsider_is_told_what_it_orphans,
);

fn namespaces(world: &World) -> Api<Namespace> {
    Api::all(world.ops.clone())
}

/// An Application that has synced a Namespace and what is in it.
async fn synced<'a>(world: &'a World, name: &str) -> Result<(Application<'a>, Vec<Entry>)> {
    let list = vec![
        entry("", "Namespace", "", name),
        entry("", "ConfigMap", name, "settings"),
        entry("rbac.authorization.k8s.io", "Role", name, "job"),
    ];
    let application = Application::create(world, name, name, &[CASCADE], &list).await?;
    application.sync(&list).await?;
    // Argo CD deletes what was created last first.
    Ok((application, list.into_iter().rev().collect()))
}

async fn approve(world: &World, name: &str, lasts: SignedDuration) -> Result<()> {
    let approver: Api<Namespace> = Api::all(APPROVER.client(world)?);
    let patch = approval(&approver.get(name).await?, APPROVER.name, lasts);
    approver.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn cascade_with_an_approved_namespace_runs_to_its_end(world: &World) -> Result<()> {
    let (application, list) = synced(world, "cleared").await?;
    let applications = applications(world);
    eventually("the guard to know the list", async || {
        let outcome = applications.delete("cleared", &DeleteParams::default()).await;
        refused(outcome, "applications", &["namespace-approval", "Namespace cleared"])
    })
    .await?;
    application.is_untouched().await?;

    approve(world, "cleared", SignedDuration::from_hours(1)).await?;
    applications.delete("cleared", &DeleteParams::default()).await?;
    application.cascade(&list).await?;
    ensure!(namespaces(world).get_opt("cleared").await?.is_none(), "the Namespace is still there");
    Ok(())
}

async fn cascade_outlives_the_approval_that_it_began_with(world: &World) -> Result<()> {
    let (application, list) = synced(world, "outlived").await?;
    let applications = applications(world);
    eventually("the cascade to begin before the approval ends", async || {
        approve(world, "outlived", SignedDuration::from_secs(5)).await?;
        Ok(applications.delete("outlived", &DeleteParams::default()).await?)
    })
    .await?;
    let annotations = namespaces(world).get("outlived").await?.metadata.annotations.context("not approved")?;
    let end: Timestamp = annotations["cascade-guard.io/deletion-approved-until"].parse()?;
    eventually("the approval to end", async || {
        ensure!(Timestamp::now() > end, "it has not");
        Ok(())
    })
    .await?;
    application.cascade(&list).await
}

/// Whether the garbage collector was refused the deletion of this Namespace, by the audit log of the API server.
fn refused_to_the_garbage_collector(world: &World, name: &str) -> Result<bool> {
    let log = world.plane.audit_log()?;
    let lines = log.lines().filter(|line| line.contains("generic-garbage-collector"));
    for event in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let object = &event["objectRef"];
        if event["verb"] == "delete" && object["resource"] == "namespaces" && object["name"] == name {
            return Ok(event["responseStatus"]["code"] == 403);
        }
    }
    Ok(false)
}

async fn garbage_collector_takes_only_an_approved_namespace(world: &World) -> Result<()> {
    let owners: Api<PriorityClass> = Api::all(world.ops.clone());
    let owner = json!({"metadata": {"name": "tenant"}, "value": 1});
    let owner = owners.create(&PostParams::default(), &serde_json::from_value(owner)?).await?;
    let tenancy = json!({"metadata": {"name": "owned", "ownerReferences": [{
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "name": "tenant", "uid": owner.metadata.uid}]}});
    let namespaces = namespaces(world);
    namespaces.create(&PostParams::default(), &serde_json::from_value(tenancy)?).await?;

    owners.delete("tenant", &DeleteParams::background()).await?;
    gone(&owners, "tenant").await?;
    eventually("the garbage collector to be refused", async || {
        ensure!(refused_to_the_garbage_collector(world, "owned")?, "it was not yet");
        Ok(())
    })
    .await?;
    ensure!(namespaces.get("owned").await?.metadata.deletion_timestamp.is_none(), "the Namespace is going");

    // It comes back by itself, and finds the approval.
    approve(world, "owned", SignedDuration::from_hours(1)).await?;
    gone(&namespaces, "owned").await
}

/// Leaves a Namespace in Terminating, held by a Role; gives it as it is then.
pub async fn terminating(world: &World, name: &str) -> Result<Value> {
    world.namespace(name).await?;
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), name);
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/held"]}});
    roles.create(&PostParams::default(), &serde_json::from_value(held)?).await?;
    world.approve(name).await?;
    namespaces(world).delete(name, &DeleteParams::default()).await?;
    let holds = "NamespaceFinalizersRemaining";
    eventually("the controller to say what holds the Namespace", async || {
        let object = serde_json::to_value(namespaces(world).get(name).await?)?;
        let conditions = object["status"]["conditions"].as_array().context("no conditions yet")?;
        let told = conditions.iter().any(|condition| condition["type"] == holds && condition["status"] == "True");
        ensure!(told, "not yet: {conditions:?}");
        Ok(object)
    })
    .await
}

/// Lets a Namespace go that [`terminating`] left.
pub async fn release(world: &World, name: &str) -> Result<()> {
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), name);
    let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    roles.patch("held", &PatchParams::default(), &released).await?;
    gone(&namespaces(world), name).await
}

async fn finalizing_by_an_outsider_is_told_what_it_orphans(world: &World) -> Result<()> {
    let mut object = terminating(world, "by-hand").await?;
    object["spec"]["finalizers"] = json!([]);
    object["metadata"]["resourceVersion"] = Value::Null;
    let outsider = OUTSIDER.client(world)?;
    let path = "/api/v1/namespaces/by-hand/finalize?dryRun=All";
    let said = warnings(&outsider, "PUT", path, &object).await?;
    let told = said.iter().any(|line| line.contains("approval-integrity") && line.contains("orphans"));
    ensure!(told, "nobody was told: {said:?}");
    release(world, "by-hand").await
}
