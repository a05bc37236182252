//! New commits: what they ask for becomes a watch.

use anyhow::Context as _;
use jiff::Timestamp;

use super::{
    engine::Engine,
    history::{Candidate, answer, candidates},
    store::Store,
};
use cascade_guard_core::watchdog::{
    facts::{Answer, Question},
    repository,
    schema::{RolloutWatchSpec, malformed_name, watch_name},
    trailer::{Malformed, Message, Wish, wishes},
    view::is_of,
};

impl<S: Store> Engine<S> {
    /// Reads the commits of every branch that are newer than those read last. The first look starts at the tip.
    pub(super) async fn read_commits(&mut self, place_name: &str, now: Timestamp) -> anyhow::Result<()> {
        let branches = self.places[place_name].remote.repository.branches.clone();
        for branch in branches {
            let place = &self.places[place_name];
            let Some(tip) = place.remote.tip(&branch).map(str::to_owned) else { continue };
            let cursor = place.kept.status.cursors.get(&branch).cloned();
            if cursor.as_ref() == Some(&tip) {
                continue;
            }
            if let Some(cursor) = cursor {
                let question = Question::Contains { revision: tip.clone(), commit: cursor.clone() };
                if answer(place.remote.git(), &question).await == Answer::Is(true) {
                    let keys = &self.settings.spec.trailer_keys;
                    let found = candidates(place.remote.git(), Some(&cursor), &tip, keys).await;
                    for candidate in found.with_context(|| format!("the commits of {branch} cannot be read"))? {
                        self.watch(place_name, &branch, &candidate, now).await?;
                    }
                } else {
                    tracing::warn!(
                        repository = place_name,
                        branch,
                        cursor,
                        tip,
                        "the branch was rewritten; commits are read from its tip on"
                    );
                }
            } else {
                tracing::info!(repository = place_name, branch, tip, "commits are read from here on");
            }
            let Some(place) = self.places.get_mut(place_name) else { return Ok(()) };
            place.kept.status.cursors.insert(branch, tip);
            // Only now: the watches are made, so that a crash loses none, and one that is there is not made again.
            self.store.write_repository(&place.kept).await.context("a WatchedRepository cannot be written")?;
        }
        Ok(())
    }

    async fn watch(
        &mut self,
        place_name: &str,
        branch: &str,
        candidate: &Candidate,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let namespace = self.settings.spec.argocd_namespace.clone();
        let message = Message { text: &candidate.text, trailers: &candidate.trailers };
        let url = repository::without_credentials(&self.places[place_name].remote.repository.url);
        let found = wishes(message, &self.settings.spec.trailer_keys, &namespace);
        for (index, wish) in found.into_iter().enumerate() {
            let spec = RolloutWatchSpec {
                repository: url.clone(),
                branch: branch.to_owned(),
                commit: candidate.commit.clone(),
                seen: Some(now),
                ..RolloutWatchSpec::default()
            };
            let spec = match wish {
                Ok(wish) if self.comes_later(place_name, branch, &wish) => continue,
                Ok(Wish { app, deadline, stable, mode, expect }) => {
                    RolloutWatchSpec { application: app, deadline, stable, mode, expect, ..spec }
                }
                Err(Malformed { app, line, problem }) => RolloutWatchSpec {
                    application: app.unwrap_or_default(),
                    problem: format!("`{line}`: {problem}"),
                    ..spec
                },
            };
            let name = if spec.application.name.is_empty() {
                malformed_name(&spec.commit, index)
            } else {
                watch_name(&spec.application, &spec.commit, &namespace)
            };
            if self.watches.contains_key(&name) {
                continue;
            }
            let kept = self.store.create(&name, &spec).await.with_context(|| format!("{name} cannot be made"))?;
            self.watches.insert(name, kept);
        }
        Ok(())
    }

    /// Whether the Application follows another branch that is watched too: the watch starts when the commit is there.
    fn comes_later(&self, place_name: &str, branch: &str, wish: &Wish) -> bool {
        let seen = self.seen.lock();
        let Some(observed) = seen.applications.get(&wish.app) else { return false };
        let remote = &self.places[place_name].remote;
        let url = &remote.repository.url;
        let of: Vec<_> = observed.view.sources.iter().filter(|source| is_of(source, url)).collect();
        let tracks = |branch: &str| of.iter().any(|source| source.tracks(branch, remote.is_default(branch)));
        !of.is_empty() && !tracks(branch) && remote.repository.branches.iter().any(|other| tracks(other))
    }
}
