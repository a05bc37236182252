//! `completions`: a completion script for a shell.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use super::{Cli, output};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "cascade-guard", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
