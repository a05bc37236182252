//! The webhook server: sockets, TLS, routes, readiness, shutdown. What it answers is decided elsewhere.

pub mod admin;
pub mod content;
pub mod guard;
pub mod listener;
pub mod policy;
pub mod readiness;
pub mod routes;
pub mod shutdown;
pub mod tls;

pub use self::{
    guard::Guard,
    listener::{Limits, Transport},
    policy::LivePolicy,
    readiness::{Condition, Readiness},
    tls::ServerTls,
};
