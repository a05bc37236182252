//! `diff` over trees of rendered manifests, as a program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test that panics has failed, and says where"
)]

mod against;
mod applications;
mod formats;
mod moves;
mod objects;
mod support;
