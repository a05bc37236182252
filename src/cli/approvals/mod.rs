//! `approvals`: lists approvals, or shows everything about one Namespace that somebody wants to delete.

pub mod list;
pub mod status;
mod times;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;

pub use self::times::Clock;
use super::{
    arguments::InputArgs,
    cluster_access::{self, ClusterArgs, NO_SNAPSHOT},
    cluster_reader::ClusterReader,
    output::{self, Format},
};
use cascade_guard_core::{namespace::approval_list::list_approvals, object::GroupKind};

#[cfg(test)]
const CLUSTER: &str = include_str!("../../../core/src/namespace/tests.yaml");

/// Arguments of `approvals`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: Options,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List every approval, and Namespaces whose deletion waits for one
    List(Options),
    /// Show everything about one Namespace: its approval, what is in it, what would keep it from going
    Status {
        /// Name of the Namespace
        namespace: String,
        #[command(flatten)]
        options: Options,
    },
}

/// What `list` and `status` have in common.
#[derive(Debug, clap::Args)]
struct Options {
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// `list`: exit 0. `status`: exit 0 if the Namespace may be deleted now, 1 if not.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match &args.action {
            None => run_list(&args.list).await,
            Some(Action::List(options)) => run_list(options).await,
            Some(Action::Status { namespace, options }) => run_status(namespace, options).await,
        }
    })
}

async fn run_list(options: &Options) -> anyhow::Result<ExitCode> {
    let (snapshot, policy) = if let Some((snapshot, policy)) = options.input.snapshot()? {
        // Approvals stand on Namespaces.
        options.input.ensure_holds(&snapshot, &[GroupKind::new("", "Namespace")])?;
        (snapshot, policy)
    } else {
        let client = options.cluster.connect().await.context(NO_SNAPSHOT)?;
        let policy = cluster_access::policy(&client, &options.input.policy).await?;
        let listed = ClusterReader::new(client).await?.namespaces_and_applications().await?;
        if let Some(unread) = listed.not_read {
            output::note(&format!("what waits for an approval is not known: {}: {}", unread.what, unread.why));
        }
        (listed.snapshot, policy)
    };
    let clock = Clock::system(options.input.now());
    let inventory = snapshot.inventory(&policy, (0, 0));
    list::print(&list_approvals(&inventory, &policy, clock.now), options.output, &clock)?;
    Ok(ExitCode::SUCCESS)
}

async fn run_status(namespace: &str, options: &Options) -> anyhow::Result<ExitCode> {
    let clock = Clock::system(options.input.now());
    let status = if let Some((snapshot, policy)) = options.input.snapshot()? {
        options.input.ensure_holds(&snapshot, &[])?;
        status::read(namespace, &snapshot, &snapshot, &policy, clock.now).await?
    } else {
        let client = options.cluster.connect().await.context(NO_SNAPSHOT)?;
        let policy = cluster_access::policy(&client, &options.input.policy).await?;
        let reader = ClusterReader::new(client).await?;
        let mut listed = reader.namespace_and_applications(namespace).await?;
        // Whoever may only approve hears once what that leaves unknown.
        if listed.not_read.is_none() {
            reader.add_neighbours(&mut listed.snapshot).await?;
        } else {
            output::note(
                "what Applications claim is not known here, so neither is whether their claims would refuse the delete",
            );
        }
        let mut status = status::read(namespace, &listed.snapshot, &reader, &policy, clock.now).await?;
        status.content.not_read.extend(listed.not_read);
        status
    };
    status::print(&status, options.output, &clock)?;
    Ok(ExitCode::from(u8::from(!status.deletable)))
}
