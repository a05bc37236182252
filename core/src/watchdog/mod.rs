//! The rollout watchdog: a commit that asked for it is watched until it is deployed and well, and reverted where it is not and
//! everything speaks for that.
//!
//! The parts: a [`trailer`] asks; a [`view`] of an Application and the [`looks`] at it before say how it is and was; [`facts`]
//! are what Git is asked; [`judge`](judge::judge) goes one step; [`conditions`] keep a revert from being made; the [`circuit`]
//! keeps many of them from being made. Time is an argument, so an hour of a rollout is judged in no time.

mod aftermath;
pub mod circuit;
pub mod circumstances;
pub mod conditions;
mod definition;
pub mod facts;
pub mod health;
pub mod judge;
mod look;
pub mod looks;
pub mod message;
pub mod repository;
mod rollout;
pub mod schema;
pub mod settings;
mod settled;
pub mod source;
pub mod trailer;
pub mod updaters;
pub mod view;
pub mod watchable;

pub use self::{
    circumstances::Circumstances,
    definition::definitions,
    judge::Step,
    looks::Applications,
    schema::{AppRef, Mode, Phase, RolloutWatch, RolloutWatchSpec, RolloutWatchStatus, WatchedRepository},
    settings::Settings,
    view::View,
};
