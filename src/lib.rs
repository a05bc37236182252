//! Keeps an Argo CD cluster from being deleted by accident.
//!
//! What is decided, and how, is the core crate, [`cascade_guard_core`]. This crate is the shell around it: it serves, watches,
//! reads, prints and keeps the time.

pub mod audit;
pub mod certs;
pub mod cli;
pub mod cluster;
pub mod judge;
pub mod server;
pub mod snapshot;
pub mod state;
pub mod telemetry;
pub mod watchdog;
