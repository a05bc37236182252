//! `lint` over files, as a pipeline runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test that panics has failed, and says where"
)]

mod cases;
mod corpus;
mod incidents;
mod outputs;
mod problems;
mod support;
