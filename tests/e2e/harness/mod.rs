//! What the end-to-end tests run on.

pub mod argo;
pub mod git_server;
pub mod guard;
pub mod manifests;
pub mod outcome;
pub mod people;
pub mod pki;
pub mod plane;
pub mod process;
pub mod rights;
pub mod stage;
pub mod wait;
pub mod warnings;
pub mod watchdog;
pub mod world;
