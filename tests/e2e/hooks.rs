//! Hooks: those that would hang a sync are refused before they exist, the others come and go.

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    harness::{
        argo::{Application, CASCADE, entry, gone},
        manifests,
        outcome::refused,
        rights::may,
        wait::eventually,
        world::World,
    },
    tests,
};

tests!(
    hook_that_needs_a_later_object_is_refused,
    hook_of_a_first_sync_that_needs_a_later_secret_is_refused_without_reading_secrets,
    hook_that_needs_a_later_secret_is_refused_where_secrets_may_be_read,
    hook_with_its_order_mended_is_created,
    hook_with_a_malformed_wave_is_refused,
    hook_and_its_finalizer_come_and_go,
);

/// The migration of a database, as a hook with these annotations. `needs` says where its environment comes from.
pub fn migration(namespace: &str, needs: &str, annotations: &[(&str, &str)]) -> Result<Job> {
    let mut job = json!({
        "metadata": {
            "name": "migrate", "namespace": namespace, "finalizers": ["argocd.argoproj.io/hook-finalizer"],
            "annotations": {"argocd.argoproj.io/tracking-id": format!("{namespace}:batch/Job:{namespace}/migrate")},
        },
        "spec": {"activeDeadlineSeconds": 600, "backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "migrate", "image": "registry.example.com/migrate:1", "envFrom": [{needs: {"name": "database"}}],
            }],
        }}},
    });
    for (key, value) in annotations {
        job["metadata"]["annotations"][format!("argocd.argoproj.io/{key}")] = json!(value);
    }
    Ok(serde_json::from_value(job)?)
}

/// How Argo CD creates hooks.
pub fn by_argocd() -> PostParams {
    PostParams { field_manager: Some("argocd-controller".to_owned()), ..PostParams::default() }
}

fn jobs(world: &World, namespace: &str) -> Api<Job> {
    Api::namespaced(world.argocd.clone(), namespace)
}

/// An Application in the middle of its first sync, whose `database` comes in wave 2 of the Sync phase.
pub async fn first_sync<'a>(world: &'a World, name: &str, kind: &'static str) -> Result<Application<'a>> {
    world.namespace(name).await?;
    let later = entry("", kind, name, "database").out_of_sync().wave(2);
    let application = Application::create(world, name, name, &[CASCADE], &[later]).await?;
    let running = json!({"phase": "Running", "operation": {"sync": {}}});
    application.patch_as_argocd(json!({"operation": {"sync": {}}, "status": {"operationState": running}})).await?;
    Ok(application)
}

/// That the incident is refused: a PreSync hook whose wave says "after" what it needs, while its phase says "before".
async fn contradiction_is_refused(world: &World, namespace: &str, needs: &str) -> Result<()> {
    let hook = migration(namespace, needs, &[("hook", "PreSync"), ("sync-wave", "5")])?;
    let words = ["sync-wave/wave-contradicts-phase", &format!("Job {namespace}/migrate"), "database"];
    let jobs = jobs(world, namespace);
    eventually("the guard to know the list", async || {
        let dry_run = PostParams { dry_run: true, ..by_argocd() };
        refused(jobs.create(&dry_run, &hook).await, "hooks", &words)
    })
    .await?;
    refused(jobs.create(&by_argocd(), &hook).await, "hooks", &words)?;
    ensure!(jobs.get_opt("migrate").await?.is_none(), "the Job exists all the same");
    Ok(())
}

async fn hook_that_needs_a_later_object_is_refused(world: &World) -> Result<()> {
    first_sync(world, "hook-order", "ConfigMap").await?;
    contradiction_is_refused(world, "hook-order", "configMapRef").await
}

async fn hook_of_a_first_sync_that_needs_a_later_secret_is_refused_without_reading_secrets(
    world: &World,
) -> Result<()> {
    first_sync(world, "hook-first", "Secret").await?;
    contradiction_is_refused(world, "hook-first", "secretRef").await
}

async fn hook_that_needs_a_later_secret_is_refused_where_secrets_may_be_read(world: &World) -> Result<()> {
    let application = first_sync(world, "hook-secret", "Secret").await?;
    // After a first sync the list alone no longer tells whether the Secret is there.
    application.patch_as_argocd(json!({"status": {"history": [{"id": 0}]}})).await?;
    let guard = world.guard_account().await?;
    ensure!(!may(&guard, "get", "", "secrets").await?, "the base lets the guard read Secrets");
    for object in manifests::read("manifests/components/read-secrets/roles.yaml")? {
        manifests::apply(&world.plane.admin()?, &object).await?;
    }
    contradiction_is_refused(world, "hook-secret", "secretRef").await
}

async fn hook_with_its_order_mended_is_created(world: &World) -> Result<()> {
    first_sync(world, "mended", "ConfigMap").await?;
    contradiction_is_refused(world, "mended", "configMapRef").await?;
    let right = migration("mended", "configMapRef", &[("hook", "Sync"), ("sync-wave", "5")])?;
    jobs(world, "mended").create(&by_argocd(), &right).await?;
    Ok(())
}

async fn hook_with_a_malformed_wave_is_refused(world: &World) -> Result<()> {
    world.namespace("malformed").await?;
    let hook = migration("malformed", "configMapRef", &[("hook", "Sync"), ("sync-wave", "first")])?;
    let outcome = jobs(world, "malformed").create(&by_argocd(), &hook).await;
    refused(outcome, "hooks", &["sync-wave/malformed-wave", "first"])
}

async fn hook_and_its_finalizer_come_and_go(world: &World) -> Result<()> {
    world.namespace("passing").await?;
    let jobs = jobs(world, "passing");
    let hook = migration("passing", "configMapRef", &[("hook", "PostSync"), ("hook-delete-policy", "HookSucceeded")])?;
    jobs.create(&by_argocd(), &hook).await?;
    jobs.delete("migrate", &DeleteParams::background()).await?;
    let without = json!({"metadata": {"finalizers": null}});
    jobs.patch("migrate", &PatchParams::default(), &Patch::Merge(without)).await?;
    gone(&jobs, "migrate").await
}
