//! The rollout watchdog over random lives, in simulated time: what must never happen does not, and a day costs seconds.

#![allow(clippy::unwrap_used, reason = "a life in another shape fails the test, and the panic says where")]

mod cluster;
mod conditions;
mod day;
mod life;
mod reference;
mod repository;
mod watcher;
