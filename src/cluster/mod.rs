//! The live cluster: what watches deliver goes into the inventory, what rules ask is read from the API server.

mod client;
mod discovery;
mod feed;
mod source;
mod supervisor;
mod watch;
mod watched;

pub use self::{
    client::connect,
    discovery::{Kinds, Served},
    source::LiveSource,
    supervisor::Cluster,
};
