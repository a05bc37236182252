//! One look at one watch: from what is known and the time follows the next status, and what has to be done.

use jiff::{SignedDuration, Timestamp};

use super::{
    circumstances::Circumstances,
    facts::Facts,
    look::{Look, Next},
    schema::{Phase, RolloutWatchSpec, RolloutWatchStatus},
};

/// What follows from a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Questions are open.
    Ask,
    /// Git has to be fetched, and everything judged again.
    Fetch,
    /// The status is this now.
    Keep(RolloutWatchStatus),
    /// The commit has to be reverted; the status is this until then.
    Revert(RolloutWatchStatus),
}

/// Judges one watch.
pub fn judge(
    name: &str,
    spec: &RolloutWatchSpec,
    status: &RolloutWatchStatus,
    around: &Circumstances<'_>,
    facts: &mut Facts,
) -> Step {
    let mut look = Look { name, spec, around, status: status.clone(), facts };
    match look.step() {
        None => Step::Ask,
        Some(Next::Fetch) => Step::Fetch,
        Some(Next::Keep) => Step::Keep(look.status),
        Some(Next::Revert) => Step::Revert(look.status),
    }
}

/// Takes note of the intent to push a revert: it is written before the push, and counts whatever comes of it.
pub fn intend(status: &mut RolloutWatchStatus, commit: &str, branch: &str, now: Timestamp) {
    let revert = status.revert.get_or_insert_default();
    commit.clone_into(&mut revert.commit);
    branch.clone_into(&mut revert.branch);
    revert.intended.get_or_insert(now);
    revert.attempts += 1;
    revert.problem = String::new();
}

/// Takes note that no revert can be made: a person is called.
pub fn cannot_revert(status: &mut RolloutWatchStatus, why: &str, now: Timestamp) {
    status.phase = Phase::RevertFailed;
    status.since = Some(now);
    status.ended = Some(now);
    status.message = format!("{}; no revert could be made: {why}", status.message);
}

impl Look<'_> {
    fn step(&mut self) -> Option<Next> {
        if self.status.ended.is_some() {
            return Some(Next::Keep);
        }
        if self.status.since.is_none() {
            self.status.since = self.spec.seen.or(Some(self.around.now));
        }
        if !self.spec.problem.is_empty() {
            let problem = self.spec.problem.clone();
            return Some(self.end(Phase::Malformed, problem));
        }
        let now = self.around.now;
        let before = self.status.looked.or(self.spec.seen).unwrap_or(now);
        let passed = now.duration_since(before).max(SignedDuration::ZERO);
        self.status.looked = Some(now);
        let missed = passed > self.around.gap;
        let Some(tip) = self.around.tip else {
            self.lose(passed);
            return Some(Next::Keep);
        };
        if self.status.phase == Phase::Reverted {
            return self.follow(tip, passed, missed);
        }
        if let Some(next) = self.settled_in_git(tip)? {
            return Some(next);
        }
        if !self.around.readable {
            self.lose(passed);
            return Some(Next::Keep);
        }
        let Some(observed) = self.around.applications.get(&self.spec.application) else {
            self.lose(passed);
            return Some(self.gone());
        };
        self.status.gone = None;
        let view = observed.view.clone();
        if self.status.application_uid.is_empty() {
            self.status.application_uid.clone_from(&view.uid);
        } else if self.status.application_uid != view.uid {
            let text = format!("{} was deleted and made anew", self.spec.application);
            return Some(self.end(Phase::Superseded, text));
        }
        // A fast deployment may be over before the commit was fetched.
        if !self.around.fresh && self.unknown_revision(&view)? {
            return Some(Next::Fetch);
        }
        if self.status.before.is_none() {
            let earlier = observed.earlier(&self.spec.repository, &self.spec.commit, self.facts)?;
            if let Some(earlier) = earlier {
                self.status.before = Some(self.before(&earlier)?);
            }
        }
        if self.status.reached.is_none()
            && let Some(next) = self.wait(&view, passed, missed)?
        {
            return Some(next);
        }
        self.judge_deployed(&view, tip, passed, missed)
    }
}
