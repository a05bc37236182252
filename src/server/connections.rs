//! Which connections there are, and which of them goes when there is no room for another.
//!
//! Whoever can reach the port can open connections, and an API server holds on to its own: up to 25 idle ones each, all of
//! them possibly from one address, and it does not repeat a POST whose connection broke. So two kinds are told apart. One
//! that has never sent a complete request is fresh: its time is short, each peer has only so many, and the oldest of them
//! makes room. One that has is kept for as long as there is any other way to make room.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::limits::Limits;

/// Every open connection of one port.
#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    open: Mutex<HashMap<u64, Arc<Entry>>>,
    /// Told whenever one more may have become possible.
    changed: Notify,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    accepted: Instant,
    told_to_go: CancellationToken,
    phase: Mutex<Phase>,
    /// If it is fresh by then it goes.
    until: Mutex<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No complete request has come yet.
    Fresh,
    /// Nothing is owed to it since then; the next request may be on its way.
    Idle(Instant),
    /// A complete request waits for its answer.
    Asking,
}

/// A place among the connections; given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    entry: Arc<Entry>,
    all: Arc<Connections>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default(), changed: Notify::new() })
    }

    /// A place for another connection of `peer`, numbered by `number`, which no other has. Where there is none, another
    /// connection goes for it; the caller waits only while every other is waiting for an answer.
    pub(super) async fn place(self: &Arc<Self>, number: u64, peer: SocketAddr) -> Place {
        loop {
            let changed = self.changed.notified();
            if let Some(place) = self.try_place(number, peer.ip().to_canonical()) {
                return place;
            }
            changed.await;
        }
    }

    fn try_place(self: &Arc<Self>, number: u64, peer: IpAddr) -> Option<Place> {
        let mut open = self.open.lock();
        let fresh_of_peer = || open.iter().filter(|(_, entry)| entry.peer == peer && entry.is_fresh());
        let leaving = if fresh_of_peer().count() >= self.limits.fresh_per_peer {
            Some(oldest(fresh_of_peer())?)
        } else if open.len() >= self.limits.connections {
            Some(oldest(open.iter().filter(|(_, entry)| entry.is_fresh())).or_else(|| longest_idle(&open))?)
        } else {
            None
        };
        if let Some(leaving) = leaving.and_then(|number| open.remove(&number)) {
            leaving.told_to_go.cancel();
        }
        let now = Instant::now();
        let entry = Arc::new(Entry {
            peer,
            accepted: now,
            until: Mutex::new(now + self.limits.first),
            told_to_go: CancellationToken::new(),
            phase: Mutex::new(Phase::Fresh),
        });
        open.insert(number, entry.clone());
        Some(Place { number, entry, all: self.clone() })
    }

    /// Makes the oldest fresh connection go: there are too few file descriptors.
    pub(super) fn shed(&self) {
        let mut open = self.open.lock();
        let oldest = oldest(open.iter().filter(|(_, entry)| entry.is_fresh()));
        if let Some(leaving) = oldest.and_then(|number| open.remove(&number)) {
            leaving.told_to_go.cancel();
        }
    }
}

fn oldest<'e>(entries: impl Iterator<Item = (&'e u64, &'e Arc<Entry>)>) -> Option<u64> {
    entries.min_by_key(|(number, entry)| (entry.accepted, **number)).map(|(number, _)| *number)
}

/// Only when none is fresh: of the peer that has the most connections, the one that has sent nothing complete for longest.
fn longest_idle(open: &HashMap<u64, Arc<Entry>>) -> Option<u64> {
    let mut of_peer: HashMap<IpAddr, usize> = HashMap::new();
    for entry in open.values() {
        *of_peer.entry(entry.peer).or_default() += 1;
    }
    let idle = open.iter().filter_map(|(number, entry)| match *entry.phase.lock() {
        Phase::Idle(since) => Some((of_peer[&entry.peer], std::cmp::Reverse(since), *number)),
        Phase::Fresh | Phase::Asking => None,
    });
    idle.max().map(|(_, _, number)| number)
}

impl Entry {
    fn is_fresh(&self) -> bool {
        matches!(*self.phase.lock(), Phase::Fresh)
    }
}

impl Place {
    /// Resolves when the connection has to go: another needs its place, or it has been fresh for too long.
    pub(super) async fn has_to_go(&self) {
        loop {
            let until = *self.entry.until.lock();
            tokio::select! {
                () = self.told_to_go() => return,
                () = sleep_until(until) => {}
            }
            if !self.entry.is_fresh() {
                return self.told_to_go().await;
            }
            if *self.entry.until.lock() <= until {
                return;
            }
        }
    }

    /// Gives a fresh connection its time anew, once `wait` is over: it is the server that makes it wait. It still goes
    /// before that if there is no other room.
    pub(super) fn put_off(&self, wait: Duration) {
        *self.entry.until.lock() = Instant::now() + wait + self.all.limits.first;
    }

    fn told_to_go(&self) -> WaitForCancellationFuture<'_> {
        self.entry.told_to_go.cancelled()
    }

    /// Takes note that a whole request has come in.
    pub(super) fn asks(&self) {
        *self.entry.phase.lock() = Phase::Asking;
    }

    /// Takes note that an answer is on its way, be it to a whole request or to a part of one.
    pub(super) fn is_answered(&self) {
        let mut phase = self.entry.phase.lock();
        if !matches!(*phase, Phase::Fresh) {
            *phase = Phase::Idle(Instant::now());
            drop(phase);
            self.all.changed.notify_waiters();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.open.lock().remove(&self.number);
        self.all.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn connections(connections: usize, fresh_per_peer: usize) -> Arc<Connections> {
        Connections::new(Limits { connections, fresh_per_peer, ..Limits::default() })
    }

    fn peer(number: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, number], 4000))
    }

    fn is_to_go(place: &Place) -> bool {
        place.entry.told_to_go.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_fresh_connection_of_a_peer_makes_room_for_its_next() {
        let all = connections(100, 2);
        let other = all.place(0, peer(9)).await;
        let mut places = Vec::new();
        for number in 1..=3 {
            tokio::time::advance(Duration::from_millis(1)).await;
            places.push(all.place(number, peer(1)).await);
        }
        assert_eq!(places.iter().map(is_to_go).collect::<Vec<_>>(), [true, false, false]);
        assert!(!is_to_go(&other), "it is somebody else's");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_asked_once_is_kept_while_anything_fresh_can_go() {
        let all = connections(3, 3);
        let (kept, fresh) = (all.place(1, peer(1)).await, all.place(2, peer(1)).await);
        for place in [&kept, &fresh] {
            assert!(!is_to_go(place));
        }
        kept.asks();
        kept.is_answered();
        let _third = all.place(3, peer(2)).await;
        let _fourth = all.place(4, peer(3)).await;
        assert!(is_to_go(&fresh) && !is_to_go(&kept));
    }

    #[tokio::test(start_paused = true)]
    async fn of_connections_that_have_all_asked_the_longest_idle_of_the_greediest_peer_goes() {
        let all = connections(4, 4);
        let mut places = Vec::new();
        for (number, from) in [(1, 1), (2, 2), (3, 2), (4, 2)] {
            places.push(all.place(number, peer(from)).await);
        }
        for place in &places {
            tokio::time::advance(Duration::from_millis(1)).await;
            place.asks();
            place.is_answered();
        }
        // Whoever waits for an answer is never cut off.
        places[1].asks();
        let _next = all.place(5, peer(3)).await;
        assert_eq!(places.iter().map(is_to_go).collect::<Vec<_>>(), [false, false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn where_everybody_waits_for_an_answer_the_next_one_waits_too() {
        let all = connections(1, 1);
        let busy = all.place(1, peer(1)).await;
        busy.asks();
        let mut next = Box::pin(all.place(2, peer(2)));
        assert!(next.as_mut().now_or_never().is_none());
        busy.is_answered();
        let next = next.await;
        assert!(is_to_go(&busy) && !is_to_go(&next));
    }

    #[tokio::test(start_paused = true)]
    async fn time_of_a_fresh_connection_is_short_and_of_any_other_is_not() {
        let all = connections(10, 10);
        let (fresh, kept) = (all.place(1, peer(1)).await, all.place(2, peer(1)).await);
        kept.asks();
        kept.is_answered();
        tokio::time::timeout(Limits::default().first * 2, fresh.has_to_go()).await.unwrap();
        assert!(tokio::time::timeout(Limits::default().first * 2, kept.has_to_go()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_made_to_wait_has_time_afterwards() {
        let all = connections(10, 10);
        let place = all.place(1, peer(1)).await;
        let (first, wait) = (Limits::default().first, Duration::from_secs(7));
        place.put_off(wait);
        let begun = Instant::now();
        place.has_to_go().await;
        assert!(begun.elapsed() >= first + wait);
    }

    #[tokio::test]
    async fn answer_to_half_a_request_keeps_nothing() {
        let all = connections(10, 10);
        let place = all.place(1, peer(1)).await;
        place.is_answered();
        assert!(place.entry.is_fresh());
        drop(place);
        assert!(all.open.lock().is_empty());
    }
}
