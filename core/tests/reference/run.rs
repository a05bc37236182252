//! Runs checks over many worlds, some on each core.

use std::{collections::BTreeMap, fmt::Write, num::NonZero, thread};

use crate::{judged::Answer, judged::Judged, shrink::shrink, world::World, worlds::world};

/// What a check says of a world.
pub enum Outcome {
    /// It holds.
    Holds,
    /// The check has nothing to say of this world.
    Silent,
    /// It does not hold.
    Broken(Fault),
}

/// What is wrong.
#[derive(Clone, Debug)]
pub struct Fault {
    /// In a few words, the same for every world with the same fault: it stays while a world is made smaller.
    pub kind: String,
    /// The whole story.
    pub story: String,
}

/// A property: the world, the same as the core knows it, and what the core says of it.
pub struct Check {
    /// What is checked.
    pub name: &'static str,
    /// Of so many worlds in a hundred it has something to say, at least.
    pub share: u64,
    /// The check.
    pub run: fn(&World, &Judged, &Answer) -> Outcome,
}

impl Check {
    fn on(&self, world: &World) -> Outcome {
        let Some(judged) = Judged::new(world) else { return Outcome::Silent };
        let Some(answer) = judged.review(world) else { return Outcome::Silent };
        (self.run)(world, &judged, &answer)
    }
}

/// Of how many worlds a check had something to say, and the first world with each kind of fault, with their number.
#[derive(Default)]
struct Found {
    said: u64,
    faults: BTreeMap<String, (u64, World, Fault)>,
}

/// Of fewer worlds nobody can tell how often a check has something to say.
const ENOUGH: u64 = 1000;

/// So many kinds of faults are shown, each in a small world.
const SHOWN: usize = 5;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |value| value.parse().expect("a number"))
}

/// Checks every world by every check. Fails where one is broken, or has nothing to say of most worlds.
pub fn check_worlds(checks: &[Check]) {
    let (first, count) = (number("CASCADE_GUARD_FIRST_WORLD", 1), number("CASCADE_GUARD_WORLDS", 10_000));
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let found: Vec<Vec<Found>> = thread::scope(|scope| {
        let share = |thread: u64| (first + thread..first + count).step_by(usize::try_from(threads).expect("few"));
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || look_at(share(thread), checks))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a world that can be judged")).collect()
    });
    let mut text = String::new();
    for (at, check) in checks.iter().enumerate() {
        let parts: Vec<&Found> = found.iter().map(|found| &found[at]).collect();
        let said: u64 = parts.iter().map(|part| part.said).sum();
        report(check, &parts, &mut text);
        if count >= ENOUGH && said * 100 < count * check.share {
            writeln!(text, "{}: says something of {said} worlds of {count} only", check.name).expect("text");
        }
    }
    assert!(text.is_empty(), "{text}");
}

fn look_at(worlds: impl Iterator<Item = u64>, checks: &[Check]) -> Vec<Found> {
    let mut found: Vec<Found> = checks.iter().map(|_| Found::default()).collect();
    for seed in worlds {
        let world = world(seed);
        let judged = Judged::new(&world).expect("a world that can be read");
        let answer = judged.review(&world).expect("a request that can be read");
        for (check, found) in checks.iter().zip(&mut found) {
            match (check.run)(&world, &judged, &answer) {
                Outcome::Holds => found.said += 1,
                Outcome::Silent => {}
                Outcome::Broken(fault) => {
                    found.said += 1;
                    found.faults.entry(fault.kind.clone()).or_insert((0, world.clone(), fault)).0 += 1;
                }
            }
        }
    }
    found
}

fn report(check: &Check, found: &[&Found], text: &mut String) {
    let mut faults: BTreeMap<&str, (u64, &World, &Fault)> = BTreeMap::new();
    for (kind, (times, world, fault)) in found.iter().flat_map(|found| &found.faults) {
        faults.entry(kind).or_insert((0, world, fault)).0 += times;
    }
    let broken = |world: &World| match check.on(world) {
        Outcome::Broken(fault) => Some(fault),
        _ => None,
    };
    for (place, (kind, (times, world, fault))) in faults.into_iter().enumerate() {
        writeln!(text, "{}\n{}: in {times} worlds: {kind}", "=".repeat(100), check.name).expect("text");
        if place < SHOWN {
            let (small, fault) = shrink(world, fault, &broken);
            writeln!(text, "{small}\n{}", fault.story).expect("text");
        }
    }
}
