//! After a revert: has it reached the cluster, and did it help?

use jiff::SignedDuration;

use super::{
    health::{Condition, condition, is_deployed},
    look::{Look, Next},
    schema::{Phase, RevertOutcome, RolloutWatchSpec},
};

impl Look<'_> {
    /// After a revert: has it reached the cluster, and did it help?
    pub(super) fn follow(&mut self, tip: &str, passed: SignedDuration, missed: bool) -> Option<Next> {
        let around = self.around;
        let Some(revert) = self.status.revert.clone() else {
            return Some(self.end(Phase::Reverted, "reverted".to_owned()));
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
        Some(self.end(Phase::Reverted, format!("reverted by commit {short}; {words}")))
    }
}
