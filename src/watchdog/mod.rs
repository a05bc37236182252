//! The process around [`cascade_guard_core::watchdog`]: it fetches repositories, follows Applications, keeps the watches in
//! the cluster, and makes the reverts that the core asks for.

mod commits;
pub mod engine;
pub mod git;
pub mod history;
mod keeping;
mod kube_store;
pub mod lease;
mod live_settings;
mod notify;
mod observing;
mod place;
mod places;
mod probes;
mod process;
pub mod remote;
mod removal;
mod reverting;
pub mod store;

pub use self::{
    live_settings::LiveSettings,
    observing::image_updaters,
    process::{Options, once, run},
};
