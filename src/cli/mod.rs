//! The command line. One file a command; exit codes are 0 clean, 1 findings or denied, 2 usage or environment.

mod audit;
pub mod output;
pub mod plan;
mod policy;
mod replay;
mod review;
mod world;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Keeps Argo CD clusters from being deleted by accident.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Judge one AdmissionReview: review in, answer out
    Review(review::Args),
    /// Show what a delete would take with it, who claims it and what is spared
    Plan(plan::Args),
    /// Find every overlap, refused delete, stuck object and hole in the protection
    Audit(audit::Args),
    /// Judge recorded requests: what would have been refused, what another policy would change
    Replay(replay::Args),
    /// Look into the policy
    #[command(subcommand)]
    Policy(policy::Command),
}

/// Runs the command.
///
/// # Errors
/// When the command could not do its work: bad usage, unreadable input, an environment that lacks something.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    // Every TLS configuration needs a crypto provider; a second call is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match cli.command {
        Command::Review(args) => review::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Policy(command) => policy::run(&command),
    }
}
