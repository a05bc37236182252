//! Keeps an Argo CD cluster from being deleted by accident.
//!
//! A review is decoded by [`admission`], judged by the [`rules`] against the [`inventory`] (what Applications claim)
//! and the [`policy`], and answered with a [`decision`]. What a rule needs to know beyond that it asks for through
//! [`facts`], as data; [`report`] writes down what was found. All of this is a pure, synchronous core; `server`, `cluster`,
//! `snapshot`, `certs`, `telemetry` and `cli` are the shell around it.

pub mod admission;
pub mod argo;
pub mod audit;
pub mod body;
pub mod certs;
pub mod cli;
pub mod cluster;
pub mod decision;
pub mod facts;
pub mod inventory;
pub mod judge;
pub mod lint;
pub mod object;
pub mod plan;
pub mod policy;
pub mod rbac;
pub mod replay;
pub mod report;
pub mod rules;
pub mod server;
pub mod snapshot;
pub mod telemetry;
