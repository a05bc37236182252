//! The command line. Each command has one file or folder. Exit codes are 0 clean, 1 findings or denied, 2 usage or
//! environment.

pub mod approvals;
mod approve;
mod arguments;
mod audit;
mod certs;
mod cluster_access;
mod cluster_reader;
mod completions;
mod crds;
mod demo;
mod diff;
mod doctor;
mod duties;
mod lint;
mod opened_input;
pub mod output;
pub mod overlap;
pub mod plan;
mod policy;
mod replay;
mod review;
mod revoke;
mod serve;
mod target;
mod thorough;
pub mod watchdog;

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
    /// Run the webhook: in a cluster, by kubeconfig, or over files
    Serve(serve::Args),
    /// Show the three incidents and their right counterparts, over real TLS, without a cluster
    Demo(demo::Args),
    /// Judge one AdmissionReview: review in, answer out
    Review(review::Args),
    /// Judge the order of rendered manifests before anything reaches a cluster
    Lint(lint::Args),
    /// Show what a delete would take with it, who claims it and what is spared
    Plan(plan::Args),
    /// Show what Argo CD would delete if a change to rendered manifests were merged
    Diff(diff::Args),
    /// Show what two Applications (or two sets of rendered manifests) share, and the safe way from one to the other
    Overlap(overlap::Args),
    /// Make a certificate authority and a serving certificate
    Certs(certs::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print the custom resource definitions as YAML
    Crds(crds::Args),
    /// Approve the deletion of a Namespace, as the current user
    Approve(approve::Args),
    /// Withdraw an approval
    Revoke(revoke::Args),
    /// List approvals, or show everything about one Namespace that is to go
    Approvals(approvals::Args),
    /// Find every overlap, refused delete, stuck object and hole in the protection
    Audit(audit::Args),
    /// Judge recorded requests: what would have been refused, what another policy would change
    Replay(replay::Args),
    /// Prove that protection is live: a delete that must not pass is tried as a dry run
    Doctor(doctor::Args),
    /// Look into the policy
    #[command(subcommand)]
    Policy(policy::Command),
    /// Watch commits that ask for it until they are deployed and well, and revert those that are not
    #[command(subcommand)]
    Watchdog(watchdog::Command),
}

/// Runs the command.
///
/// # Errors
/// When the command could not do its work: bad usage, unreadable input, an environment that lacks something.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    // Every TLS configuration needs a crypto provider; a second call is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Demo(args) => demo::run(&args),
        Command::Review(args) => review::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Overlap(args) => overlap::run(&args),
        Command::Certs(args) => certs::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Approve(args) => approve::run(&args),
        Command::Revoke(args) => revoke::run(&args),
        Command::Approvals(args) => approvals::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Policy(command) => policy::run(&command),
        Command::Watchdog(command) => watchdog::run(command),
    }
}
