//! The live cluster. Watches feed the inventory. Live reads answer the questions of rules. Status, Events and reports are
//! written back from timers.

mod alarm;
mod client;
mod configuration;
mod discovery;
mod failure;
mod freshness;
mod health;
mod index_feed;
mod list_watch;
mod live_reads;
mod observer;
pub mod reports;
mod status;
mod stuck_deletions;
mod supervisor;
mod watch;
mod watched_object;

pub use self::{
    alarm::Alarm,
    client::{connect, in_words},
    discovery::{Kinds, Served},
    freshness::STALE_AFTER,
    health::{Degradation, Health, degradations},
    list_watch::SILENCE,
    live_reads::LiveSource,
    observer::Observer,
    status::StatusWriter,
    stuck_deletions::StuckWatch,
    supervisor::Cluster,
};
