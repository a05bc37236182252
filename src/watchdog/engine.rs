//! One cycle after another: fetch, read new commits, judge every watch that is not over, act.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    history::answer,
    remote::Remote,
    store::{Kept, KeptRepository, Store, Written},
};
use cascade_guard_core::{
    policy::StatusCondition,
    watchdog::{
        Applications, Circumstances, Phase, RolloutWatchStatus, Settings, Step,
        circuit::openings,
        facts::{Answer, Facts, Question},
        judge::{Sibling, judge},
        repository,
        schema::{Opening, repository_name},
        updaters::ImageUpdater,
    },
};

/// So many rounds of questions one look may need.
const MAX_ROUNDS: usize = 200;
/// So many answers are kept for one repository.
const MAX_FACTS: usize = 50_000;
/// A repository that cannot be reached is tried again after this long at the latest.
const MAX_PAUSE: Duration = Duration::from_secs(600);

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

/// One repository at work.
#[derive(Debug)]
pub(super) struct Place {
    pub remote: Remote,
    pub facts: Facts,
    pub kept: KeptRepository,
    /// Whether it was fetched in this cycle.
    pub fresh: bool,
    /// Why it cannot be reached; `None` if it can.
    pub trouble: Option<String>,
    failures: u32,
    not_before: Option<Instant>,
}

/// The watchdog without its surroundings.
#[derive(Debug)]
pub struct Engine<S> {
    /// Where watches are kept.
    pub store: S,
    /// What is known of the cluster.
    pub seen: Arc<Mutex<Seen>>,
    pub(super) settings: Arc<Settings>,
    folder: PathBuf,
    pub(super) places: BTreeMap<String, Place>,
    pub(super) watches: BTreeMap<String, Kept>,
    loaded: bool,
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
        Self { store, seen, settings, folder, places: BTreeMap::new(), watches: BTreeMap::new(), loaded: false }
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
            self.watches = watches.into_iter().map(|kept| (kept.name.clone(), kept)).collect();
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
        }
        if fetch {
            self.tidy(now).await?;
        }
        self.write_repositories(now).await
    }

    /// Opens what the configuration names and is not open, and reads what people wrote.
    async fn open_places(&mut self) -> anyhow::Result<()> {
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
        match place.remote.fetch().await {
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
                    holds_lease: lease().is_some(),
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

    /// Keeps a new status; tells people where the phase changed or the watch is over.
    pub(super) async fn keep(
        &mut self,
        name: &str,
        status: RolloutWatchStatus,
        report: &mut Report,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let Some(kept) = self.watches.get_mut(name) else { return Ok(()) };
        let old = std::mem::replace(&mut kept.status, status);
        let settled = |status: &RolloutWatchStatus| RolloutWatchStatus { looked: None, unjudged: 0, ..status.clone() };
        let quiet = kept.version_looked(&old, now, gap(&self.settings));
        if settled(&old) == settled(&kept.status) && quiet {
            // Only the time of the look changed; that is written from time to time.
            kept.status.looked = old.looked;
            kept.status.unjudged = old.unjudged;
            return Ok(());
        }
        let (old_phase, old_end) = (old.phase, old.ended);
        if !self.write(name).await? {
            return Ok(());
        }
        let Some(kept) = self.watches.get(name) else { return Ok(()) };
        if kept.status.phase != old_phase || kept.status.ended != old_end {
            let status = &kept.status;
            if status.phase.is_final() {
                tracing::info!(
                    watch = name,
                    app = %kept.spec.application,
                    commit = kept.spec.commit,
                    mode = kept.spec.mode.as_str(),
                    verdict = status.phase.as_str(),
                    unmet = status.unmet.join(","),
                    message = status.message,
                    "verdict"
                );
                report.verdicts.push(kept.clone());
            }
            self.store.tell(kept).await;
        }
        Ok(())
    }

    /// Writes the status of a watch; `false` if the watch is gone. That somebody else wrote it is an error: then everything
    /// has to be read again.
    pub(super) async fn write(&mut self, name: &str) -> anyhow::Result<bool> {
        let Some(kept) = self.watches.get_mut(name) else { return Ok(false) };
        match self.store.write(kept).await.with_context(|| format!("RolloutWatch {name} cannot be written"))? {
            Written::Done(version) => {
                kept.version = version;
                Ok(true)
            }
            Written::Gone => {
                self.watches.remove(name);
                Ok(false)
            }
            Written::Stale => anyhow::bail!("RolloutWatch {name} was written by somebody else"),
        }
    }

    /// Removes watches that ended long ago.
    async fn tidy(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let mut ended: BTreeMap<_, Vec<(Timestamp, String)>> = BTreeMap::new();
        for kept in self.watches.values() {
            if let Some(end) = kept.status.ended {
                ended.entry(kept.spec.application.clone()).or_default().push((end, kept.name.clone()));
            }
        }
        for mut watches in ended.into_values() {
            watches.sort_by(|left, right| right.cmp(left));
            for (end, name) in watches.into_iter().skip(self.settings.spec.keep.last) {
                if now.duration_since(end) > self.settings.keep {
                    self.store.remove(&name).await?;
                    self.watches.remove(&name);
                }
            }
        }
        Ok(())
    }

    async fn write_repositories(&mut self, now: Timestamp) -> anyhow::Result<()> {
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

    /// Applications that a watch is about or that lie below one.
    pub fn concerned(&self) -> BTreeSet<String> {
        let active = self.watches.values().filter(|kept| kept.status.ended.is_none());
        active.map(|kept| kept.spec.application.to_string()).collect()
    }
}

impl Kept {
    /// Whether what is stored about the last look is still new enough.
    fn version_looked(&self, stored: &RolloutWatchStatus, now: Timestamp, gap: SignedDuration) -> bool {
        stored.looked.is_some_and(|looked| now.duration_since(looked) < gap / 3)
    }
}

/// Longer than this between two looks means that nobody looked.
fn gap(settings: &Settings) -> SignedDuration {
    (settings.fetch_interval * 4).max(SignedDuration::from_secs(120))
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
