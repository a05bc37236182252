//! `crds`: the custom resource definitions, for `kubectl apply -f -`.

use std::process::ExitCode;

use anyhow::Context as _;

use super::output;
use cascade_guard_core::{policy, watchdog};

/// Arguments of `crds`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Those of the rollout watchdog instead of that of the guard
    #[arg(long)]
    watchdog: bool,
}

/// Prints the definitions as YAML.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let definitions = if args.watchdog { watchdog::definitions().to_vec() } else { vec![policy::definition()] };
    let mut texts = Vec::new();
    for definition in definitions {
        let yaml = serde_saphyr::to_string(&definition).context("the definition cannot be written as YAML")?;
        texts.push(yaml.trim_end().to_owned());
    }
    output::line(&texts.join("\n---\n"))?;
    Ok(ExitCode::SUCCESS)
}
