//! End-to-end tests: the real binary, with the manifests that ship, on a real API server.
//!
//! The harness starts a control plane and the guard once, runs every test against them, and takes them down after the
//! last one. That is more than the built-in test harness can do (it never drops a static), so this program has its own
//! `main`; the command line is the usual one.

mod approval_paths;
mod approvals;
mod changed;
mod commands;
mod crowding;
mod deletes;
mod harness;
mod hook_needs;
mod hooks;
mod incidents;
mod install;
mod installations;
mod lists_that_change;
mod live;
mod matching;
mod outage;
mod policy;
mod powers;
mod reports;
mod watchdog;
mod ways_out;

use std::process::ExitCode;

use harness::stage;

fn main() -> anyhow::Result<ExitCode> {
    // Every TLS configuration needs a crypto provider; the binary does the same for itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tests = [
        install::tests(),
        policy::tests(),
        incidents::tests(),
        hooks::tests(),
        hook_needs::tests(),
        crowding::tests(),
        approvals::tests(),
        approval_paths::tests(),
        ways_out::tests(),
        deletes::tests(),
        lists_that_change::tests(),
        commands::tests(),
        matching::tests(),
        powers::tests(),
        outage::tests(),
        changed::tests(),
        live::tests(),
        installations::tests(),
        reports::tests(),
        watchdog::tests(),
    ];
    stage::run(tests.into_iter().flatten().collect())
}
