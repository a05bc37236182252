//! The live cluster: what watches deliver goes into the inventory, what rules ask is read from the API server.

mod alarm;
mod client;
mod discovery;
mod feed;
mod follow;
mod health;
pub mod reports;
mod source;
mod status;
mod stuck;
mod supervisor;
mod watch;
mod watched;

pub use self::{
    alarm::Alarm,
    client::connect,
    discovery::{Kinds, Served},
    follow::SILENCE,
    health::{Degradation, Health, degradations},
    source::LiveSource,
    status::StatusWriter,
    stuck::StuckWatch,
    supervisor::Cluster,
};
