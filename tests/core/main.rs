//! The core, tested through the library: acceptance cases, recordings, properties, and its own shape.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "a test that panics has failed, and says where"
)]

mod acceptance;
mod approval;
mod approvals;
mod architecture;
mod audit;
mod cascades;
mod control_plane;
mod deletes;
mod overlap;
mod properties;
mod recordings;
mod replay;
mod runtime_dependency;
mod support;
mod world;
