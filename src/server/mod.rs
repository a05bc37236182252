//! The webhook server: sockets, TLS, routes, probes, shutdown. The core decides what it answers.

pub mod admin;
mod bodies;
mod clients;
mod connections;
pub mod guard;
pub mod lanes;
mod limits;
pub mod listener;
pub mod routes;
pub mod shutdown;
pub mod tls;

pub use self::{
    guard::Guard,
    lanes::{Lanes, Pace},
    limits::Limits,
    listener::Transport,
    tls::ServerTls,
};
