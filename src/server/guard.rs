//! One review, from the bytes of its body to those of its answer.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use jiff::Timestamp;
use parking_lot::RwLock;

use crate::{
    cluster::Health,
    judge::{Source, judge},
    state::LivePolicy,
    telemetry::{DecisionLog, Metrics},
};
use cascade_guard_core::judge::Case;
use cascade_guard_core::{
    admission::{DecodeError, Operation, Request, decode, encode},
    decision::{render, unjudged},
    inventory::Inventory,
};

/// Everything that a review is judged by.
#[derive(Debug)]
pub struct Guard<S> {
    /// What the cluster looks like.
    pub inventory: Arc<RwLock<Inventory>>,
    /// Whether it is still followed.
    pub health: Arc<Health>,
    /// What the user configured.
    pub policy: Arc<LivePolicy>,
    /// Who answers what the inventory does not know.
    pub source: S,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is logged.
    pub decisions: DecisionLog,
    /// The wall clock that approvals are compared with.
    pub clock: fn() -> Timestamp,
}

/// A review on its way.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Path it came in at; one webhook entry is told from another by it.
    pub path: &'a str,
    /// When it came in.
    pub at: Instant,
    /// For so long, from then on, the cluster may be asked.
    pub reads: Duration,
}

/// A body that is no review; there is nobody to answer to. Holds the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAReview(pub String);

impl<S: Source> Guard<S> {
    /// Judges the review in `body`. Whatever happens, a review with a uid gets an answer to that uid.
    ///
    /// # Errors
    /// When the body is no review.
    pub async fn answer(&self, body: &[u8], arrival: Arrival<'_>) -> Result<Vec<u8>, NotAReview> {
        let request = match decode(body) {
            Ok(request) => request,
            Err(error @ DecodeError::NotAReview(_)) => {
                self.metrics.count_unjudged(None);
                let reason = error.to_string();
                self.decisions.record_no_review(arrival.path, &reason, arrival.at);
                return Err(NotAReview(reason));
            }
            Err(DecodeError::Malformed { uid, operation, reason }) => {
                self.decisions.record_malformed(arrival.path, &uid, &reason, arrival.at);
                return Ok(self.unjudged(&uid, operation, &format!("the review does not make sense ({reason})")));
            }
        };
        // A panic is a fault of ours and ends here: the caller still gets an answer to its uid.
        let judged = AssertUnwindSafe(self.judge(&request, arrival)).catch_unwind().await;
        Ok(judged.unwrap_or_else(|_| {
            tracing::error!(path = arrival.path, uid = request.uid, "judging a review panicked");
            self.unjudged(&request.uid, Some(request.operation), "cascade-guard itself has a fault")
        }))
    }

    async fn judge(&self, request: &Request<'_>, arrival: Arrival<'_>) -> Vec<u8> {
        let policy = self.policy.load();
        let time_left = || arrival.reads.saturating_sub(arrival.at.elapsed());
        let stale = self.health.stale_claims();
        let case = Case { stale: stale.as_deref(), ..Case::new(request, &policy, (self.clock)()) };
        let decision = judge(case, &*self.inventory, &self.source, time_left).await;
        let answer = encode(&request.uid, &render(&decision, request));
        let took = arrival.at.elapsed();
        self.metrics.count_decision(request.operation, request.dry_run, &decision);
        // A dry run leaves no trace but its own counter.
        if !request.dry_run {
            self.metrics.observe_duration(took);
        }
        self.decisions.record(request, &decision, arrival.path, took, Instant::now());
        answer
    }

    fn unjudged(&self, uid: &str, operation: Option<Operation>, reason: &str) -> Vec<u8> {
        self.metrics.count_unjudged(operation);
        let delete = operation == Some(Operation::Delete);
        encode(uid, &unjudged(delete, &self.policy.load(), reason))
    }
}
