//! The core, tested as its callers use it: recordings, situations, properties, and that every rule is complete.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "a test that panics has failed, and says where"
)]

mod approval;
mod approvals;
mod cascades;
mod case;
mod cases;
mod claims_in_error;
mod control_plane;
mod deletes;
mod growth;
mod installations;
mod kept_children;
mod overdue;
mod overlap;
mod properties;
mod recordings;
mod replay;
mod rules;
mod runtime_dependency;
mod scopes;
mod several_takers;
mod stale;
mod support;
mod ways_out;
mod world;
