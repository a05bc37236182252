//! The loop that fetches answers while the core judges, and the traits of what it asks.

use std::{future::Future, time::Duration};

use cascade_guard_core::{
    decision::Decision,
    facts::{Answer, Facts, Question},
    inventory::Inventory,
    judge::{AtHand, Case, Inquiry, Judgement, Step},
    snapshot::Snapshot,
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

impl Source for Snapshot {
    async fn answer(&self, questions: &[Question], _: Duration) -> Vec<(Question, Answer)> {
        questions.iter().map(|question| (question.clone(), self.reply(question))).collect()
    }

    fn is_at_hand(&self) -> bool {
        true
    }
}

/// Gives access to the inventory for the time of one look; no lock is held while questions are answered.
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

/// Judges a case. `time_left` tells at any moment how long reads may still take.
pub async fn judge(
    case: Case<'_>,
    inventory: &impl View,
    source: &impl Source,
    time_left: impl Fn() -> Duration,
) -> Decision {
    let mut judgement = Judgement::new(case, inventory.is_fixed());
    look(&mut judgement, Inquiry::default(), inventory, source, time_left).await
}

/// The same with a judgement that the caller keeps, and with an inquiry of its own limits.
pub async fn look(
    judgement: &mut Judgement<'_>,
    inquiry: Inquiry,
    inventory: &impl View,
    source: &impl Source,
    time_left: impl Fn() -> Duration,
) -> Decision {
    settle(inquiry, source, time_left, |facts| inventory.with(|inventory| judgement.look(inventory, facts))).await
}

/// Repeats `look` until it asks nothing any more, and returns its last result.
pub async fn settle<T>(
    mut inquiry: Inquiry,
    source: &impl Source,
    time_left: impl Fn() -> Duration,
    mut look: impl FnMut(&mut Facts) -> T,
) -> T {
    loop {
        let questions = match inquiry.step(&mut look) {
            Step::Done(result) => return result,
            Step::Needs(questions) => questions,
        };
        let left = time_left();
        if left.is_zero() || !inquiry.may_go_on() {
            inquiry.close("there was no time left to read it");
            continue;
        }
        let answers = source.answer(&questions, left).await;
        inquiry.answer(questions, answers);
    }
}
