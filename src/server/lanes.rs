//! Who may judge when: never on a thread that serves sockets, never more at a time than the processor can carry, and what
//! may be let through never in the way of what is refused where nobody answers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::available_parallelism,
    time::Instant,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout_at,
};

/// So many reviews wait in one lane. Whoever comes then is answered without a judgement at once, instead of when it is too
/// late.
const MAX_WAITING: usize = 512;

/// Entries of the webhook that fail open and whose objects anybody may write who has a namespace.
const OPEN: [&str; 3] = ["/validate/hooks", "/validate/application-updates", "/validate/rbac-updates"];

/// How long a look may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As long as almost every review takes; whoever needs longer gives its place up and queues again.
    Quick,
    /// Until nobody waits for it any more.
    Long,
}

/// Two lanes: one for deletes, for what gives a power to delete and for whatever comes in by a path of its own; one for
/// entries that fail open. In each lane quick looks and long ones queue apart, so that a few reviews of a large delete do not
/// keep all others waiting. Each queue has as many places as there are processors, two at least; the system gives every
/// thread its share of them.
#[derive(Debug)]
pub struct Lanes {
    closed: [Lane; 2],
    open: [Lane; 2],
}

#[derive(Debug)]
struct Lane {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A place in a lane, free again when it is dropped.
#[derive(Debug)]
pub struct Turn {
    _place: OwnedSemaphorePermit,
}

impl Default for Lanes {
    fn default() -> Self {
        Self::with_places(available_parallelism().map_or(2, |processors| processors.get().max(2)))
    }
}

impl Lanes {
    /// Lanes with so many places each.
    pub fn with_places(places: usize) -> Self {
        let lane = || Lane { places: Arc::new(Semaphore::new(places)), waiting: AtomicUsize::new(0) };
        Self { closed: [lane(), lane()], open: [lane(), lane()] }
    }

    /// Waits for a place in the lane of a path, for a look of this pace. `None` if there is none until `deadline`, or too many wait already.
    pub async fn turn(&self, path: &str, pace: Pace, deadline: Instant) -> Option<Turn> {
        let is_open = OPEN.iter().any(|entry| path.trim_end_matches('/') == *entry);
        let [quick, long] = if is_open { &self.open } else { &self.closed };
        let lane = if pace == Pace::Quick { quick } else { long };
        if let Ok(place) = lane.places.clone().try_acquire_owned() {
            return Some(Turn { _place: place });
        }
        let _waiting = Waiting::join(&lane.waiting)?;
        let free = timeout_at(deadline.into(), lane.places.clone().acquire_owned()).await;
        // The semaphore is never closed.
        Some(Turn { _place: free.ok()?.ok()? })
    }
}

/// Counted among those who wait, until dropped: whoever waits may also give up.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn join(waiting: &'a AtomicUsize) -> Option<Self> {
        let one_more = |count| (count < MAX_WAITING).then_some(count + 1);
        waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| Self(waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DELETES: &str = "/validate/namespaces";

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn what_fails_open_takes_no_place_of_a_delete() {
        let lanes = Lanes::with_places(1);
        let hook = lanes.turn("/validate/hooks", Pace::Quick, soon()).await.unwrap();
        assert!(lanes.turn("/validate/hooks/", Pace::Quick, soon()).await.is_none());
        let _long = lanes.turn("/validate/hooks/", Pace::Long, soon()).await.unwrap();
        let delete = lanes.turn(DELETES, Pace::Quick, soon()).await.unwrap();
        // A path that nobody knows may be anything.
        assert!(lanes.turn("/validate", Pace::Quick, soon()).await.is_none());
        drop((hook, delete));
        assert!(lanes.turn("/validate", Pace::Quick, soon()).await.is_some());
    }

    #[tokio::test]
    async fn place_goes_to_whoever_waits_for_it() {
        let lanes = Arc::new(Lanes::with_places(1));
        let first = lanes.turn(DELETES, Pace::Quick, soon()).await.unwrap();
        let second = tokio::spawn({
            let lanes = lanes.clone();
            async move { lanes.turn(DELETES, Pace::Quick, Instant::now() + Duration::from_secs(60)).await.is_some() }
        });
        while lanes.closed[0].waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        drop(first);
        assert!(second.await.unwrap());
        assert_eq!(lanes.closed[0].waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn who_finds_too_many_waiting_does_not_wait() {
        let lanes = Lanes::with_places(1);
        let _only = lanes.turn(DELETES, Pace::Quick, soon()).await.unwrap();
        lanes.closed[0].waiting.store(MAX_WAITING, Ordering::Relaxed);
        // An hour away: whoever waited for it would hang here.
        assert!(lanes.turn(DELETES, Pace::Quick, Instant::now() + Duration::from_secs(3600)).await.is_none());
        assert_eq!(lanes.closed[0].waiting.load(Ordering::Relaxed), MAX_WAITING);
    }
}
