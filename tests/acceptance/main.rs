//! Acceptance cases from public incidents, and the audit, through the library.

#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value, reason = "a test that panics has failed")]

mod audit;
#[allow(dead_code, reason = "the core's own tests use the rest of it")]
#[path = "../../core/tests/judging/case.rs"]
mod case;
mod cases;
mod paste;
#[allow(dead_code, reason = "the core's own tests use the rest of it")]
#[path = "../../core/tests/judging/support.rs"]
mod support;
#[allow(dead_code, reason = "the core's own tests use the rest of it")]
#[path = "../../core/tests/judging/world.rs"]
mod world;

use cascade_guard::audit::{self as scanning, AuditInput, Document, Options};
use cascade_guard_core::{policy::Policy, snapshot::Snapshot};
use jiff::Timestamp;

/// Audits the objects of a snapshot.
fn audited(snapshot: &Snapshot, policy: &Policy, now: Timestamp) -> Document {
    let inventory = snapshot.inventory(policy, (7, 8));
    let objects = snapshot.subjects();
    let input = AuditInput { view: &inventory, source: snapshot, policy, now, objects: &objects };
    let found = futures::executor::block_on(scanning::scan(&input, &Options::default(), &|_| {}));
    Document::new(found, now, None)
}
