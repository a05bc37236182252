//! One repository at work.

use tokio::time::Instant;

use super::{remote::Remote, store::KeptRepository};
use cascade_guard_core::watchdog::facts::Facts;

/// A repository, what was asked about it, and what is kept of it.
#[derive(Debug)]
pub(super) struct Place {
    pub remote: Remote,
    pub facts: Facts,
    pub kept: KeptRepository,
    /// Whether it was fetched in this cycle.
    pub fresh: bool,
    /// Why it cannot be reached; `None` if it can.
    pub trouble: Option<String>,
    pub failures: u32,
    pub not_before: Option<Instant>,
}
