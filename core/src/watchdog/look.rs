//! One look at one watch, while it is being worked out. The steps of it are in the files beside this one.

use jiff::{SignedDuration, Timestamp};

use super::{
    circumstances::Circumstances,
    facts::Facts,
    schema::{Phase, RolloutWatchSpec, RolloutWatchStatus},
};

/// What follows.
pub(super) enum Next {
    Fetch,
    Keep,
    Revert,
}

/// A look.
pub(super) struct Look<'a> {
    pub(super) name: &'a str,
    pub(super) spec: &'a RolloutWatchSpec,
    pub(super) around: &'a Circumstances<'a>,
    pub(super) status: RolloutWatchStatus,
    pub(super) facts: &'a mut Facts,
}

impl Look<'_> {
    pub(super) fn deadline(&self) -> SignedDuration {
        SignedDuration::from_secs(i64::from(self.spec.deadline))
    }

    /// How much time since then could be judged.
    pub(super) fn judged_since(&self, since: Timestamp) -> SignedDuration {
        self.around.now.duration_since(since) - SignedDuration::from_millis(self.status.unjudged)
    }

    /// Time that is not held against the commit.
    pub(super) fn lose(&mut self, passed: SignedDuration) {
        let passed = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        self.status.unjudged = self.status.unjudged.saturating_add(passed);
    }

    pub(super) fn enter(&mut self, phase: Phase, message: String) {
        if self.status.phase != phase {
            self.status.since = Some(self.around.now);
        }
        self.status.phase = phase;
        self.status.message = message;
    }

    pub(super) fn end(&mut self, phase: Phase, message: String) -> Next {
        self.enter(phase, message);
        self.status.ended = Some(self.around.now);
        Next::Keep
    }
}
