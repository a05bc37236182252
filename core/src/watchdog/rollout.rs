//! From a commit that is not deployed yet to the verdict on it.

use jiff::SignedDuration;

use super::{
    conditions::{Check, Failure, checks, is_replaced},
    facts::Asked,
    health::{Condition, condition, is_deployed},
    look::{Look, Next},
    looks::{Applications, Earlier},
    schema::{Before, Expect, Green, Phase},
    view::View,
    watchable::unwatchable,
};
use crate::policy::StatusCondition;

/// So often a push is tried.
const MAX_ATTEMPTS: u32 = 3;

impl Look<'_> {
    pub(super) fn before(&mut self, earlier: &Earlier) -> Option<Before> {
        let mut before = Before { application: earlier.state.clone(), ..Before::default() };
        if self.spec.expect == Expect::Children {
            let applications: &Applications = self.around.applications;
            let mut open: Vec<_> = earlier.children.to_vec();
            while let Some(child) = open.pop() {
                let Some(observed) = applications.get(&child) else { continue };
                let name = child.to_string();
                if before.children.contains_key(&name) {
                    continue;
                }
                let state = observed.child_at(earlier.at, &self.spec.repository, &self.spec.commit, self.facts)?;
                if let Some(state) = state {
                    before.children.insert(name, state);
                    open.extend(observed.view.children.iter().cloned());
                }
            }
        }
        Some(before)
    }

    /// Until the commit is deployed. `Some(None)` when it is.
    pub(super) fn wait(&mut self, view: &View, passed: SignedDuration, missed: bool) -> Asked<Option<Next>> {
        let around = self.around;
        if let Some(why) = unwatchable(view, &self.spec.repository, &self.spec.branch, around.is_default_branch) {
            return Some(Some(self.end(Phase::Unwatchable, why)));
        }
        if missed {
            self.lose(passed);
        }
        if is_deployed(view, &self.spec.repository, &self.spec.commit, self.facts)? == Some(true) {
            self.status.reached = Some(around.now);
            self.status.unjudged = 0;
            self.status.deployment = view.history.last().map(|last| last.key.clone()).unwrap_or_default();
            self.enter(Phase::Reached, "deployed; not well yet".to_owned());
            return Some(None);
        }
        let seen = self.spec.seen.unwrap_or(around.now);
        if self.judged_since(seen) < self.deadline() {
            let why = view.distrust.clone().unwrap_or_else(|| "not deployed yet".to_owned());
            self.enter(Phase::Waiting, why);
            return Some(Some(Next::Keep));
        }
        if !around.fresh {
            return Some(Some(Next::Fetch));
        }
        let detail = match (&view.distrust, view.operation.phase.as_str()) {
            (Some(why), _) => format!(": {why}"),
            (None, "Failed" | "Error") => format!(": {}", view.operation.message),
            _ => String::new(),
        };
        Some(Some(self.end(Phase::NotReached, format!("not deployed within {} s{detail}", self.spec.deadline))))
    }

    pub(super) fn judge_deployed(
        &mut self,
        view: &View,
        tip: &str,
        passed: SignedDuration,
        missed: bool,
    ) -> Option<Next> {
        let (spec, around) = (self.spec, self.around);
        if is_replaced(view, spec, &self.status.deployment, self.facts)? {
            return Some(self.end(Phase::Superseded, "what is deployed now does not contain it".to_owned()));
        }
        let reached = self.status.reached.unwrap_or(around.now);
        let condition = condition(spec, view, around.applications, around.is_default_branch, self.facts)?;
        if missed || matches!(condition, Condition::Unjudged(_)) {
            self.lose(passed);
        }
        if let Condition::Green(transition) = condition {
            let began = self.status.green.as_ref().filter(|green| green.transition >= transition);
            let since = began.and_then(|green| green.since).unwrap_or(around.now);
            self.status.green = Some(Green { since: Some(since), transition });
            let stable = SignedDuration::from_secs(i64::from(spec.stable));
            if around.now.duration_since(since) >= stable {
                return Some(self.end(Phase::Confirmed, format!("healthy for {} s", spec.stable)));
            }
            self.enter(Phase::Stabilizing, "healthy; it has to stay so".to_owned());
            return Some(Next::Keep);
        }
        self.status.green = None;
        let (Condition::Ill(why) | Condition::Unclear(why) | Condition::Unjudged(why)) = &condition else {
            return Some(Next::Keep);
        };
        let judged = self.judged_since(reached) >= self.deadline();
        let exhausted = around.now.duration_since(reached) >= self.deadline() * 2;
        let unjudged = matches!(condition, Condition::Unjudged(_));
        if (!judged || unjudged) && !exhausted {
            self.enter(Phase::Reached, why.clone());
            return Some(Next::Keep);
        }
        if !around.fresh {
            return Some(Next::Fetch);
        }
        // Another watch is about to revert this commit; what comes of that will be seen.
        if around.siblings.iter().any(|sibling| sibling.intends) {
            return Some(Next::Keep);
        }
        let status = self.status.clone();
        let failure = Failure { spec, status: &status, view, tip, condition: &condition, judged };
        let checks = checks(&failure, around, self.facts)?;
        Some(self.conclude(why, &checks))
    }

    /// It failed: what is against a revert?
    pub(super) fn conclude(&mut self, why: &str, checks: &[Check]) -> Next {
        self.write_conditions(checks);
        if let Some(first) = checks.iter().find_map(|check| Some((check.name, check.against.as_ref()?))) {
            let unmet = self.status.unmet.join(", ");
            let text = format!("failed ({why}); not reverted ({unmet}): {}", first.1);
            return self.end(Phase::WouldRevert, text);
        }
        let tried = self.status.revert.as_ref().map_or(0, |revert| revert.attempts);
        if tried >= MAX_ATTEMPTS {
            let problem = self.status.revert.as_ref().map_or("", |revert| &revert.problem);
            let text = format!("failed ({why}); the revert could not be pushed {tried} times: {problem}");
            return self.end(Phase::RevertFailed, text);
        }
        self.enter(Phase::Reached, format!("failed ({why}); to be reverted"));
        Next::Revert
    }

    pub(super) fn write_conditions(&mut self, checks: &[Check]) {
        let old = std::mem::take(&mut self.status.conditions);
        let against = |check: &Check| check.against.clone();
        self.status.unmet =
            checks.iter().filter(|check| check.against.is_some()).map(|check| check.name.to_owned()).collect();
        self.status.conditions = checks
            .iter()
            .map(|check| {
                let status = if check.against.is_none() { "True" } else { "False" };
                let since = old.iter().find(|old| old.kind == check.name && old.status == status);
                StatusCondition {
                    kind: check.name.to_owned(),
                    status: status.to_owned(),
                    reason: if check.against.is_none() { "Met" } else { "NotMet" }.to_owned(),
                    message: against(check).unwrap_or_default(),
                    last_transition_time: since
                        .map_or_else(|| self.around.now.to_string(), |old| old.last_transition_time.clone()),
                }
            })
            .collect();
    }
}
