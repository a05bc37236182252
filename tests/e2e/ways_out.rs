//! What must pass: every way out that a refusal offers, down to the end.

use anyhow::{Result, ensure};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::{Api, api::DeleteParams};
use serde_json::json;

use crate::{
    harness::{
        argo::{Application, CASCADE, Entry, applications, entry, gone},
        outcome::refused,
        wait::eventually,
        world::{World, apply, dry_run},
    },
    tests,
};

const RBAC: &str = "rbac.authorization.k8s.io";

tests!(
    application_without_cascade_takes_nothing_and_may_go,
    application_whose_objects_were_taken_over_may_go,
    approved_namespace_is_emptied_and_gone,
    role_that_one_application_wants_may_go,
    application_that_nobody_shares_with_may_cascade,
);

async fn application_without_cascade_takes_nothing_and_may_go(world: &World) -> Result<()> {
    world.namespace("orphaned").await?;
    let shared = [entry(RBAC, "Role", "orphaned", "shared")];
    let old = Application::create(world, "orphaned-old", "orphaned", &[], &shared).await?;
    old.sync(&shared).await?;
    Application::create(world, "orphaned-new", "orphaned", &[CASCADE], &shared).await?;

    let applications = applications(world);
    applications.delete("orphaned-old", &DeleteParams::default()).await?;
    gone(&applications, "orphaned-old").await?;
    ensure!(shared[0].api(world).get_opt("shared").await?.is_some(), "its Role went with it");
    Ok(())
}

async fn application_whose_objects_were_taken_over_may_go(world: &World) -> Result<()> {
    world.namespace("handover").await?;
    let shared = [entry("", "ServiceAccount", "handover", "job"), entry(RBAC, "Role", "handover", "job")];
    let own = entry("", "ConfigMap", "handover", "old-only");
    let everything = [shared.to_vec(), vec![own.clone()]].concat();
    let old = Application::create(world, "handover-old", "handover", &[CASCADE], &everything).await?;
    old.sync(&everything).await?;
    let waiting: Vec<Entry> = shared.iter().cloned().map(Entry::out_of_sync).collect();
    let new = Application::create(world, "handover-new", "handover", &[CASCADE], &waiting).await?;
    let applications = applications(world);
    eventually("the guard to know the claims", async || {
        refused(applications.delete("handover-old", &dry_run()).await, "applications", &["handover-new"])
    })
    .await?;

    // What the refusal advises: sync the other Application, which takes the objects over.
    new.sync(&shared).await?;
    new.compare(&shared).await?;
    old.compare(&[waiting, vec![own.clone()]].concat()).await?;
    eventually("the deletion to be admitted", async || {
        Ok(applications.delete("handover-old", &DeleteParams::default()).await?)
    })
    .await?;
    old.cascade(&everything).await?;
    ensure!(own.api(world).get_opt("old-only").await?.is_none(), "what was its own stayed");
    for entry in shared {
        ensure!(entry.api(world).get_opt(&entry.name).await?.is_some(), "{} was taken along", entry.kind);
    }
    Ok(())
}

async fn approved_namespace_is_emptied_and_gone(world: &World) -> Result<()> {
    world.namespace("leaving").await?;
    let content = [
        entry("", "ConfigMap", "leaving", "settings"),
        entry("", "ServiceAccount", "leaving", "job"),
        entry(RBAC, "Role", "leaving", "job"),
        entry(RBAC, "RoleBinding", "leaving", "job"),
    ];
    let application = Application::create(world, "leaving", "leaving", &[], &content).await?;
    application.sync(&content).await?;
    let applications = applications(world);
    applications.delete("leaving", &DeleteParams::default()).await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    refused(namespaces.delete("leaving", &DeleteParams::default()).await, "namespaces", &["namespace-approval"])?;

    world.approve("leaving").await?;
    eventually("the deletion to be admitted", async || {
        Ok(namespaces.delete("leaving", &DeleteParams::default()).await?)
    })
    .await?;
    gone(&namespaces, "leaving").await?;
    ensure!(Api::<Role>::namespaced(world.ops.clone(), "leaving").get_opt("job").await?.is_none());
    ensure!(Api::<RoleBinding>::namespaced(world.ops.clone(), "leaving").get_opt("job").await?.is_none());
    ensure!(Api::<ConfigMap>::namespaced(world.ops.clone(), "leaving").get_opt("settings").await?.is_none());

    // A Namespace of the same name is another one: it has not inherited the approval.
    let annotations = json!({
        "cascade-guard.io/deletion-approved-by": "ops@example.com",
        "cascade-guard.io/deletion-approved-until": (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1)).to_string(),
        "cascade-guard.io/deletion-approved-uid": "00000000-0000-0000-0000-000000000000",
    });
    let again =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving", "annotations": annotations}});
    apply::<Namespace>(&namespaces, "leaving", &again).await?;
    refused(namespaces.delete("leaving", &DeleteParams::default()).await, "namespaces", &["namespace-approval"])
}

async fn role_that_one_application_wants_may_go(world: &World) -> Result<()> {
    world.namespace("single").await?;
    let list = [entry(RBAC, "Role", "single", "reader"), entry("", "ServiceAccount", "single", "reader")];
    let application = Application::create(world, "single", "single", &[CASCADE], &list).await?;
    application.sync(&list).await?;
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "single");
    roles.delete("reader", &DeleteParams::default()).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(world.ops.clone(), "single");
    accounts.delete("reader", &DeleteParams::default()).await?;
    Ok(())
}

async fn application_that_nobody_shares_with_may_cascade(world: &World) -> Result<()> {
    world.namespace("alone").await?;
    let list = [
        entry("", "ConfigMap", "alone", "settings"),
        entry("", "ServiceAccount", "alone", "job"),
        entry(RBAC, "Role", "alone", "job"),
        entry(RBAC, "RoleBinding", "alone", "job"),
    ];
    let application = Application::create(world, "alone", "alone", &[CASCADE], &list).await?;
    application.sync(&list).await?;
    eventually("the deletion to be admitted", async || {
        Ok(applications(world).delete("alone", &DeleteParams::default()).await?)
    })
    .await?;
    application.cascade(&list).await
}
