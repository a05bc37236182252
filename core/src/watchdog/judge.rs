//! One look at one watch: from what is known and the time follows the next status, and what has to be done.

use jiff::{SignedDuration, Timestamp};

use super::{
    conditions::{Check, Failure, checks, is_replaced},
    facts::{Answer, Facts, OwnOrForeign, Question},
    health::{Condition, condition, is_deployed},
    looks::{Applications, Earlier},
    schema::{Before, Expect, Green, Opening, Phase, RevertOutcome, RolloutWatchSpec, RolloutWatchStatus},
    settings::Settings,
    updaters::ImageUpdater,
    view::View,
    watchable::unwatchable,
};
use crate::policy::StatusCondition;

/// So often a push is tried.
pub const MAX_ATTEMPTS: u32 = 3;

/// Another watch of the same commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sibling {
    /// Its name.
    pub name: String,
    /// Whether it reverted the commit.
    pub reverted: bool,
    /// Whether it is about to.
    pub intends: bool,
}

/// What is known beside the watch itself.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The configuration.
    pub settings: &'a Settings,
    /// The Applications.
    pub applications: &'a Applications,
    /// Image updaters of 1.0 and later.
    pub updaters: &'a [ImageUpdater],
    /// Whether Applications can be read at present.
    pub readable: bool,
    /// The newest commit of the branch; `None` if it is not known.
    pub tip: Option<&'a str>,
    /// The newest commit of the branch that a revert is pushed to, where that is another one and exists.
    pub revert_tip: Option<&'a str>,
    /// Whether the branch is the default one.
    pub is_default_branch: bool,
    /// Whether Git was fetched for this very look.
    pub fresh: bool,
    /// Other watches of the same commit.
    pub siblings: &'a [Sibling],
    /// Where the circuit is open.
    pub open: &'a [Opening],
    /// Whether this replica may act.
    pub holds_lease: bool,
    /// Longer than this between two looks means that nobody looked.
    pub gap: SignedDuration,
    /// The time.
    pub now: Timestamp,
}

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

enum Next {
    Fetch,
    Keep,
    Revert,
}

struct Look<'a> {
    name: &'a str,
    spec: &'a RolloutWatchSpec,
    around: &'a Circumstances<'a>,
    status: RolloutWatchStatus,
    facts: &'a mut Facts,
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
            return self.end(Phase::Malformed, problem);
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
            return self.gone();
        };
        self.status.gone = None;
        let view = observed.view.clone();
        if self.status.application_uid.is_empty() {
            self.status.application_uid.clone_from(&view.uid);
        } else if self.status.application_uid != view.uid {
            let text = format!("{} was deleted and made anew", self.spec.application);
            return self.end(Phase::Superseded, text);
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
        if self.status.reached.is_none() {
            if let Some(next) = self.wait(&view, passed, missed)? {
                return Some(next);
            }
        }
        self.judge_deployed(&view, tip, passed, missed)
    }

    /// What Git alone says: the commit is no longer there, or somebody reverted it.
    fn settled_in_git(&mut self, tip: &str) -> Option<Option<Next>> {
        match self.facts.contains(tip, &self.spec.commit)? {
            Some(true) => {}
            Some(false) => {
                let text = format!("the commit is no longer in {}", self.spec.branch);
                return Some(Some(self.end(Phase::Superseded, text)?));
            }
            None => return Some(None),
        }
        let reverts = self.reverts(tip)?;
        let intended = self.status.revert.as_ref().map_or("", |revert| &revert.commit).to_owned();
        let name = self.name;
        let is_own = |revert: &&OwnOrForeign| revert.watch == name || revert.commit == intended;
        let on_branch = reverts.iter().find(is_own).map(|revert| revert.commit.clone());
        let elsewhere = match self.around.revert_tip {
            Some(other) => self.reverts(other)?.iter().find(is_own).map(|revert| revert.commit.clone()),
            None => None,
        };
        if let Some(commit) = on_branch.or(elsewhere) {
            return Some(Some(self.reverted(&commit)));
        }
        if let Some(revert) = reverts.first() {
            let short = revert.commit.get(..10).unwrap_or(&revert.commit);
            let text = if revert.watch.is_empty() {
                format!("commit {short} reverts it")
            } else {
                format!("RolloutWatch {} reverted it with commit {short}", revert.watch)
            };
            return Some(Some(self.end(Phase::Superseded, text)?));
        }
        if let Some(sibling) = self.around.siblings.iter().find(|sibling| sibling.reverted) {
            let text = format!("RolloutWatch {} reverted it", sibling.name);
            return Some(Some(self.end(Phase::Superseded, text)?));
        }
        Some(None)
    }

    fn reverts(&mut self, tip: &str) -> Option<Vec<OwnOrForeign>> {
        let question = Question::Reverts { tip: tip.to_owned(), commit: self.spec.commit.clone() };
        Some(match self.facts.ask(question)? {
            Answer::Reverts(reverts) => reverts,
            _ => Vec::new(),
        })
    }

    /// Takes note that the revert is in the repository.
    fn reverted(&mut self, commit: &str) -> Next {
        let revert = self.status.revert.get_or_insert_default();
        commit.clone_into(&mut revert.commit);
        revert.pushed = Some(self.around.now);
        let text = format!("reverted by commit {}", commit.get(..10).unwrap_or(commit));
        self.status.unjudged = 0;
        self.enter(Phase::Reverted, text);
        Next::Keep
    }

    fn gone(&mut self) -> Option<Next> {
        let now = self.around.now;
        let since = *self.status.gone.get_or_insert(now);
        if now.duration_since(since) < self.around.settings.polling_interval {
            return Some(Next::Keep);
        }
        let app = &self.spec.application;
        let text = if self.status.application_uid.is_empty() {
            format!("there is no Application {app}")
        } else {
            format!("the Application {app} is gone")
        };
        self.end(Phase::UnknownApplication, text)
    }

    fn unknown_revision(&mut self, view: &View) -> Option<bool> {
        for deployed in [&view.comparison, &view.operation.deploys].into_iter().chain(view.history.last()) {
            if super::looks::holds(deployed, &self.spec.repository, &self.spec.commit, self.facts)?.is_none() {
                return Some(true);
            }
        }
        Some(false)
    }

    fn before(&mut self, earlier: &Earlier) -> Option<Before> {
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
    fn wait(&mut self, view: &View, passed: SignedDuration, missed: bool) -> Option<Option<Next>> {
        let around = self.around;
        if let Some(why) = unwatchable(view, &self.spec.repository, &self.spec.branch, around.is_default_branch) {
            return Some(Some(self.end(Phase::Unwatchable, why)?));
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
        Some(Some(self.end(Phase::NotReached, format!("not deployed within {} s{detail}", self.spec.deadline))?))
    }

    fn judge_deployed(&mut self, view: &View, tip: &str, passed: SignedDuration, missed: bool) -> Option<Next> {
        let (spec, around) = (self.spec, self.around);
        if is_replaced(view, spec, &self.status.deployment, self.facts)? {
            return self.end(Phase::Superseded, "what is deployed now does not contain it".to_owned());
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
                return self.end(Phase::Confirmed, format!("healthy for {} s", spec.stable));
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
        self.conclude(why, &checks)
    }

    /// It failed: what is against a revert?
    fn conclude(&mut self, why: &str, checks: &[Check]) -> Option<Next> {
        self.write_conditions(checks);
        if let Some(first) = checks.iter().find_map(|check| Some((check.name, check.against.as_ref()?))) {
            let unmet = self.status.unmet.join(", ");
            let text = format!("failed ({why}); not reverted ({unmet}): {}", first.1);
            return self.end(Phase::WouldRevert, text);
        }
        let tried = self.status.revert.as_ref().map_or(0, |revert| revert.attempts);
        if tried >= MAX_ATTEMPTS {
            return self
                .end(Phase::RevertFailed, format!("failed ({why}); the revert could not be pushed {tried} times"));
        }
        self.enter(Phase::Reached, format!("failed ({why}); to be reverted"));
        Some(Next::Revert)
    }

    fn write_conditions(&mut self, checks: &[Check]) {
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

    /// After a revert: has it reached the cluster, and did it help?
    fn follow(&mut self, tip: &str, passed: SignedDuration, missed: bool) -> Option<Next> {
        let around = self.around;
        let Some(revert) = self.status.revert.clone() else {
            return self.end(Phase::Reverted, "reverted".to_owned());
        };
        // A protected branch may have made another commit of it.
        let mut made = vec![revert.commit.clone()];
        let own = self.reverts(tip)?.into_iter().filter(|found| found.watch == self.name);
        made.extend(own.map(|found| found.commit));
        let observed = around.applications.get(&self.spec.application).filter(|_| around.readable);
        let since = revert.pushed.unwrap_or(around.now);
        if missed || observed.is_none() {
            self.lose(passed);
        }
        let mut well = None;
        if let Some(observed) = observed.filter(|observed| observed.view.uid == self.status.application_uid) {
            for commit in made {
                let spec = RolloutWatchSpec { commit, ..self.spec.clone() };
                if is_deployed(&observed.view, &spec.repository, &spec.commit, self.facts)? == Some(true) {
                    let applications = around.applications;
                    let seen = condition(&spec, &observed.view, applications, around.is_default_branch, self.facts)?;
                    well = Some(matches!(seen, Condition::Green(_)));
                }
            }
        }
        let over =
            self.judged_since(since) >= self.deadline() || around.now.duration_since(since) >= self.deadline() * 2;
        let (outcome, words) = match (well, over) {
            (Some(true), _) => (RevertOutcome::Healed, "it healed"),
            (Some(false), true) => (RevertOutcome::NotHealed, "it did not heal"),
            (None, true) => (RevertOutcome::NotSeen, "nobody saw it deployed"),
            (_, false) => return Some(Next::Keep),
        };
        if let Some(revert) = &mut self.status.revert {
            revert.outcome = outcome;
        }
        let short = revert.commit.get(..10).unwrap_or(&revert.commit);
        self.end(Phase::Reverted, format!("reverted by commit {short}; {words}"))
    }

    fn deadline(&self) -> SignedDuration {
        SignedDuration::from_secs(i64::from(self.spec.deadline))
    }

    /// How much time since then could be judged.
    fn judged_since(&self, since: Timestamp) -> SignedDuration {
        self.around.now.duration_since(since) - SignedDuration::from_millis(self.status.unjudged)
    }

    /// Time that is not held against the commit.
    fn lose(&mut self, passed: SignedDuration) {
        let passed = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        self.status.unjudged = self.status.unjudged.saturating_add(passed);
    }

    fn enter(&mut self, phase: Phase, message: String) {
        if self.status.phase != phase {
            self.status.since = Some(self.around.now);
        }
        self.status.phase = phase;
        self.status.message = message;
    }

    fn end(&mut self, phase: Phase, message: String) -> Option<Next> {
        self.enter(phase, message);
        self.status.ended = Some(self.around.now);
        Some(Next::Keep)
    }
}
