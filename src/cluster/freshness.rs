//! For how long nothing has been heard of what claims are made of.
//!
//! A watch of a quiet cluster delivers little more than a bookmark a minute, and a watch whose other end is gone delivers
//! nothing either. So a small read is made where a watch is quiet, and whatever succeeds last counts. Times are those of a
//! clock that nobody sets.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{Client, api::ListParams};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Health,
    client::in_words,
    watch::{Watch, WatchScope},
};
use crate::state::{Readiness, Requirement};

/// After so long without a sign, claims are unknown, unless a flag says otherwise.
pub const STALE_AFTER: Duration = Duration::from_secs(15);

/// A part of the time after which claims are stale: so often a quiet watch is asked after, and so long the answer may take.
const PARTS: u32 = 4;
/// The time from one look at the signs to the next.
const LOOK: Duration = Duration::from_millis(500);

/// Signs of life of the watches that claims are made of.
#[derive(Debug)]
pub(super) struct Freshness {
    after: Duration,
    signs: Mutex<BTreeMap<Watch, Signs>>,
}

#[derive(Debug, Default)]
struct Signs {
    last: Option<Instant>,
    /// The same by the clock on the wall, for people.
    at: Timestamp,
    /// Whether a watch is open. While none is, an event would be missed, so that a read proves nothing.
    open: bool,
    /// There is nothing to follow: the API server serves no such kind.
    absent: bool,
    trouble: Option<String>,
}

impl Freshness {
    /// Claims are stale `after` so long without a sign.
    pub(super) fn new(after: Duration) -> Self {
        Self { after, signs: Mutex::default() }
    }

    /// Takes note that the watch delivered an event or a bookmark, or that everything was listed.
    pub(super) fn heard(&self, watch: Watch) {
        self.note(watch, |signs| {
            signs.last = Some(Instant::now());
            signs.at = Timestamp::now();
            signs.absent = false;
            signs.trouble = None;
        });
    }

    /// Takes note that a watch is open, or no longer is.
    pub(super) fn open(&self, watch: Watch, open: bool) {
        self.note(watch, |signs| signs.open = open);
    }

    /// Takes note that there is nothing to follow.
    pub(super) fn absent(&self, watch: Watch) {
        self.note(watch, |signs| *signs = Signs { absent: true, ..Signs::default() });
    }

    /// Takes note of what goes wrong, for whoever asks why nothing is heard.
    pub(super) fn fails(&self, watch: Watch, reason: &str) {
        self.note(watch, |signs| signs.trouble = Some(reason.to_owned()));
    }

    fn note(&self, watch: Watch, change: impl FnOnce(&mut Signs)) {
        if watch.is_indispensable() {
            change(self.signs.lock().entry(watch).or_default());
        }
    }

    /// Why claims may be out of date, if they may. What was never listed is not meant: then the guard is not ready at all.
    pub(super) fn stale(&self) -> Option<String> {
        let signs = self.signs.lock();
        let said: Vec<String> = signs.iter().filter_map(|(watch, signs)| self.silence(*watch, signs)).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// Whether nothing has been heard of this watch for too long.
    pub(super) fn is_stale(&self, watch: Watch) -> bool {
        self.signs.lock().get(&watch).is_some_and(|signs| self.silence(watch, signs).is_some())
    }

    fn silence(&self, watch: Watch, signs: &Signs) -> Option<String> {
        let silent = signs.last.filter(|_| !signs.absent)?.elapsed();
        if silent < self.after {
            return None;
        }
        let why = signs.trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        Some(format!("nothing heard of {} since {}{why}", watch.what(), signs.at.strftime("%Y-%m-%dT%H:%M:%SZ")))
    }

    /// Watches that are open, and of which nothing has been heard for a part of the time.
    fn quiet(&self) -> Vec<Watch> {
        let signs = self.signs.lock();
        let is_quiet = |signs: &Signs| signs.last.is_none_or(|last| last.elapsed() >= self.after / PARTS);
        signs.iter().filter(|(_, signs)| signs.open && is_quiet(signs)).map(|(watch, _)| *watch).collect()
    }
}

/// Asks after quiet watches, and says whether claims are fresh.
pub(super) struct Prober {
    /// The connection.
    pub(super) client: Client,
    /// The signs of life.
    pub(super) health: Arc<Health>,
    /// Told whether claims are fresh.
    pub(super) readiness: Arc<Readiness>,
}

impl Prober {
    /// Goes on for ever.
    ///
    /// # Errors
    /// Never; it has the type of a background task.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        loop {
            let quiet = self.health.freshness.quiet();
            futures::future::join_all(quiet.into_iter().map(|watch| self.probe(watch))).await;
            match self.health.freshness.stale() {
                Some(why) => self.readiness.missing(Requirement::FreshClaims, why),
                None => self.readiness.met(Requirement::FreshClaims),
            }
            sleep(LOOK).await;
        }
    }

    /// Reads one object, its metadata alone. Without a resource version the API server must know what is stored now.
    async fn probe(&self, watch: Watch) {
        let api = watch.api::<true>(self.client.clone(), &WatchScope::default());
        let (one, patience) = (ListParams::default().limit(1), self.health.freshness.after / PARTS);
        match timeout(patience, api.list(&one)).await {
            Ok(Ok(_)) => self.health.freshness.heard(watch),
            Ok(Err(error)) => self.health.freshness.fails(watch, &format!("a small list failed: {}", in_words(&error))),
            Err(_) => self.health.freshness.fails(watch, "a small list is not answered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(15);

    #[tokio::test(start_paused = true)]
    async fn what_is_not_heard_of_goes_stale_and_says_why() {
        let freshness = Freshness::new(AFTER);
        tokio::time::advance(AFTER * 2).await;
        assert_eq!(freshness.stale(), None, "nothing was listed yet");
        freshness.heard(Watch::Applications);
        freshness.heard(Watch::Namespaces);
        tokio::time::advance(AFTER.saturating_sub(Duration::from_millis(1))).await;
        assert_eq!(freshness.stale(), None);
        freshness.heard(Watch::Namespaces);
        freshness.fails(Watch::Applications, "refused");
        tokio::time::advance(Duration::from_millis(1)).await;
        let said = freshness.stale().unwrap();
        assert!(said.starts_with("nothing heard of Applications since ") && said.ends_with("Z (refused)"), "{said}");
        assert!(freshness.is_stale(Watch::Applications) && !freshness.is_stale(Watch::Namespaces));
        freshness.heard(Watch::Applications);
        assert_eq!(freshness.stale(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_watch_that_is_open_is_asked_after() {
        let freshness = Freshness::new(AFTER);
        freshness.heard(Watch::Applications);
        freshness.open(Watch::Applications, true);
        assert!(freshness.quiet().is_empty());
        tokio::time::advance(AFTER / PARTS).await;
        assert_eq!(freshness.quiet(), [Watch::Applications]);
        freshness.open(Watch::Applications, false);
        assert!(freshness.quiet().is_empty(), "a read would not show what a closed watch misses");
    }

    #[tokio::test(start_paused = true)]
    async fn kind_that_is_not_served_is_never_stale_and_others_do_not_count() {
        let freshness = Freshness::new(AFTER);
        freshness.heard(Watch::Applications);
        freshness.absent(Watch::Applications);
        freshness.heard(Watch::Projects);
        tokio::time::advance(AFTER * 10).await;
        assert_eq!(freshness.stale(), None);
    }
}
