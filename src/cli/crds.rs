//! `crds`: the custom resource definitions, for `kubectl apply -f -`.

use std::process::ExitCode;

use anyhow::Context as _;

use super::output;
use cascade_guard_core::policy;

/// Prints every definition as YAML.
pub fn run() -> anyhow::Result<ExitCode> {
    let yaml = serde_saphyr::to_string(&policy::definition()).context("the definition cannot be written as YAML")?;
    output::line(yaml.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
