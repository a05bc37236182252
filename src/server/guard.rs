//! One review, from the bytes of its body to those of its answer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::body::Bytes;
use jiff::Timestamp;
use tokio::{task::spawn_blocking, time::timeout_at};

use super::lanes::{Lanes, Pace, Turn};
use crate::{
    cluster::Health,
    judge::Source,
    state::{LiveInventory, LivePolicy},
    telemetry::{DecisionLog, Metrics},
};
use cascade_guard_core::{
    admission::{DecodeError, Operation, Request, decode, encode},
    decision::{Decision, render, unjudged},
    facts::Question,
    judge::{Case, Inquiry, Judgement, Step},
};

/// Everything that a review is judged by.
#[derive(Debug)]
pub struct Guard<S> {
    /// What the cluster looks like.
    pub inventory: Arc<LiveInventory>,
    /// Whether it is still followed.
    pub health: Arc<Health>,
    /// What the user configured.
    pub policy: Arc<LivePolicy>,
    /// Who answers what the inventory does not know.
    pub source: S,
    /// Who may judge when.
    pub lanes: Lanes,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is logged.
    pub decisions: DecisionLog,
    /// The wall clock that approvals are compared with.
    pub clock: fn() -> Timestamp,
}

/// A review on its way.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Path it came in at; one webhook entry is told from another by it.
    pub path: String,
    /// Whose certificate its client has shown; empty where nobody is asked for one, so that anybody may have sent it.
    pub client: Arc<str>,
    /// When it came in.
    pub at: Instant,
    /// For so long, from then on, the API server waits.
    pub granted: Duration,
}

impl Arrival {
    /// Until then the cluster may be asked, and a place to judge be waited for. A part of the time is kept for the way
    /// back: an answer in time that says what is not known is worth more than a complete one that comes too late.
    fn reads_end(&self) -> Instant {
        self.at + self.granted.mul_f64(0.8)
    }

    /// Then whoever still judges is told to stop.
    fn judging_ends(&self) -> Instant {
        self.at + self.granted.mul_f64(0.85)
    }

    /// Then the answer is given without him.
    fn patience_ends(&self) -> Instant {
        self.at + self.granted.mul_f64(0.9)
    }
}

/// A body that is no review; there is nobody to answer to. Holds the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAReview(pub String);

/// What one look at a review came to.
enum Look {
    Answer(Result<Vec<u8>, NotAReview>),
    Needs(Inquiry, Vec<Question>),
    /// It is no quick one.
    Long(Inquiry),
}

/// A quick look takes no longer.
const QUICK: Duration = Duration::from_millis(50);

/// A review that is looked at again and again, each time on a thread where nobody waits for sockets.
#[derive(Clone)]
struct Review {
    body: Bytes,
    arrival: Arc<Arrival>,
    /// Whether it was answered: a thread that was not waited for must not count it again.
    answered: Arc<AtomicBool>,
}

impl<S: Source + Send + 'static> Guard<S> {
    /// Judges the review in `body`. Whatever happens, a review with a uid gets an answer to that uid.
    ///
    /// # Errors
    /// When the body is no review.
    pub async fn answer(self: &Arc<Self>, body: Bytes, arrival: Arrival) -> Result<Vec<u8>, NotAReview> {
        let review = Review { body, arrival: Arc::new(arrival), answered: Arc::default() };
        let arrival = review.arrival.clone();
        let (mut inquiry, mut pace) = (Inquiry::default(), Pace::Quick);
        loop {
            let Some(turn) = self.lanes.turn(&arrival.path, pace, arrival.reads_end()).await else { break };
            let look = self.look_aside(&review, inquiry, pace, Some(turn));
            let Ok(look) = timeout_at(arrival.patience_ends().into(), look).await else { break };
            let questions;
            (inquiry, questions) = match look {
                Look::Answer(answer) => return answer,
                Look::Needs(inquiry, questions) => (inquiry, questions),
                Look::Long(same) => {
                    (inquiry, pace) = (same, Pace::Long);
                    continue;
                }
            };
            let left = arrival.reads_end().saturating_duration_since(Instant::now());
            if left.is_zero() || !inquiry.may_go_on() {
                inquiry.close("there was no time left to read it");
                continue;
            }
            let answers = self.source.answer(&questions, left).await;
            inquiry.answer(questions, answers);
        }
        // Nobody judged it in time. What is said then takes no judgement, and so no place among those who judge.
        match self.look_aside(&review, Inquiry::default(), Pace::Long, None).await {
            Look::Answer(answer) => answer,
            Look::Needs(..) | Look::Long(_) => Err(NotAReview("there was no time left to look at it".to_owned())),
        }
    }

    /// Takes a look on a thread of its own, which keeps its `turn` for as long as it really takes. Without one there is no
    /// time left.
    async fn look_aside(self: &Arc<Self>, review: &Review, inquiry: Inquiry, pace: Pace, turn: Option<Turn>) -> Look {
        let (guard, review) = (self.clone(), review.clone());
        let look = spawn_blocking(move || {
            let now = Instant::now();
            let ends = match (&turn, pace) {
                (None, _) => now,
                (_, Pace::Quick) => review.arrival.judging_ends().min(now + QUICK),
                (_, Pace::Long) => review.arrival.judging_ends(),
            };
            let look = guard.look(&review, inquiry.until(Arc::new(move || Instant::now() >= ends)), pace);
            drop(turn);
            look
        });
        // Panics end further in, where the uid is known; what else there is would end the process.
        look.await.unwrap_or_else(|error| Look::Answer(Err(NotAReview(error.to_string()))))
    }

    fn look(&self, review: &Review, mut inquiry: Inquiry, pace: Pace) -> Look {
        let request = match decode(&review.body) {
            Ok(request) => request,
            Err(error) => return Look::Answer(self.undecoded(review, &error)),
        };
        // A panic is a fault of ours and ends here: the caller still gets an answer to its uid.
        let step = catch_unwind(AssertUnwindSafe(|| {
            let policy = self.policy.load();
            let inventory = self.inventory.read();
            let stale = self.health.stale_claims();
            let case = Case { stale: stale.as_deref(), ..Case::new(&request, &policy, (self.clock)()) };
            let mut judgement = Judgement::new(case, false);
            let step = inquiry.step(|facts| judgement.look(&inventory, facts));
            let is_long = inquiry.budget().is_over() && Instant::now() < review.arrival.judging_ends();
            match step {
                _ if is_long && pace == Pace::Quick => None,
                Step::Done(decision) => Some(Step::Done(self.answered(review, &request, &decision))),
                Step::Needs(questions) => Some(Step::Needs(questions)),
            }
        }));
        match step {
            Ok(Some(Step::Done(answer))) => Look::Answer(Ok(answer)),
            Ok(Some(Step::Needs(questions))) => Look::Needs(inquiry, questions),
            Ok(None) => Look::Long(inquiry),
            Err(_) => {
                tracing::error!(path = review.arrival.path, uid = request.uid, "judging a review panicked");
                let reason = "cascade-guard itself has a fault";
                Look::Answer(Ok(self.unjudged(&request.uid, Some(request.operation), reason)))
            }
        }
    }

    /// The answer to a review that was decided, which is counted and logged.
    fn answered(&self, review: &Review, request: &Request<'_>, decision: &Decision) -> Vec<u8> {
        let answer = encode(&request.uid, &render(decision, request));
        if review.answered.swap(true, Ordering::Relaxed) {
            return answer;
        }
        let took = review.arrival.at.elapsed();
        self.metrics.count_decision(request.operation, request.dry_run, decision);
        // A dry run leaves no trace but its own counter.
        if !request.dry_run {
            self.metrics.observe_duration(took);
        }
        let from = (review.arrival.path.as_str(), &*review.arrival.client);
        self.decisions.record(request, decision, from, took, Instant::now());
        answer
    }

    /// The answer to what cannot be decoded.
    fn undecoded(&self, review: &Review, error: &DecodeError) -> Result<Vec<u8>, NotAReview> {
        let Arrival { path, at, .. } = &*review.arrival;
        match error {
            DecodeError::NotAReview(_) => {
                self.metrics.count_unjudged(None);
                let reason = error.to_string();
                self.decisions.record_no_review(path, &reason, *at);
                Err(NotAReview(reason))
            }
            DecodeError::Malformed { uid, operation, reason } => {
                self.decisions.record_malformed(path, uid, reason, *at);
                Ok(self.unjudged(uid, *operation, &format!("the review does not make sense ({reason})")))
            }
        }
    }

    fn unjudged(&self, uid: &str, operation: Option<Operation>, reason: &str) -> Vec<u8> {
        self.metrics.count_unjudged(operation);
        let delete = operation == Some(Operation::Delete);
        encode(uid, &unjudged(delete, &self.policy.load(), reason))
    }
}
