//! The command line. One file a command; exit codes are 0 clean, 1 findings or denied, 2 usage or environment.

mod lint;
pub mod output;
pub mod plan;
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
    /// Judge the order of rendered manifests before anything reaches a cluster
    Lint(lint::Args),
    /// Show what a delete would take with it, who claims it and what is spared
    Plan(plan::Args),
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
        Command::Lint(args) => lint::run(&args),
        Command::Plan(args) => plan::run(&args),
    }
}
