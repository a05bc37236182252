//! The process around [`cascade_guard_core::watchdog`]: it fetches repositories, follows Applications, keeps the watches in
//! the cluster, and makes the reverts that the core asks for.

mod commits;
pub mod engine;
pub mod git;
pub mod history;
pub mod remote;
mod reverting;
pub mod store;
