//! `revoke`: takes an approval away. Everybody who may write to the Namespace may do that.

use std::process::ExitCode;

use super::{
    approve::{namespace, withdrawal, write},
    cluster_access::ClusterArgs,
    output,
};
use cascade_guard_core::namespace::approval::{APPROVAL_KEYS, Approval};

/// Arguments of `revoke`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the Namespace
    namespace: String,
    /// Print the patch and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Exit 0 no approval is left, 1 refused.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { revoke(args, &args.cluster.connect().await?).await })
}

async fn revoke(args: &Args, client: &kube::Client) -> anyhow::Result<ExitCode> {
    let meta = namespace(client, &args.namespace).await?;
    let patch = withdrawal(&meta);
    if args.dry_run {
        output::line(&serde_json::to_string_pretty(&patch)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if APPROVAL_KEYS.iter().all(|key| meta.annotation(key).is_none()) {
        output::line(&format!("Namespace {} carries no approval.", meta.name))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(refusal) = write(client, &meta.name, &patch).await? {
        output::refusal(&refusal);
        return Ok(ExitCode::from(1));
    }
    let by = Some(Approval::read(&meta).by).filter(|by| !by.is_empty());
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    output::line(&format!("The approval{by} of Namespace {} is withdrawn.", meta.name))?;
    if meta.is_terminating() {
        output::note("the Namespace is already being deleted, and nothing stops that");
    }
    Ok(ExitCode::SUCCESS)
}
