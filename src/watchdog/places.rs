//! The repositories at work: opened, fetched, and what is said about them.

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::time::Instant;

use super::{engine::Engine, place::Place, remote::Remote, store::Store};
use cascade_guard_core::{
    policy::StatusCondition,
    watchdog::{facts::Facts, repository, schema::repository_name},
};

/// So many answers are kept for one repository.
const MAX_FACTS: usize = 50_000;
/// A repository that cannot be reached is tried again after this long at the latest.
const MAX_PAUSE: Duration = Duration::from_secs(600);

/// How often a fetch that goes on counts as progress.
const BEAT: Duration = Duration::from_secs(10);

impl<S: Store> Engine<S> {
    /// Opens what the configuration names and is not open, and reads what people wrote.
    pub(super) async fn open_places(&mut self) -> anyhow::Result<()> {
        let stored = self.store.repositories().await.context("WatchedRepositories cannot be read")?;
        for repository in self.settings.spec.repositories.clone() {
            let name = repository_name(&repository.url);
            let found = stored.iter().find(|kept| kept.name == name).cloned();
            if let Some(place) = self.places.get_mut(&name) {
                match found {
                    Some(found) if !self.loaded => place.kept = found,
                    Some(found) => place.kept.spec = found.spec,
                    None => {}
                }
                continue;
            }
            let mut kept = found.unwrap_or_default();
            kept.name.clone_from(&name);
            kept.spec.url = repository::without_credentials(&repository.url);
            let remote = Remote::open(&self.folder, repository).await?;
            let place = Place {
                remote,
                facts: Facts::default(),
                kept,
                fresh: false,
                trouble: None,
                failures: 0,
                not_before: None,
            };
            self.places.insert(name, place);
        }
        Ok(())
    }

    /// Fetches one repository; whether it is as new as can be now.
    pub(super) async fn fetch(&mut self, name: &str, at_once: bool) -> bool {
        let interval = Duration::try_from(self.settings.fetch_interval).unwrap_or(Duration::from_secs(30));
        let Some(place) = self.places.get_mut(name) else { return false };
        if !at_once && place.not_before.is_some_and(|time| Instant::now() < time) {
            return false;
        }
        let tips: Vec<Option<String>> =
            place.remote.repository.branches.iter().map(|b| place.remote.tip(b).map(str::to_owned)).collect();
        let progress = self.progress.clone();
        let beating = async {
            loop {
                tokio::time::sleep(BEAT).await;
                progress();
            }
        };
        let fetched = tokio::select! {
            fetched = place.remote.fetch() => fetched,
            never = beating => never,
        };
        match fetched {
            Ok(()) => {
                if place.trouble.take().is_some() {
                    tracing::info!(repository = name, "the repository can be reached again");
                }
                place.failures = 0;
                place.not_before = None;
                place.fresh = true;
                place.facts.forget_unsettled();
                let now: Vec<Option<String>> =
                    place.remote.repository.branches.iter().map(|b| place.remote.tip(b).map(str::to_owned)).collect();
                if now != tips {
                    place.facts.forget_tips();
                }
                if place.facts.len() > MAX_FACTS {
                    place.facts = Facts::default();
                }
                true
            }
            Err(error) => {
                let why = format!("{error:#}");
                if place.trouble.is_none() {
                    tracing::error!(repository = name, error = why, "the repository cannot be reached");
                }
                place.trouble = Some(why);
                place.failures += 1;
                let pause = interval * 2u32.saturating_pow(place.failures.min(8) - 1);
                place.not_before = Some(Instant::now() + pause.min(MAX_PAUSE));
                false
            }
        }
    }

    /// Writes what is known of the repositories, where that changed.
    pub(super) async fn write_repositories(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let open = self.open();
        for place in self.places.values_mut() {
            let mut kept = place.kept.clone();
            kept.status.open.clone_from(&open);
            kept.status.configuration.clone_from(&self.settings.digest);
            env!("CARGO_PKG_VERSION").clone_into(&mut kept.status.build);
            kept.status.conditions = vec![reachable(place.trouble.as_deref(), &kept.status.conditions, now)];
            if kept.status != place.kept.status {
                self.store.write_repository(&kept).await.context("a WatchedRepository cannot be written")?;
                place.kept = kept;
            }
        }
        Ok(())
    }
}

fn reachable(trouble: Option<&str>, before: &[StatusCondition], now: Timestamp) -> StatusCondition {
    let (status, reason) = if trouble.is_none() { ("True", "Fetched") } else { ("False", "NotFetched") };
    let since = before.iter().find(|old| old.status == status);
    StatusCondition {
        kind: "Reachable".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: trouble.unwrap_or_default().to_owned(),
        last_transition_time: since.map_or_else(|| now.to_string(), |old| old.last_transition_time.clone()),
    }
}
