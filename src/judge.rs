//! One review, from decoded request to decision: the only way in for the webhook, the command line and the audit.
//!
//! The core is asked, its questions are answered, and it is asked again until it has no more questions or the time is up.

use std::{future::Future, time::Duration};

use jiff::Timestamp;

use crate::{
    admission::Request,
    decision::Decision,
    facts::{Answer, Facts, Question},
    inventory::Inventory,
    policy::Policy,
    rules,
};

/// Where answers come from: a live cluster or a snapshot.
pub trait Source: Sync {
    /// Answers every question it can within `time_left`. What is missing from the result counts as not read in time.
    fn answer(
        &self,
        questions: &[Question],
        time_left: Duration,
    ) -> impl Future<Output = Vec<(Question, Answer)>> + Send;

    /// Whether it answers without waiting for anything, so that it can be asked outside the runtime.
    fn is_at_hand(&self) -> bool {
        false
    }
}

/// Gives access to the inventory for the time of one evaluation; no lock is held while questions are answered.
pub trait View: Sync {
    /// Calls `read` with the inventory as it is now.
    fn with<T>(&self, read: impl FnOnce(&Inventory) -> T) -> T;

    /// Whether it is the same at every call, so that what was worked out from it once stays true.
    fn is_fixed(&self) -> bool {
        false
    }
}

impl View for Inventory {
    fn with<T>(&self, read: impl FnOnce(&Inventory) -> T) -> T {
        read(self)
    }

    fn is_fixed(&self) -> bool {
        true
    }
}

impl View for parking_lot::RwLock<Inventory> {
    fn with<T>(&self, read: impl FnOnce(&Inventory) -> T) -> T {
        read(&self.read())
    }
}

/// A plan is followed to any depth, but no honest tree of Applications is deeper than this; what lies below counts as
/// not read.
const MAX_ROUNDS: usize = 32;

/// Judges a request.
///
/// `now` is the wall clock that approvals are compared with; `time_left` tells at any moment how long reads may still
/// take.
pub async fn judge(
    request: &Request<'_>,
    inventory: &impl View,
    policy: &Policy,
    source: &impl Source,
    now: Timestamp,
    time_left: impl Fn() -> Duration,
) -> Decision {
    settle(Facts::new(), source, time_left, |facts| {
        inventory.with(|inventory| rules::evaluate(request, inventory, policy, facts, now))
    })
    .await
}

/// Asks `evaluate` until it has no more questions, and returns its last word.
pub async fn settle<T>(
    mut facts: Facts,
    source: &impl Source,
    time_left: impl Fn() -> Duration,
    mut evaluate: impl FnMut(&Facts) -> T,
) -> T {
    let mut round = 0;
    loop {
        let result = evaluate(&facts);
        let questions = facts.take_pending();
        if questions.is_empty() {
            return result;
        }
        let left = time_left();
        if left.is_zero() || round >= MAX_ROUNDS {
            facts.close("there was no time left to read it");
            continue;
        }
        round += 1;
        for (question, answer) in source.answer(&questions, left).await {
            facts.insert(question, answer);
        }
        for question in questions {
            facts.insert_missing(question, "it was not read in time");
        }
    }
}
