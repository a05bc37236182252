//! Makes and pushes a revert. Its object id is written down before the push; nothing is pushed that was not.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    engine::{Engine, Lease, Report},
    history::answer,
    remote::{Pushed, Revert, Unmade},
    store::Store,
};
use cascade_guard_core::watchdog::{
    RolloutWatchStatus,
    facts::{Answer, Question},
    judge::{cannot_revert, intend},
    message::{Reverting, message},
};

/// A push is not begun with less time than this, and is ended before the lease is.
const LEAST: Duration = Duration::from_secs(1);
/// A push takes at most so long.
const MOST: Duration = Duration::from_secs(60);

impl<S: Store> Engine<S> {
    /// Reverts a commit. Whether the watch has to be judged again at once: it was pushed, or the branch moved.
    pub(super) async fn revert(
        &mut self,
        name: &str,
        place_name: &str,
        mut status: RolloutWatchStatus,
        now: Timestamp,
        lease: Lease<'_>,
        report: &mut Report,
    ) -> anyhow::Result<bool> {
        let (Some(kept), Some(place)) = (self.watches.get(name), self.places.get(place_name)) else { return Ok(false) };
        let spec = kept.spec.clone();
        let remote = &place.remote;
        let Some(tip) = remote.tip(&spec.branch).map(str::to_owned) else { return Ok(false) };
        let (subject, parents) = remote.subject(&spec.commit).await?;
        let Answer::Change(change) = answer(remote.git(), &Question::Change(spec.commit.clone())).await else {
            return Ok(false);
        };
        let text = {
            let seen = self.seen.lock();
            let view =
                seen.applications.get(&spec.application).map(|observed| observed.view.clone()).unwrap_or_default();
            message(&Reverting {
                watch: name,
                spec: &spec,
                status: &status,
                subject: &subject,
                merged: parents.get(1).map(String::as_str),
                operation: &view.operation.message,
                ill: &view.ill,
            })
        };
        let identity = &self.settings.spec.identity;
        let merge = parents.len() > 1;
        let revert = Revert { commit: &spec.commit, tip: &tip, paths: &change.paths, merge, message: &text, identity };
        let made = remote.revert(&revert).await?;
        let commit = match made {
            Ok(commit) => commit,
            Err(unmade) => {
                let why = match unmade {
                    Unmade::Conflict(why) => format!("it conflicts with what came after ({why})"),
                    Unmade::Nothing => "it would change nothing".to_owned(),
                };
                cannot_revert(&mut status, &why, now);
                self.keep(name, status, report, now).await?;
                return Ok(false);
            }
        };
        let own = remote.revert_branch(&spec.commit);
        let branch = own.clone().unwrap_or_else(|| spec.branch.clone());
        // A branch for the revert must not be there yet.
        let expected = if own.is_some() { String::new() } else { tip.clone() };
        if left(lease).is_none() {
            return Ok(false);
        }
        intend(&mut status, &commit, &branch, now);
        if let Some(kept) = self.watches.get_mut(name) {
            kept.status = status;
        }
        if !self.write(name).await? {
            return Ok(false);
        }
        self.write_open().await?;
        // The time that is left of the lease bounds the push: it is over before somebody else may act.
        let Some(left) = left(lease) else {
            if let Some(revert) = self.watches.get_mut(name).and_then(|kept| kept.status.revert.as_mut()) {
                revert.attempts -= 1;
            }
            return Ok(false);
        };
        tracing::info!(watch = name, commit, branch, "pushing a revert");
        let pushed = self.places[place_name].remote.push(&commit, &branch, &expected, left.min(MOST)).await;
        let problem = match pushed {
            Ok(Pushed::Done) => None,
            Ok(Pushed::Moved) => Some("the branch had moved".to_owned()),
            Ok(Pushed::Refused(why)) => Some(why),
            Err(error) => Some(format!("{error:#}")),
        };
        let done = problem.is_none();
        if let Some(problem) = problem {
            tracing::warn!(watch = name, problem, "the revert was not pushed");
            if let Some(kept) = self.watches.get_mut(name)
                && let Some(revert) = &mut kept.status.revert
            {
                revert.problem = problem;
            }
            self.write(name).await?;
        }
        // Only what a fetch brings back is in the repository. What was refused because the branch moved is judged again at
        // once, whatever the server called it.
        let fetched = self.fetch(place_name, true).await;
        let moved = self.places[place_name].remote.tip(&spec.branch) != Some(&tip);
        Ok(fetched && (done || moved))
    }

    /// The circuit may have been opened by the intent; that is written before the push as well.
    async fn write_open(&mut self) -> anyhow::Result<()> {
        let open = self.open();
        for place in self.places.values_mut() {
            if place.kept.status.open != open {
                place.kept.status.open.clone_from(&open);
                self.store.write_repository(&place.kept).await?;
            }
        }
        Ok(())
    }
}

/// How long the lease is still held, if that is enough to act.
fn left(lease: Lease<'_>) -> Option<Duration> {
    lease().map(|until| until.saturating_duration_since(Instant::now())).filter(|left| *left >= LEAST)
}
