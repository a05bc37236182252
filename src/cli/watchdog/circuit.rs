//! `watchdog close-circuit`: a person says that reverts may go on.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::super::{
    cluster_access::{ClusterArgs, current_user, in_words},
    output,
};
use cascade_guard_core::watchdog::{AppRef, WatchedRepository, circuit::ALL, schema::Closing};

/// So many closings are kept with a repository.
const KEPT: usize = 50;

/// Arguments of `watchdog close-circuit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Application: NAME, in the namespace of Argo CD, or NAMESPACE/NAME
    #[arg(value_name = "APP", required_unless_present = "all", conflicts_with = "all")]
    app: Option<String>,
    /// For all Applications
    #[arg(long)]
    all: bool,
    /// Why reverts may go on
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Namespace of Argo CD
    #[arg(long, value_name = "NAMESPACE", default_value = "argocd")]
    argocd_namespace: String,
    /// Namespace of the watchdog
    #[arg(short, long, value_name = "NAMESPACE", default_value = "cascade-guard")]
    namespace: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Exit 0 it is closed, 1 it was not open.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(close(args))
}

async fn close(args: &Args) -> anyhow::Result<ExitCode> {
    ensure!(!args.reason.trim().is_empty(), "say why with --reason");
    let app = match &args.app {
        Some(app) => AppRef::parse(app, &args.argocd_namespace).map_err(anyhow::Error::msg)?.to_string(),
        None => ALL.to_owned(),
    };
    let client = args.cluster.connect().await?;
    let by = current_user(&client).await?.username;
    let api: Api<WatchedRepository> = Api::namespaced(client, &args.namespace);
    let repositories = api.list(&ListParams::default()).await.map_err(in_words);
    let repositories = repositories.context("WatchedRepositories cannot be read")?.items;
    let is_open = |repository: &WatchedRepository| {
        let open = repository.status.as_ref().map(|status| status.open.as_slice()).unwrap_or_default();
        open.iter().any(|opening| args.all || opening.application == app)
    };
    if !repositories.iter().any(is_open) {
        output::line(&format!("the circuit is not open for {}", if args.all { "anything" } else { &app }))?;
        return Ok(ExitCode::from(1));
    }
    let closing =
        Closing { application: app.clone(), at: Some(Timestamp::now()), reason: args.reason.trim().to_owned(), by };
    for repository in repositories {
        let mut closed = repository.spec.closed.clone();
        closed.push(closing.clone());
        let closed = closed.split_off(closed.len().saturating_sub(KEPT));
        // With the version that was read, so that nobody else's closing is lost.
        let patch =
            json!({"metadata": {"resourceVersion": repository.metadata.resource_version}, "spec": {"closed": closed}});
        let name = repository.name_any();
        let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(in_words);
        patched.with_context(|| format!("WatchedRepository {name} cannot be written"))?;
    }
    output::line(&format!("closed for {}", if args.all { "all Applications" } else { &app }))?;
    Ok(ExitCode::SUCCESS)
}
