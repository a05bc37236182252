//! The rollout watchdog over real repositories: what a real Argo CD wrote, judged; and what git is asked and told.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a repository in another shape fails the test, and the panic says where"
)]

mod argo;
mod commands;
mod developer;
mod lives;
mod memory;
mod recordings;
mod repository;
mod stage;
