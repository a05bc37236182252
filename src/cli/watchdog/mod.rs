//! `watchdog`: the rollout watchdog, and what people do with it.

mod check;
mod circuit;
pub mod doctor;
mod known;
mod run;
mod survey;

use std::process::ExitCode;

use clap::Subcommand;

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch commits that ask for it, and revert where that is due
    Run(run::Args),
    /// Judge the trailers of a commit before it is pushed: are they right, can the Application be watched, may it be armed
    Check(check::Args),
    /// List every Application: can it be watched, may it be armed, and why not
    Survey(survey::Args),
    /// Close the circuit that too many reverts have opened
    CloseCircuit(circuit::Args),
}

/// Runs it.
pub(super) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(&args),
        Command::Survey(args) => survey::run(&args),
        Command::CloseCircuit(args) => circuit::run(&args),
    }
}
