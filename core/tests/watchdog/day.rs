//! A day of eighty Applications and three hundred commits, in simulated time.

use std::collections::BTreeMap;

use cascade_guard_core::watchdog::{AppRef, Mode, Phase, schema::Expect, trailer::Wish};
use jiff::{SignedDuration, Timestamp};

use super::{
    cluster::App,
    life::Dice,
    repository::{Commit, Repository},
    watcher::{Cut, Process, Stored, settings},
};

#[test]
fn day_of_eighty_applications_and_three_hundred_commits() {
    let mut dice = Dice(7);
    let begin = Timestamp::from_second(1_800_000_000).unwrap();
    let mut repository = Repository::default();
    repository.tip = repository.add(Commit::default());
    let mut apps: Vec<App> = (0..80).map(|index| App::new(&format!("app-{index}"), 0, begin)).collect();
    let mut process = Process::default();
    let mut stored = Stored::default();
    let mut wishes: BTreeMap<usize, Vec<Wish>> = BTreeMap::new();
    let settings = settings(", circuit: {revertsInARow: 1000, revertsAnHour: 1000}");
    let mut pushes = 0;
    // One look every thirty seconds, from midnight to midnight and for another hour.
    for look in 0..(25 * 120) {
        let now = begin + SignedDuration::from_secs(look * 30);
        if look % 9 == 0 && look < 300 * 9 {
            let which = dice.roll(80);
            let commit = repository.add(Commit {
                parents: vec![repository.tip],
                paths: vec![format!("app-{which}/d.yaml")],
                breaks: dice.roll(5) == 0,
                ..Commit::default()
            });
            let app = AppRef::new("argocd", &format!("app-{which}"));
            let wish = Wish { app, deadline: 900, stable: 120, mode: Mode::Arm, expect: Expect::Healthy };
            wishes.insert(commit, vec![wish]);
            repository.tip = commit;
        }
        for app in &mut apps {
            let tip = repository.tip;
            if let Some((commit, _)) = app.running.take() {
                app.history.push(commit);
                let excess = app.history.len().saturating_sub(10);
                app.history.drain(..excess);
                app.sync = "Synced";
                let broken = app.is_broken(&repository);
                app.become_(if broken { "Degraded" } else { "Healthy" }, now);
            } else if app.deployed() != tip {
                app.compared = tip;
                app.sync = "OutOfSync";
                app.running = Some((tip, now));
            }
            process.applications.observe(app.view(), now);
        }
        let (made, _) = process.cycle(&mut repository, &mut stored, &wishes, &settings, (now, Cut::Never));
        pushes += made.len();
    }
    let count = |phase: Phase| stored.watches.values().filter(|(_, status)| status.phase == phase).count();
    // The first look starts at the tip.
    assert_eq!(stored.watches.len(), 299);
    assert!(stored.watches.values().all(|(_, status)| status.ended.is_some()));
    assert!(count(Phase::Confirmed) > 150 && pushes > 20, "{} confirmed, {pushes} reverted", count(Phase::Confirmed));
    assert_eq!(pushes, count(Phase::Reverted));
    let peak = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = peak.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    println!("{} answers held; peak of the test process: {peak}", process.facts.len());
}
