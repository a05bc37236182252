//! `watchdog run`: the process.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use super::super::{arguments::duration, cluster_access::ClusterArgs, output};
use crate::{
    telemetry::log::{self, DEFAULT_FILTER},
    watchdog::{LiveSettings, Options, once, run as run_process},
};
use cascade_guard_core::watchdog::Mode;
use jiff::SignedDuration;

/// With `--once`, at most so long is waited for the Lease and the lists.
const PATIENCE: Duration = Duration::from_secs(120);

/// Arguments of `watchdog run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// WatchdogConfiguration; read again when it changes
    #[arg(long, value_name = "FILE", default_value = "/config/watchdog.yaml")]
    config: PathBuf,
    /// Namespace of RolloutWatches, WatchedRepositories and the Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "cascade-guard", env = "POD_NAMESPACE")]
    namespace: String,
    /// Folder for the caches of repositories
    #[arg(long, value_name = "FOLDER", default_value = "/cache")]
    cache: PathBuf,
    /// shadow: revert nothing, whatever commits and the configuration say
    #[arg(long, value_name = "MODE", env = "CASCADE_GUARD_WATCHDOG_MODE_CEILING", value_parser = ceiling)]
    mode_ceiling: Option<Mode>,
    /// How long the Lease lasts: after so long another replica takes over
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    lease_duration: SignedDuration,
    /// One cycle, and out: exit 0 if everything could be reached and judged
    #[arg(long)]
    once: bool,
    /// Address of the plain port: /livez, /readyz, /metrics, /log-filter
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    admin_listen: SocketAddr,
    /// What is logged, such as debug or info,cascade_guard=trace
    #[arg(long, value_name = "FILTER", env = "CASCADE_GUARD_LOG", default_value = DEFAULT_FILTER)]
    log_filter: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A ceiling as a flag or in the environment. A variable that is there but empty caps nothing.
fn ceiling(text: &str) -> Result<Mode, String> {
    if text.is_empty() { Ok(Mode::Arm) } else { text.parse() }
}

/// Runs until SIGTERM or SIGINT, or for one cycle.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let log = log::init(&args.log_filter).map_err(anyhow::Error::msg)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let options = Options {
        namespace: args.namespace,
        cache: args.cache,
        admin_listen: args.admin_listen,
        lease: Duration::try_from(args.lease_duration).unwrap_or(Duration::from_secs(30)).max(Duration::from_secs(5)),
    };
    let (settings, files) = LiveSettings::read(args.config, args.mode_ceiling.unwrap_or(Mode::Arm))?;
    runtime.block_on(async {
        let client = args.cluster.connect().await?;
        if args.once {
            output::line(&once(client, settings, options, PATIENCE).await?)?;
            Ok(())
        } else {
            run_process(client, settings, files, options, log).await
        }
    })?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}
