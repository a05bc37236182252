//! Attacks on a running guard: what each costs, and whether honest requests and probes are answered meanwhile.
//!
//! `make drills` runs all of them, `make drills ONLY=hooks` those whose name contains the word. Each starts `serve` over a
//! snapshot of its own and prints figures. A drill fails if an honest request or a probe is not answered, never because
//! of a time: times are for people to compare.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command for people")]

mod children;
mod contested;
mod harness;
mod hooks;
mod large;
mod slow;

use std::process::ExitCode;

/// One drill.
struct Drill {
    name: &'static str,
    /// What it does, in one line.
    about: &'static str,
    run: fn() -> anyhow::Result<()>,
}

const DRILLS: [Drill; 5] = [hooks::DRILL, contested::DRILL, children::DRILL, slow::DRILL, large::DRILL];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut failed = false;
    for drill in DRILLS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| drill.name.contains(wanted.as_str())) {
            continue;
        }
        println!("{}: {}", drill.name, drill.about);
        if let Err(error) = (drill.run)() {
            eprintln!("  FAILED: {error:#}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
