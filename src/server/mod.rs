//! The webhook server: sockets, TLS, routes, probes, shutdown. The core decides what it answers.

pub mod admin;
mod bodies;
mod connections;
pub mod guard;
pub mod listener;
pub mod routes;
pub mod shutdown;
pub mod tls;

pub use self::{
    guard::Guard,
    listener::{Limits, Transport},
    tls::ServerTls,
};
