//! Where a hook takes from what it needs, and whose hook it is: what is refused, what is only told, what is left alone.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    harness::{
        argo::{Application, CASCADE, entry},
        outcome::refused,
        wait::eventually,
        warnings::warnings,
        world::World,
    },
    hooks::{by_argocd, first_sync, migration},
    tests,
};

tests!(
    need_that_is_there_from_an_earlier_install_is_told_and_the_hook_created,
    hook_before_its_own_service_account_is_refused,
    hook_of_helm_under_argo_cd_is_judged_as_argo_cd_runs_it,
    hook_that_helm_itself_installs_is_not_judged,
);

/// Waits until creating `hook` as a dry run is warned of with these words.
pub async fn is_warned_of(client: &Client, hook: &Job, words: &[&str]) -> Result<()> {
    eventually("the guard to know the list", async || {
        let said = create(client, hook, "&dryRun=All").await?;
        ensure!(said.iter().any(|line| words.iter().all(|word| line.contains(word))), "no {words:?} in {said:?}");
        Ok(())
    })
    .await
}

/// Creates `hook` as Argo CD does; gives the warnings.
pub async fn create(client: &Client, hook: &Job, options: &str) -> Result<Vec<String>> {
    let namespace = hook.metadata.namespace.as_deref().context("a Job without a namespace")?;
    let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs?fieldManager=argocd-controller{options}");
    warnings(client, "POST", &path, &serde_json::to_value(hook)?).await
}

/// That creating `hook` is refused with these words, once the guard knows its Application.
async fn is_refused(world: &World, hook: &Job, words: &[&str]) -> Result<()> {
    let namespace = hook.metadata.namespace.as_deref().context("a Job without a namespace")?;
    let jobs: Api<Job> = Api::namespaced(world.argocd.clone(), namespace);
    eventually("the guard to know the list", async || {
        let dry_run = PostParams { dry_run: true, ..by_argocd() };
        refused(jobs.create(&dry_run, hook).await, "hooks", words)
    })
    .await?;
    refused(jobs.create(&by_argocd(), hook).await, "hooks", words)?;
    ensure!(jobs.get_opt("migrate").await?.is_none(), "the Job exists all the same");
    Ok(())
}

async fn need_that_is_there_from_an_earlier_install_is_told_and_the_hook_created(world: &World) -> Result<()> {
    world.namespace("earlier").await?;
    // Out of sync, so that only a read tells that it is there.
    let list = [entry("", "ConfigMap", "earlier", "database").out_of_sync().wave(2)];
    let application = Application::create(world, "earlier", "earlier", &[CASCADE], &list).await?;
    application.sync(&list).await?;
    let hook = migration("earlier", "configMapRef", &[("hook", "PreSync"), ("sync-wave", "5")])?;
    let words = ["[sync-wave]", "ConfigMap earlier/database", "only there from an earlier install"];
    is_warned_of(&world.argocd, &hook, &words).await?;

    let said = create(&world.argocd, &hook, "").await?;
    ensure!(said.iter().any(|line| line.contains("only there from an earlier install")), "it was not told: {said:?}");
    let jobs: Api<Job> = Api::namespaced(world.argocd.clone(), "earlier");
    jobs.get("migrate").await.context("it was not created")?;
    Ok(())
}

async fn hook_before_its_own_service_account_is_refused(world: &World) -> Result<()> {
    world.namespace("account").await?;
    let list = [entry("", "ServiceAccount", "account", "migrator").out_of_sync()];
    Application::create(world, "account", "account", &[CASCADE], &list).await?;
    let maps: Api<ConfigMap> = Api::namespaced(world.ops.clone(), "account");
    maps.create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": "database"}}))?).await?;
    let mut hook = migration("account", "configMapRef", &[("hook", "PreSync")])?;
    let pod = hook.spec.as_mut().and_then(|job| job.template.spec.as_mut()).context("a Job without a Pod")?;
    pod.service_account_name = Some("migrator".to_owned());
    is_refused(world, &hook, &["sync-wave/depends-on-later", "Job account/migrate", "ServiceAccount account/migrator"])
        .await?;

    // Once the account is there, as after a failed first sync, nothing keeps the hook from running.
    let account = entry("", "ServiceAccount", "account", "migrator");
    let parameters = PatchParams::apply("argocd-controller");
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "migrator"}});
    account.api(world).patch("migrator", &parameters, &Patch::Apply(object)).await?;
    let said = create(&world.argocd, &hook, "").await?;
    ensure!(said.iter().any(|line| line.contains("only there from an earlier install")), "it was not told: {said:?}");
    Ok(())
}

/// The migration as a hook of a Helm chart, which Argo CD runs as PreSync in the wave of its weight.
fn chart_hook(namespace: &str) -> Result<Job> {
    let mut hook = migration(namespace, "configMapRef", &[])?;
    let annotations = hook.metadata.annotations.get_or_insert_default();
    for (key, value) in [("hook", "pre-install,pre-upgrade"), ("hook-weight", "5")] {
        annotations.insert(format!("helm.sh/{key}"), value.to_owned());
    }
    Ok(hook)
}

async fn hook_of_helm_under_argo_cd_is_judged_as_argo_cd_runs_it(world: &World) -> Result<()> {
    first_sync(world, "chart", "ConfigMap").await?;
    let words = ["sync-wave/wave-contradicts-phase", "Job chart/migrate", "PreSync", "ConfigMap chart/database"];
    is_refused(world, &chart_hook("chart")?, &words).await
}

async fn hook_that_helm_itself_installs_is_not_judged(world: &World) -> Result<()> {
    first_sync(world, "release", "ConfigMap").await?;
    let mut hook = chart_hook("release")?;
    // With the marker of the Application it is refused, so that what follows shows more than a guard that knows nothing.
    is_refused(world, &hook, &["sync-wave/wave-contradicts-phase"]).await?;

    hook.metadata.annotations.get_or_insert_default().remove("argocd.argoproj.io/tracking-id");
    let labels = hook.metadata.labels.get_or_insert_default();
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "Helm".to_owned());
    labels.insert("app.kubernetes.io/instance".to_owned(), "shop".to_owned());
    let said = create(&world.ops, &hook, "").await?;
    ensure!(said.is_empty(), "{said:?}");
    Ok(())
}
