//! The decisions of cascade-guard, and everything they are made of.
//!
//! A review is decoded by [`admission`], judged by the [`rules`] against the [`inventory`] (what Applications claim)
//! and the [`policy`], and answered with a [`decision`]. What a rule needs to know beyond that it asks for through
//! [`facts`], as data; [`report`] writes down what was found.
//!
//! This crate is synchronous. It knows no client, no runtime, no file and no clock: whoever calls it brings the answers,
//! the texts and the time.

pub mod admission;
pub mod argo;
pub mod body;
pub mod budget;
pub mod catalog;
pub mod decision;
pub mod deletion;
pub mod diff;
pub mod facts;
pub mod inventory;
pub mod judge;
pub mod kinds;
pub mod lint;
pub mod namespace;
pub mod needs;
pub mod object;
pub mod overlap;
pub mod policy;
pub mod rbac;
pub mod remedy;
pub mod replay;
pub mod report;
pub mod rules;
pub mod snapshot;
pub mod text;
pub mod watchdog;
pub mod yaml;
