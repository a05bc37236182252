//! Judging never holds up what serves sockets, and a review that is long in coming holds up no other.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

mod serving;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use cascade_guard::server::{Guard, Lanes, guard::Arrival};
use jiff::Timestamp;
use parking_lot::{Condvar, Mutex};
use serde_json::Value;
use serving::{Nothing, guard, review};

/// A clock that stands still: the first so many who look at it are kept until the gate opens.
struct Gate {
    holds: AtomicUsize,
    is_open: Mutex<bool>,
    opens: Condvar,
}

impl Gate {
    const fn holding(first: usize) -> Self {
        Self { holds: AtomicUsize::new(first), is_open: Mutex::new(false), opens: Condvar::new() }
    }

    fn pass(&self) -> Timestamp {
        let held = |holds: usize| holds.checked_sub(1);
        if self.holds.fetch_update(Ordering::Relaxed, Ordering::Relaxed, held).is_ok() {
            let mut is_open = self.is_open.lock();
            while !*is_open {
                self.opens.wait(&mut is_open);
            }
        }
        Timestamp::now()
    }

    fn open(&self) {
        *self.is_open.lock() = true;
        self.opens.notify_all();
    }
}

fn guarded(clock: fn() -> Timestamp, places: usize) -> Arc<Guard<Nothing>> {
    Arc::new(Guard { clock, lanes: Lanes::with_places(places), ..guard("enforce") })
}

async fn ask(guard: &Arc<Guard<Nothing>>, path: &str, operation: &str, granted: Duration) -> Value {
    let arrival = Arrival { path: path.to_owned(), client: "".into(), at: Instant::now(), granted };
    let answer = guard.answer(review("u", operation).to_string().into(), arrival).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["response"]["uid"], "u");
    answer["response"].clone()
}

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(300);

/// The runtime has one thread. If judging kept it, nothing else would ever run here.
#[tokio::test(flavor = "current_thread")]
async fn review_that_is_stuck_keeps_no_other_from_its_answer() {
    static GATE: Gate = Gate::holding(1);
    let guard = guarded(|| GATE.pass(), 2);
    let stuck = tokio::spawn({
        let guard = guard.clone();
        async move { ask(&guard, "/validate", "DELETE", LONG).await }
    });
    while GATE.holds.load(Ordering::Relaxed) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(&guard, "/validate", "DELETE", LONG).await["allowed"], true);
    assert!(!stuck.is_finished());
    GATE.open();
    assert_eq!(stuck.await.unwrap()["allowed"], true);
}

#[tokio::test(flavor = "current_thread")]
async fn review_that_does_not_end_is_answered_without_a_judgement_and_counted_once() {
    static GATE: Gate = Gate::holding(1);
    let guard = guarded(|| GATE.pass(), 1);
    let answer = ask(&guard, "/validate", "DELETE", SHORT).await;
    assert_eq!(answer["allowed"], false);
    assert!(answer["status"]["message"].as_str().unwrap().contains("not judged in time"), "{answer}");

    // Its place is taken until it really ends, but only its place: entries that fail open have others.
    assert_eq!(ask(&guard, "/validate/hooks", "CREATE", LONG).await["allowed"], true);
    let behind = ask(&guard, "/validate", "DELETE", SHORT).await;
    assert!(behind["status"]["message"].as_str().unwrap().contains("not judged in time"), "{behind}");
    GATE.open();
    assert_eq!(ask(&guard, "/validate", "DELETE", LONG).await["allowed"], true);
    let text = guard.metrics.encode();
    let counted = text.lines().filter(|line| line.starts_with("cascade_guard_admission_duration_seconds_count"));
    assert_eq!(counted.collect::<Vec<_>>(), ["cascade_guard_admission_duration_seconds_count 4"]);
}
