//! How fast ApplicationSets delete what they generated.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::{App, Inventory};

/// What counts as one burst.
const WINDOW: SignedDuration = SignedDuration::from_mins(1);

impl App {
    /// Whether its deletion began within the minute before `now`.
    pub fn is_newly_deleted(&self, now: Timestamp) -> bool {
        self.terminating.is_some_and(|at| at <= now && now.duration_since(at) < WINDOW)
    }
}

impl Inventory {
    /// Of the ApplicationSet that lost most within the minute before `now`: how many of its Applications began to be
    /// deleted. Every replica counts alike, because all watch the same Applications.
    pub fn largest_burst(&self, now: Timestamp) -> usize {
        let mut by_set: HashMap<&str, usize> = HashMap::new();
        for (_, app) in self.applications().filter(|(_, app)| app.is_newly_deleted(now)) {
            if let Some(set) = &app.generated_by {
                *by_set.entry(set).or_default() += 1;
            }
        }
        by_set.into_values().max().unwrap_or_default()
    }
}
