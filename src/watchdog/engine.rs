//! One cycle after another: fetch, read new commits, judge every watch that is not over, act.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    history::answer,
    place::Place,
    store::{Kept, Store},
};
use cascade_guard_core::watchdog::{
    Applications, Circumstances, Phase, Settings, Step,
    circuit::openings,
    circumstances::Sibling,
    facts::{Answer, Question},
    judge::judge,
    repository,
    schema::{Opening, repository_name},
    updaters::ImageUpdater,
};

/// So many rounds of questions one look may need.
const MAX_ROUNDS: usize = 200;
/// What is known of the cluster, kept up to date by watches.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Applications.
    pub applications: Applications,
    /// Image updaters of 1.0 and later.
    pub updaters: Vec<ImageUpdater>,
    /// Why Applications cannot be read at present; `None` if they can.
    pub unreadable: Option<String>,
}

/// Until when this replica may act. `None`: it may not.
pub type Lease<'a> = &'a (dyn Fn() -> Option<Instant> + Send + Sync);

/// Called whenever there is progress.
pub type Progress = Arc<dyn Fn() + Send + Sync>;

/// The watchdog without its surroundings.
pub struct Engine<S> {
    /// Where watches are kept.
    pub store: S,
    /// What is known of the cluster.
    pub seen: Arc<Mutex<Seen>>,
    pub(super) settings: Arc<Settings>,
    pub(super) folder: PathBuf,
    pub(super) places: BTreeMap<String, Place>,
    pub(super) watches: BTreeMap<String, Kept>,
    pub(super) loaded: bool,
    pub(super) progress: Progress,
}

/// What a cycle did, for metrics and notifications.
#[derive(Debug, Default)]
pub struct Report {
    /// Watches that came to a verdict, and reverts that were looked after to the end.
    pub verdicts: Vec<Kept>,
    /// Repositories that could not be fetched.
    pub fetch_failures: u64,
}

impl<S: Store> Engine<S> {
    /// An engine whose caches lie in `folder`.
    pub fn new(store: S, seen: Arc<Mutex<Seen>>, settings: Arc<Settings>, folder: PathBuf) -> Self {
        Self {
            store,
            seen,
            settings,
            folder,
            places: BTreeMap::new(),
            watches: BTreeMap::new(),
            loaded: false,
            progress: Arc::new(|| ()),
        }
    }

    /// The same, which tells of its progress.
    #[must_use]
    pub fn with_progress(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Puts another configuration in force.
    pub fn reconfigure(&mut self, settings: Arc<Settings>) {
        let changed =
            |place: &Place| settings.spec.repositories.iter().all(|repository| *repository != place.remote.repository);
        self.places.retain(|_, place| !changed(place));
        self.settings = settings;
    }

    /// Forgets what was read: another replica may have written since.
    pub fn forget(&mut self) {
        self.loaded = false;
    }

    /// All watches, by name.
    pub fn watches(&self) -> &BTreeMap<String, Kept> {
        &self.watches
    }

    /// Where the circuit is open.
    pub fn open(&self) -> Vec<Opening> {
        let closings: Vec<_> = self.places.values().flat_map(|place| place.kept.spec.closed.clone()).collect();
        let stored: Vec<_> = self.places.values().flat_map(|place| place.kept.status.open.clone()).collect();
        let watches = self.watches.values().map(|kept| (&kept.spec, &kept.status));
        openings(watches, &closings, &stored, self.settings.spec.circuit)
    }

    /// Why each repository that cannot be reached cannot.
    pub fn troubles(&self) -> Vec<(String, String)> {
        let trouble = |place: &Place| {
            let url = repository::without_credentials(&place.remote.repository.url);
            Some((url, place.trouble.clone()?))
        };
        self.places.values().filter_map(trouble).collect()
    }

    /// One cycle: with a fetch of every repository that is due, or of what has happened in the cluster alone.
    ///
    /// # Errors
    /// When the store cannot be read or written; the next cycle goes on from what is stored.
    pub async fn cycle(&mut self, fetch: bool, now: Timestamp, lease: Lease<'_>) -> anyhow::Result<Report> {
        let mut report = Report::default();
        if lease().is_none() {
            self.loaded = false;
            return Ok(report);
        }
        let outcome = self.work(fetch, now, lease, &mut report).await;
        if outcome.is_err() {
            self.loaded = false;
        }
        outcome.map(|()| report)
    }

    async fn work(&mut self, fetch: bool, now: Timestamp, lease: Lease<'_>, report: &mut Report) -> anyhow::Result<()> {
        if !self.loaded {
            let watches = self.store.watches().await.context("RolloutWatches cannot be read")?;
            let stored = |kept: Kept| Kept { stored: kept.status.looked, ..kept };
            self.watches = watches.into_iter().map(|kept| (kept.name.clone(), stored(kept))).collect();
        }
        self.open_places().await?;
        self.loaded = true;
        for place in self.places.values_mut() {
            place.fresh = false;
        }
        if fetch {
            let names: Vec<String> = self.places.keys().cloned().collect();
            for name in names {
                if !self.fetch(&name, false).await {
                    report.fetch_failures += 1;
                    continue;
                }
                if lease().is_none() {
                    return Ok(());
                }
                self.read_commits(&name, now).await?;
            }
        }
        let active: Vec<String> =
            self.watches.values().filter(|kept| kept.status.ended.is_none()).map(|kept| kept.name.clone()).collect();
        for name in active {
            if lease().is_none() {
                return Ok(());
            }
            self.look(&name, now, lease, report).await?;
            (self.progress)();
        }
        if fetch {
            self.tidy(now).await?;
        }
        self.write_repositories(now).await
    }

    /// Judges one watch, and does what follows.
    async fn look(&mut self, name: &str, now: Timestamp, lease: Lease<'_>, report: &mut Report) -> anyhow::Result<()> {
        let Some(place_name) = self.place_of(name) else { return Ok(()) };
        let mut open = self.open();
        let mut fetched = self.places[&place_name].fresh;
        for _ in 0..MAX_ROUNDS {
            let Some(kept) = self.watches.get(name).cloned() else { return Ok(()) };
            let siblings = self.siblings(&kept);
            let revert_tip = match &kept.status.revert {
                Some(_) => self.places[&place_name].remote.revert_tip(&kept.spec.commit).await,
                None => None,
            };
            // Whoever does not lead judges nothing: the lease is no reason that a watch ends with.
            if lease().is_none() {
                return Ok(());
            }
            let step = {
                let seen = self.seen.lock();
                let Some(place) = self.places.get_mut(&place_name) else { return Ok(()) };
                let around = Circumstances {
                    settings: &self.settings,
                    applications: &seen.applications,
                    updaters: &seen.updaters,
                    readable: seen.unreadable.is_none(),
                    tip: place.remote.tip(&kept.spec.branch),
                    revert_tip: revert_tip.as_deref(),
                    is_default_branch: place.remote.is_default(&kept.spec.branch),
                    fresh: fetched,
                    siblings: &siblings,
                    open: &open,
                    holds_lease: true,
                    gap: gap(&self.settings),
                    now,
                };
                judge(name, &kept.spec, &kept.status, &around, &mut place.facts)
            };
            match step {
                Step::Ask => self.answer(&place_name).await,
                Step::Fetch => {
                    if !self.fetch(&place_name, false).await {
                        // Without Git there is no verdict.
                        return Ok(());
                    }
                    self.read_commits(&place_name, now).await?;
                    fetched = true;
                }
                Step::Keep(_) if lease().is_none() => return Ok(()),
                Step::Keep(status) => return self.keep(name, status, report, now).await,
                Step::Revert(status) => {
                    if !self.revert(name, &place_name, status, now, lease, report).await? {
                        return Ok(());
                    }
                    open = self.open();
                    fetched = self.places[&place_name].fresh;
                }
            }
        }
        anyhow::bail!("the judgement of {name} asks without end")
    }

    pub(super) fn place_of(&self, name: &str) -> Option<String> {
        let wanted = &self.watches.get(name)?.spec.repository;
        let place = repository_name(wanted);
        self.places.contains_key(&place).then_some(place)
    }

    async fn answer(&mut self, place: &str) {
        let Some(place) = self.places.get_mut(place) else { return };
        let open: Vec<Question> = place.facts.open.iter().cloned().collect();
        for question in open {
            let answered = match &question {
                Question::Removal(objects) => {
                    self.store.against_removal(objects).await.map_or(Answer::Unknown, Answer::Removal)
                }
                other => answer(place.remote.git(), other).await,
            };
            place.facts.answer(question, answered);
        }
    }

    fn siblings(&self, kept: &Kept) -> Vec<Sibling> {
        let same = |other: &&Kept| {
            other.name != kept.name
                && other.spec.commit == kept.spec.commit
                && repository::same(&other.spec.repository, &kept.spec.repository)
        };
        let sibling = |other: &Kept| Sibling {
            name: other.name.clone(),
            reverted: other.status.phase == Phase::Reverted,
            intends: other.status.revert.is_some()
                && other.status.ended.is_none()
                && other.status.phase != Phase::Reverted,
        };
        self.watches.values().filter(same).map(sibling).collect()
    }
}

/// Longer than this between two looks means that nobody looked.
pub(super) fn gap(settings: &Settings) -> SignedDuration {
    (settings.fetch_interval * 4).max(SignedDuration::from_secs(120))
}
