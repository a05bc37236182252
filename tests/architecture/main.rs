//! The architecture: which module may name which, and what the core must not name at all.
//!
//! `graph` reads the modules of a crate, `order` holds them against the order that ARCHITECTURE.md draws, and `planted`
//! shows that both find what they are for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, and says where")]

mod graph;
mod order;
mod planted;

use std::{fmt::Display, fs, path::Path};

use graph::Graph;
use order::{order_in, ordered};

/// A crate of the workspace.
struct Half {
    /// The folder of its sources.
    sources: &'static str,
    name: &'static str,
    /// The heading in ARCHITECTURE.md below which its modules are drawn, from top to bottom.
    heading: &'static str,
}

const CORE: Half = Half { sources: "core/src", name: "cascade-guard-core", heading: "### Modules of the core" };
const SHELL: Half = Half { sources: "src", name: "cascade-guard", heading: "### Modules of the shell" };

/// What the core must not name: clients, runtimes, files, the network, threads, the environment, clocks, and state that
/// changes behind a shared reference.
const IMPURE: &[&str] = &[
    "axum",
    "cascade_guard",
    "futures",
    "hyper",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "jiff::tz::TimeZone::system",
    "kube",
    "kube_client",
    "kube_runtime",
    "parking_lot",
    "rayon",
    "reqwest",
    "std::cell",
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::os",
    "std::process",
    "std::sync::Condvar",
    "std::sync::LazyLock",
    "std::sync::Mutex",
    "std::sync::OnceLock",
    "std::sync::RwLock",
    "std::sync::atomic",
    "std::sync::mpsc",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "tokio",
];

impl Half {
    fn graph(&self) -> Graph {
        Graph::read(Path::new(self.sources), self.name)
    }
}

/// Fails with a line for each of `faults`.
fn assert_none(faults: impl IntoIterator<Item = impl Display>) {
    let told: Vec<String> = faults.into_iter().map(|fault| fault.to_string()).collect();
    assert!(told.is_empty(), "{} faults\n{}", told.len(), told.join("\n"));
}

#[test]
fn modules_of_the_core_stand_on_those_drawn_below_them() {
    assert_in_order(&CORE);
}

#[test]
fn modules_of_the_shell_stand_on_those_drawn_below_them() {
    assert_in_order(&SHELL);
}

fn assert_in_order(half: &Half) {
    let page = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let order = order_in(&page, half.heading);
    assert!(!order.is_empty(), "ARCHITECTURE.md has no picture below `{}`", half.heading);
    assert_none(ordered(&half.graph(), &order));
}

#[test]
fn no_modules_of_the_core_lead_to_each_other() {
    assert_none(CORE.graph().cycles());
}

#[test]
fn no_modules_of_the_shell_lead_to_each_other() {
    assert_none(SHELL.graph().cycles());
}

#[test]
fn the_core_names_nothing_impure() {
    assert_none(CORE.graph().naming(IMPURE));
}
