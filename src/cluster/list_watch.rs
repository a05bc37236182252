//! One watch at work: it lists, follows the changes, and lists again when the API server no longer knows the version.
//!
//! kube's own watcher does not do for a guard: it asks for ever from a version that the API server answers with 410, it
//! opens a watch that ends at once again without a pause, and it takes five minutes to notice that one has died.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use futures::StreamExt;
use jiff::Timestamp;
use kube::{
    Api, Client, Resource,
    api::{ListParams, WatchEvent, WatchParams},
    runtime::watcher::DefaultBackoff,
};
use tokio::{
    sync::watch::Receiver,
    time::{Instant, sleep, timeout},
};

use super::{
    Health, Kinds,
    client::in_words,
    failure::Failure,
    index_feed::Feed,
    watch::{Watch, WatchScope, WatchState, WatchStates},
    watched_object::WatchedObject,
};
use crate::telemetry::Metrics;
use cascade_guard_core::inventory::Names;

/// The API server sends a bookmark about every minute, and has to answer a list within one. What is silent for longer
/// than this is dead.
pub const SILENCE: Duration = Duration::from_secs(90);
/// A watch that has lasted for this long works. One that ends sooner is not opened again at once.
const STEADY: Duration = Duration::from_secs(10);
/// A page of Applications is held as text for a moment; the usual 500 of them may be tens of megabytes.
const PAGE: u32 = 100;

/// An open watch is looked after this often, to see whether the API server is still heard of at all.
const LOOK: Duration = Duration::from_secs(1);
/// An API server answers at once that it begins a watch.
const OPENING: Duration = Duration::from_secs(15);

/// What claims are made of is never tried again later than this after the last time, however long the API server is away.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Follows one watch for ever.
pub(super) struct ListWatch {
    pub(super) watch: Watch,
    pub(super) client: Client,
    pub(super) kinds: Arc<Kinds>,
    pub(super) scope: Receiver<WatchScope>,
    pub(super) feed: Box<dyn Feed>,
    pub(super) states: Arc<WatchStates>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) health: Arc<Health>,
    pub(super) silence: Duration,
    pub(super) trouble: Option<String>,
}

impl ListWatch {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        if self.watch.only_metadata() { self.follow::<true>().await } else { self.follow::<false>().await }
    }

    async fn follow<const ONLY_METADATA: bool>(mut self) -> anyhow::Result<()> {
        let (watch, mut scopes) = (self.watch, self.scope.clone());
        loop {
            let scope = scopes.borrow_and_update().clone();
            let mine = watch.part_of(&scope);
            let api = watch.api::<ONLY_METADATA>(self.client.clone(), &scope);
            tokio::select! {
                never = self.keep_up(&api) => match never {},
                changed = async { scopes.wait_for(|scope| watch.part_of(scope) != mine).await.map(|_| ()) } => changed?,
            }
        }
    }

    async fn keep_up<const ONLY_METADATA: bool>(&mut self, api: &Api<WatchedObject<ONLY_METADATA>>) -> Infallible {
        let watch = self.watch;
        let mut version: Option<String> = None;
        let mut pauses = DefaultBackoff::default();
        let mut hurried: Option<Instant> = None;
        self.health.freshness.open(watch, false);
        loop {
            let Some(from) = &mut version else {
                match self.list(api).await {
                    Ok(listed) => version = Some(listed),
                    Err(failure) => {
                        self.failed(&failure).await;
                        pause(watch, &mut pauses).await;
                    }
                }
                continue;
            };
            let opened = Instant::now();
            let followed = self.watch_from(api, from).await;
            self.health.freshness.open(watch, false);
            if let Err(failure) = followed {
                self.failed(&failure).await;
                if failure.needs_list() {
                    version = None;
                    // Events are missing, so there is no time to lose, but only once in a while.
                    if hurried.is_none_or(|at| at.elapsed() >= STEADY) {
                        hurried = Some(Instant::now());
                        continue;
                    }
                }
            }
            if opened.elapsed() >= STEADY {
                pauses = DefaultBackoff::default();
            } else {
                pause(watch, &mut pauses).await;
            }
        }
    }

    /// Takes in everything there is, and says at which version that was.
    async fn list<const ONLY_METADATA: bool>(
        &mut self,
        api: &Api<WatchedObject<ONLY_METADATA>>,
    ) -> Result<String, Failure> {
        let (label_selector, field_selector) = self.watch.selectors();
        let mut params = ListParams { label_selector, field_selector, limit: Some(PAGE), ..ListParams::default() };
        let mut listed = Names::new();
        loop {
            let page = timeout(self.silence, api.list(&params)).await;
            let page = page.map_err(|_| Failure::Silent("list", self.silence))?.map_err(Failure::List)?;
            for object in page.items {
                self.apply(&object);
                listed.insert((object.namespace().to_owned(), object.name().to_owned()));
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page.metadata.resource_version.filter(|version| !version.is_empty());
                let version = version.ok_or(Failure::NoVersion)?;
                // What the fresh list leaves out is gone.
                self.feed.retain(&listed);
                self.reached(WatchState::Synced);
                self.metrics.set_last_event(Timestamp::now());
                self.health.freshness.heard(self.watch);
                self.health.delivers(self.watch);
                return Ok(version);
            }
        }
    }

    /// Follows what happens after `version`, and keeps it up to date, until the watch ends. One that falls silent has
    /// ended as well: where it is only quiet, nothing is lost by opening it anew.
    async fn watch_from<const ONLY_METADATA: bool>(
        &mut self,
        api: &Api<WatchedObject<ONLY_METADATA>>,
        version: &mut String,
    ) -> Result<(), Failure> {
        let (label_selector, field_selector) = self.watch.selectors();
        let params = WatchParams { label_selector, field_selector, ..WatchParams::default() };
        let opening = OPENING.min(self.silence);
        let opened = timeout(opening, api.watch(&params, version)).await;
        let opened = opened.map_err(|_| Failure::Silent("watch", opening))?.map_err(Failure::Watch)?;
        self.health.freshness.open(self.watch, true);
        let mut events = pin!(opened);
        let (mut works, mut patience) = (false, STEADY.min(self.silence));
        loop {
            let next = tokio::select! {
                next = timeout(patience, events.next()) => next,
                () = goes_stale(&self.health, self.watch) => return Err(Failure::Stale),
            };
            let event = match next {
                Ok(Some(event)) => event.map_err(Failure::Watch)?,
                Ok(None) => return Ok(()),
                Err(_) if works || patience >= self.silence => {
                    tracing::debug!(watch = self.watch.what(), "the watch is silent; opening it anew");
                    return Ok(());
                }
                Err(_) => {
                    works = true;
                    patience = self.silence.saturating_sub(STEADY);
                    self.works_again();
                    continue;
                }
            };
            let reached = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    self.apply(&object);
                    object.meta().resource_version.clone()
                }
                WatchEvent::Deleted(object) => {
                    self.feed.remove(object.namespace(), object.name());
                    self.metrics.set_last_event(Timestamp::now());
                    object.meta().resource_version.clone()
                }
                WatchEvent::Bookmark(bookmark) => Some(bookmark.metadata.resource_version),
                WatchEvent::Error(status) => return Err(Failure::Watch(kube::Error::Api(status.boxed()))),
            };
            if let Some(reached) = reached.filter(|version| !version.is_empty()) {
                *version = reached;
            }
            (works, patience) = (true, self.silence);
            self.health.freshness.heard(self.watch);
            self.works_again();
        }
    }

    fn apply<const ONLY_METADATA: bool>(&mut self, object: &WatchedObject<ONLY_METADATA>) {
        self.feed.apply(object.namespace(), object.name(), object.json());
        self.metrics.set_last_event(Timestamp::now());
    }

    fn works_again(&mut self) {
        self.health.delivers(self.watch);
        if self.trouble.take().is_some() {
            tracing::info!(watch = self.watch.what(), "watching again");
        }
    }

    async fn failed(&mut self, failure: &Failure) {
        let mut reason = failure.in_words();
        if failure.is_no_such_kind() && !self.is_synced() {
            if let Some(hidden) = definition_without_service(self.client.clone(), self.watch, self.silence).await {
                reason.push_str(&hidden);
            } else if self.kinds.known(&self.watch.kind()).is_none() {
                if self.trouble.as_ref() != Some(&reason) {
                    tracing::warn!(watch = self.watch.what(), "the API server serves no such kind; there are none");
                    self.trouble = Some(reason);
                }
                self.feed.retain(&Names::new());
                self.health.freshness.absent(self.watch);
                return self.reached(WatchState::Absent);
            } else {
                // Somebody on the way answers in its place, or it is not there yet. Either way there may be some.
                reason.push_str(", although it says that it serves this kind");
            }
        }
        // Why nothing is heard is told by what was tried, not by what gave rise to it.
        if !matches!(failure, Failure::Stale) {
            self.health.freshness.fails(self.watch, &reason);
        }
        // What was listed once stays as it was; only an absence that lasts from the beginning means that there is none.
        if self.trouble.as_ref() != Some(&reason) {
            let watch = self.watch.what();
            if self.watch.is_optional() && failure.is_forbidden() {
                tracing::info!(watch, reason, "not watched: the right to it was not given");
            } else {
                tracing::warn!(watch, reason, "cannot watch; trying again");
            }
            self.trouble = Some(reason.clone());
        }
        if self.is_synced() {
            self.health.fails(self.watch, reason, Timestamp::now());
        } else {
            self.reached(WatchState::Failed(reason));
        }
    }

    fn is_synced(&self) -> bool {
        self.states.borrow().get(&self.watch) == Some(&WatchState::Synced)
    }

    fn reached(&self, state: WatchState) {
        self.states.send_if_modified(|states| {
            let changed = states.get(&self.watch) != Some(&state);
            if changed {
                states.insert(self.watch, state);
            }
            changed
        });
    }
}

/// Resolves when nothing has been heard of a watch for too long: another connection may fare better.
async fn goes_stale(health: &Health, watch: Watch) {
    loop {
        sleep(LOOK).await;
        if health.freshness.is_stale(watch) {
            return;
        }
    }
}

async fn pause(watch: Watch, pauses: &mut DefaultBackoff) {
    let pause = pauses.next().unwrap_or(STEADY);
    // What is defined by Argo CD may be served from any moment on, if it is installed after the guard.
    let soon = watch.is_indispensable() || watch.definition().is_some();
    sleep(if soon { pause.min(LONGEST_PAUSE) } else { pause }).await;
}

/// What there may be of a kind that is not served: a definition of that name may have objects in storage that nobody can
/// list. `None` where there is no definition.
async fn definition_without_service(client: Client, watch: Watch, patience: Duration) -> Option<String> {
    let name = watch.definition()?;
    match timeout(patience, Watch::definitions(client).get_metadata(&name)).await {
        Ok(Ok(_)) => Some(format!(", although there is a definition {name}: it is not served, and may hold some")),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => None,
        Ok(Err(error)) => Some(format!("; whether there is a definition {name} cannot be read: {}", in_words(&error))),
        Err(_) => Some(format!("; whether there is a definition {name} was not answered")),
    }
}
