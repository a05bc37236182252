//! The rollout watchdog over random lives, in simulated time: what must never happen does not, and a day costs seconds.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "numbers of a few hundred commits and a few thousand lives"
)]
#![allow(clippy::print_stdout, reason = "what a day costs is worth a look")]
#![allow(clippy::result_large_err, reason = "a status that comes back the one way or the other")]
#![allow(clippy::unwrap_used, reason = "a life in another shape fails the test, and the panic says where")]

mod cluster;
mod conditions;
mod day;
mod life;
mod reference;
mod repository;
mod watcher;
