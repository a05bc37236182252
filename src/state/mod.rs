//! What a serving process knows of itself: the policy in force, whether it is ready, and the files that it reads again.
//!
//! Watches of the cluster and followers of files change this state; the server and background tasks read it.

mod live_inventory;
mod live_policy;
mod readiness;
mod watched_files;

pub use self::{
    live_inventory::LiveInventory,
    live_policy::LivePolicy,
    readiness::{Readiness, Requirement},
    watched_files::{FileError, POLICY_INTERVAL, POLL_INTERVAL, WatchedFiles},
};
