//! The circuit: after too many reverts nothing is touched until a person says so.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::{
    schema::{Closing, Opening, Phase, RolloutWatchSpec, RolloutWatchStatus},
    settings::Circuit,
};

/// Stands for all Applications.
pub const ALL: &str = "*";

enum Event<'a> {
    Closed(&'a str),
    Confirmed(String),
    Intended(String),
}

/// Where the circuit is open: what stands in the status of the repositories and was not closed since, and what the intents
/// of reverts have opened. The intent counts, whatever came of it.
///
/// Two reverts in a row for one Application, or three within an hour over all, open it. A Confirmed watch resets the count
/// of its Application; it closes nothing.
pub fn openings<'a>(
    watches: impl IntoIterator<Item = (&'a RolloutWatchSpec, &'a RolloutWatchStatus)>,
    closings: &[Closing],
    stored: &[Opening],
    limits: Circuit,
) -> Vec<Opening> {
    let mut events: Vec<(Timestamp, Event<'_>)> =
        closings.iter().filter_map(|closing| Some((closing.at?, Event::Closed(&closing.application)))).collect();
    for (spec, status) in watches {
        let app = spec.application.to_string();
        if let Some(at) = status.revert.as_ref().and_then(|revert| revert.intended) {
            events.push((at, Event::Intended(app.clone())));
        }
        if let (Phase::Confirmed, Some(at)) = (status.phase, status.since) {
            events.push((at, Event::Confirmed(app)));
        }
    }
    // At one moment a revert counts after everything else.
    events.sort_by_key(|(at, event)| (*at, matches!(event, Event::Intended(_))));
    let mut open: BTreeMap<String, Opening> = BTreeMap::new();
    for opening in stored {
        let closed = closings.iter().any(|closing| {
            closing.at > opening.since && (closing.application == opening.application || closing.application == ALL)
        });
        if !closed {
            open.insert(opening.application.clone(), opening.clone());
        }
    }
    let mut in_a_row: BTreeMap<String, u32> = BTreeMap::new();
    let mut recent: VecDeque<Timestamp> = VecDeque::new();
    for (at, event) in events {
        match event {
            Event::Closed(ALL) => {
                in_a_row.clear();
                recent.clear();
                open.retain(|_, opening| opening.since >= Some(at));
            }
            Event::Closed(app) => {
                in_a_row.remove(app);
                open.retain(|key, opening| key != app || opening.since >= Some(at));
            }
            Event::Confirmed(app) => drop(in_a_row.remove(&app)),
            Event::Intended(app) => {
                recent.push_back(at);
                while recent.front().is_some_and(|first| at.duration_since(*first) >= SignedDuration::from_hours(1)) {
                    recent.pop_front();
                }
                let count = in_a_row.entry(app.clone()).or_default();
                *count += 1;
                if *count >= limits.reverts_in_a_row {
                    insert(&mut open, &app, at, format!("{count} reverts in a row"));
                }
                if recent.len() >= limits.reverts_an_hour as usize {
                    insert(&mut open, ALL, at, format!("{} reverts within an hour", recent.len()));
                }
            }
        }
    }
    open.into_values().collect()
}

fn insert(open: &mut BTreeMap<String, Opening>, app: &str, at: Timestamp, reason: String) {
    let opening = || Opening { application: app.to_owned(), since: Some(at), reason };
    open.entry(app.to_owned()).or_insert_with(opening);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchdog::schema::{AppRef, Revert};

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minute * 60).unwrap()
    }

    fn reverted(app: &str, minute: i64) -> (RolloutWatchSpec, RolloutWatchStatus) {
        let spec = RolloutWatchSpec { application: AppRef::new("argocd", app), ..RolloutWatchSpec::default() };
        let revert = Revert { intended: Some(at(minute)), ..Revert::default() };
        (spec, RolloutWatchStatus { phase: Phase::Reverted, revert: Some(revert), ..RolloutWatchStatus::default() })
    }

    fn confirmed(app: &str, minute: i64) -> (RolloutWatchSpec, RolloutWatchStatus) {
        let (spec, _) = reverted(app, 0);
        (spec, RolloutWatchStatus { phase: Phase::Confirmed, since: Some(at(minute)), ..RolloutWatchStatus::default() })
    }

    fn close(app: &str, minute: i64) -> Closing {
        Closing { application: app.to_owned(), at: Some(at(minute)), ..Closing::default() }
    }

    fn open(
        watches: &[(RolloutWatchSpec, RolloutWatchStatus)],
        closings: &[Closing],
        stored: &[Opening],
    ) -> Vec<String> {
        let watches = watches.iter().map(|(spec, status)| (spec, status));
        openings(watches, closings, stored, Circuit::default()).into_iter().map(|opening| opening.application).collect()
    }

    #[test]
    fn two_in_a_row_open_it_for_the_application() {
        assert_eq!(open(&[reverted("a", 0)], &[], &[]), [] as [&str; 0]);
        assert_eq!(open(&[reverted("a", 0), reverted("a", 600)], &[], &[]), ["argocd/a"]);
        assert_eq!(open(&[reverted("a", 0), reverted("b", 600)], &[], &[]), [] as [&str; 0]);
    }

    #[test]
    fn confirmed_watch_resets_the_count_and_closes_nothing() {
        assert_eq!(open(&[reverted("a", 0), confirmed("a", 5), reverted("a", 600)], &[], &[]), [] as [&str; 0]);
        assert_eq!(open(&[reverted("a", 0), confirmed("b", 5), reverted("a", 600)], &[], &[]), ["argocd/a"]);
        assert_eq!(open(&[reverted("a", 0), reverted("a", 600), confirmed("a", 700)], &[], &[]), ["argocd/a"]);
    }

    #[test]
    fn three_within_an_hour_open_it_for_all_and_it_stays_open() {
        let three = [reverted("a", 0), reverted("b", 20), reverted("c", 59)];
        assert_eq!(open(&three, &[], &[]), ["*"]);
        assert_eq!(open(&[reverted("a", 0), reverted("b", 20), reverted("c", 60)], &[], &[]), [] as [&str; 0]);
        let later: Vec<_> = three.iter().cloned().chain([confirmed("a", 10_000)]).collect();
        assert_eq!(open(&later, &[], &[]), ["*"]);
    }

    #[test]
    fn person_closes_it() {
        let two = [reverted("a", 0), reverted("a", 600)];
        assert_eq!(open(&two, &[close("argocd/a", 601)], &[]), [] as [&str; 0]);
        assert_eq!(open(&two, &[close("*", 601)], &[]), [] as [&str; 0]);
        assert_eq!(open(&two, &[close("argocd/b", 601)], &[]), ["argocd/a"]);
        assert_eq!(open(&two, &[close("argocd/a", 599)], &[]), [] as [&str; 0], "the count began anew");
        let again = [reverted("a", 0), reverted("a", 600), reverted("a", 700), reverted("a", 701)];
        assert_eq!(open(&again, &[close("argocd/a", 601)], &[]), ["argocd/a"]);
    }

    #[test]
    fn what_was_opened_stays_open_although_the_watches_are_gone() {
        let stored = Opening { application: "argocd/a".to_owned(), since: Some(at(3)), reason: String::new() };
        assert_eq!(open(&[], &[], std::slice::from_ref(&stored)), ["argocd/a"]);
        assert_eq!(open(&[], &[close("argocd/a", 2)], std::slice::from_ref(&stored)), ["argocd/a"]);
        assert_eq!(open(&[], &[close("argocd/a", 4)], &[stored]), [] as [&str; 0]);
    }
}
