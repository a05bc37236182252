//! Collapses what comes again and again: the first is told at once, the others are counted.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// For so long repeats are only counted.
pub const WINDOW: Duration = Duration::from_secs(600);

#[derive(Debug)]
struct Seen {
    since: Instant,
    repeats: u64,
}

/// What was told within the last window, up to `MAX` different things. What comes beyond is not collapsed.
#[derive(Debug)]
pub struct Repeats<K, const MAX: usize> {
    seen: Mutex<HashMap<K, Seen>>,
}

impl<K, const MAX: usize> Default for Repeats<K, MAX> {
    fn default() -> Self {
        Self { seen: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash, const MAX: usize> Repeats<K, MAX> {
    /// Whether to tell this one, and how many like it were left out since the last time.
    pub fn admit(&self, same: &K, now: Instant) -> Option<u64> {
        let mut seen = self.seen.lock();
        if let Some(entry) = seen.get_mut(same) {
            if now.duration_since(entry.since) < WINDOW {
                entry.repeats += 1;
                return None;
            }
            entry.since = now;
            return Some(std::mem::take(&mut entry.repeats));
        }
        if seen.len() < MAX {
            seen.insert(same.clone(), Seen { since: now, repeats: 0 });
        }
        Some(0)
    }

    /// Whether this one is followed, or can be.
    pub fn has_room_for(&self, same: &K) -> bool {
        let seen = self.seen.lock();
        seen.len() < MAX || seen.contains_key(same)
    }

    /// Takes out what has not come again for a whole window, and gives back what was repeated within it.
    pub fn expire(&self, now: Instant) -> Vec<(K, u64)> {
        let mut seen = self.seen.lock();
        let over: Vec<K> = seen
            .iter()
            .filter(|(_, entry)| now.duration_since(entry.since) >= WINDOW)
            .map(|(same, _)| same.clone())
            .collect();
        let removed = over.into_iter().filter_map(|same| seen.remove(&same).map(|entry| (same, entry.repeats)));
        removed.filter(|(_, repeats)| *repeats > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_and_not_lost() {
        let repeats = Repeats::<&str, 10>::default();
        let start = Instant::now();
        assert_eq!(repeats.admit(&"a", start), Some(0));
        assert_eq!(repeats.admit(&"a", start), None);
        assert_eq!(repeats.admit(&"a", start), None);
        assert_eq!(repeats.admit(&"b", start), Some(0));
        assert_eq!(repeats.admit(&"a", start + WINDOW), Some(2));
        assert_eq!(repeats.admit(&"a", start + WINDOW), None);
        assert_eq!(repeats.expire(start + WINDOW + WINDOW), vec![("a", 1)]);
        assert_eq!(repeats.admit(&"a", start + WINDOW + WINDOW), Some(0));
    }

    #[test]
    fn what_is_followed_is_bounded_and_the_rest_is_told() {
        let repeats = Repeats::<u32, 8>::default();
        let start = Instant::now();
        for number in 0..8 {
            assert_eq!(repeats.admit(&number, start), Some(0));
        }
        assert_eq!(repeats.admit(&8, start), Some(0));
        assert_eq!(repeats.admit(&8, start), Some(0));
        assert!(repeats.has_room_for(&7) && !repeats.has_room_for(&8));
        assert_eq!(repeats.seen.lock().len(), 8);
    }
}
