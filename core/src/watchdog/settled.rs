//! What ends a watch before anything is judged: Git says that it is settled, or the Application is gone.

use super::{
    facts::{Answer, Asked, OwnOrForeign, Question},
    look::{Look, Next},
    looks::holds,
    schema::Phase,
    view::View,
};

impl Look<'_> {
    /// What Git alone says: the commit is no longer there, or somebody reverted it.
    pub(super) fn settled_in_git(&mut self, tip: &str) -> Asked<Option<Next>> {
        match self.facts.contains(tip, &self.spec.commit)? {
            Some(true) => {}
            Some(false) => {
                let text = format!("the commit is no longer in {}", self.spec.branch);
                return Some(Some(self.end(Phase::Superseded, text)));
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
            return Some(Some(self.end(Phase::Superseded, text)));
        }
        if let Some(sibling) = self.around.siblings.iter().find(|sibling| sibling.reverted) {
            let text = format!("RolloutWatch {} reverted it", sibling.name);
            return Some(Some(self.end(Phase::Superseded, text)));
        }
        Some(None)
    }

    pub(super) fn reverts(&mut self, tip: &str) -> Option<Vec<OwnOrForeign>> {
        let question = Question::Reverts { tip: tip.to_owned(), commit: self.spec.commit.clone() };
        Some(match self.facts.ask(question)? {
            Answer::Reverts(reverts) => reverts,
            _ => Vec::new(),
        })
    }

    /// Takes note that the revert is in the repository.
    pub(super) fn reverted(&mut self, commit: &str) -> Next {
        let revert = self.status.revert.get_or_insert_default();
        commit.clone_into(&mut revert.commit);
        revert.pushed = Some(self.around.now);
        let text = format!("reverted by commit {}", commit.get(..10).unwrap_or(commit));
        self.status.unjudged = 0;
        self.enter(Phase::Reverted, text);
        Next::Keep
    }

    pub(super) fn gone(&mut self) -> Next {
        let now = self.around.now;
        let since = *self.status.gone.get_or_insert(now);
        if now.duration_since(since) < self.around.settings.polling_interval {
            return Next::Keep;
        }
        let app = &self.spec.application;
        let text = if self.status.application_uid.is_empty() {
            format!("there is no Application {app}")
        } else {
            format!("the Application {app} is gone")
        };
        self.end(Phase::UnknownApplication, text)
    }

    pub(super) fn unknown_revision(&mut self, view: &View) -> Option<bool> {
        for deployed in [&view.comparison, &view.operation.deploys].into_iter().chain(view.history.last()) {
            if holds(deployed, &self.spec.repository, &self.spec.commit, self.facts)?.is_none() {
                return Some(true);
            }
        }
        Some(false)
    }
}
