//! Random lives: commits, merges, force pushes, people who revert, rollouts that fail, errors, restarts, deaths in the middle of
//! a revert. After every push, and at the end, the reference says what must not have happened.

use std::{collections::BTreeMap, thread};

use cascade_guard_core::watchdog::{AppRef, Mode, Phase, Settings, schema::Expect, trailer::Wish};
use jiff::{SignedDuration, Timestamp};

use super::{
    cluster::App,
    reference::{against, at_the_end},
    repository::{Commit, Repository},
    watcher::{Cut, Process, Push, Stored, settings},
};

/// A stream of random numbers (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

struct Life<'a> {
    settings: &'a Settings,
    dice: Dice,
    now: Timestamp,
    repository: Repository,
    wishes: BTreeMap<usize, Vec<Wish>>,
    apps: Vec<App>,
    /// What was deployed before the operation that brought each commit, by Application.
    before: BTreeMap<(usize, usize), usize>,
    stored: Stored,
    process: Process,
    pushes: Vec<Push>,
    wrong: Vec<String>,
}

impl<'a> Life<'a> {
    fn new(seed: u64, settings: &'a Settings) -> Self {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let mut repository = Repository::default();
        repository.tip =
            repository.add(Commit { paths: vec!["web/d".to_owned(), "api/d".to_owned()], ..Commit::default() });
        let apps = vec![App::new("web", 0, now), App::new("api", 0, now)];
        let mut life = Self {
            settings,
            dice: Dice(seed),
            now,
            repository,
            wishes: BTreeMap::new(),
            apps,
            before: BTreeMap::new(),
            stored: Stored::default(),
            process: Process::default(),
            pushes: Vec::new(),
            wrong: Vec::new(),
        };
        life.show();
        life
    }

    fn show(&mut self) {
        for app in &self.apps {
            self.process.applications.observe(app.view(), self.now);
        }
    }

    fn commit(&mut self, parents: Vec<usize>) -> usize {
        let paths = match self.dice.roll(5) {
            0 => vec!["docs/x".to_owned()],
            1 => vec!["api/d".to_owned()],
            2 => vec!["web/d".to_owned(), "api/d".to_owned()],
            _ => vec!["web/d".to_owned()],
        };
        let breaks = self.dice.one_in(2);
        self.repository.add(Commit { parents, paths, breaks, ..Commit::default() })
    }

    fn ask(&mut self, commit: usize) {
        let mut wishes = Vec::new();
        for name in ["web", "api"] {
            if self.dice.one_in(2) {
                let mode = if self.dice.one_in(4) { Mode::Shadow } else { Mode::Arm };
                let app = AppRef::new("argocd", name);
                wishes.push(Wish { app, deadline: 60, stable: 10, mode, expect: Expect::Healthy });
            }
        }
        self.wishes.insert(commit, wishes);
    }

    fn developer(&mut self) {
        let tip = self.repository.tip;
        match self.dice.roll(12) {
            0 => {
                // A merge, now and then the wrong way round.
                let fork = self.dice.roll(tip as u64 + 1) as usize;
                let fork = if self.repository.contains(tip, fork) { fork } else { tip };
                let topic = self.commit(vec![fork]);
                let parents = if self.dice.one_in(4) { vec![topic, tip] } else { vec![tip, topic] };
                let merge = self.repository.add(Commit { parents, ..Commit::default() });
                let asks = if self.dice.one_in(2) { topic } else { merge };
                self.ask(asks);
                self.repository.tip = merge;
            }
            1 => {
                // A person reverts something.
                let reverted = self.dice.roll(tip as u64 + 1) as usize;
                if self.repository.contains(tip, reverted) {
                    let paths = self.repository.paths(reverted);
                    let reverts = Some((reverted, String::new()));
                    let parents = vec![tip];
                    self.repository.tip = self.repository.add(Commit { parents, paths, reverts, ..Commit::default() });
                }
            }
            2 => {
                if let Some(parent) = self.repository.commits[tip].parents.first().copied() {
                    self.repository.tip = parent;
                }
            }
            _ => {
                let commit = self.commit(vec![tip]);
                if self.dice.one_in(2) {
                    self.ask(commit);
                }
                self.repository.tip = commit;
            }
        }
    }

    fn argo(&mut self, which: usize) {
        let (tip, now) = (self.repository.tip, self.now);
        let app = &mut self.apps[which];
        match self.dice.roll(8) {
            0 => app.error = self.dice.one_in(3),
            1 if self.dice.one_in(4) => app.ill = !app.ill,
            2 if self.dice.one_in(6) => {
                // Made anew.
                let uid = app.uid + 1;
                *app = App { uid, ..App::new(&app.name.clone(), app.deployed(), now) };
            }
            _ => {}
        }
        if app.error {
            return;
        }
        match app.running.take() {
            Some((commit, _)) => {
                let old = app.deployed();
                for brought in self.repository.between(commit, &[old]) {
                    self.before.insert((which, brought), old);
                }
                app.history.push(commit);
                if app.history.len() > 10 {
                    app.history.remove(0);
                }
                app.sync = "Synced";
                app.compared = commit;
                app.become_("Progressing", now);
            }
            None if app.deployed() != tip => {
                app.compared = tip;
                app.sync = "OutOfSync";
                app.running = Some((tip, now));
            }
            None => {
                let broken = app.ill || app.is_broken(&self.repository);
                app.become_(if broken { "Degraded" } else { "Healthy" }, now);
            }
        }
    }

    fn watchdog(&mut self) {
        let cut = match self.dice.roll(12) {
            0 => Cut::BeforeIntent,
            1 => Cut::AfterIntent,
            2 => Cut::AfterPush,
            3 => Cut::Moved,
            _ => Cut::Never,
        };
        let open = self.stored.open.clone();
        let (pushes, alive) =
            self.process.cycle(&mut self.repository, &mut self.stored, &self.wishes, self.settings, (self.now, cut));
        for push in pushes {
            let (spec, _) = self.stored.watches[&push.watch].clone();
            let which = usize::from(spec.application.name == "api");
            let before = self.before.get(&(which, push.commit)).copied();
            for what in against(&push, &spec, &self.repository, &self.apps[which], before) {
                self.wrong.push(format!("{}: {what}", push.watch));
            }
            let app = spec.application.to_string();
            if open.iter().any(|opening| opening.application == app || opening.application == "*") {
                self.wrong.push(format!("{}: the circuit was open", push.watch));
            }
            self.pushes.push(push);
        }
        for opening in &open {
            if !self.stored.open.iter().any(|still| still.application == opening.application) {
                self.wrong.push("the circuit closed by itself".to_owned());
            }
        }
        if !alive || self.dice.one_in(15) {
            // Another process: it knows only what is stored.
            self.process = Process::default();
            self.show();
        }
    }

    fn live(mut self) -> (Vec<String>, BTreeMap<Phase, u32>, usize) {
        let mut finals: BTreeMap<String, Phase> = BTreeMap::new();
        for step in 0..80 {
            self.now += SignedDuration::from_secs(1 + self.dice.roll(20) as i64);
            if step < 40 && self.dice.one_in(3) {
                self.developer();
            }
            for which in 0..2 {
                if step >= 40 {
                    self.apps[which].error = false;
                }
                if !self.dice.one_in(4) {
                    self.argo(which);
                }
            }
            self.show();
            if !self.dice.one_in(3) {
                self.watchdog();
            }
            for (name, (_, status)) in &self.stored.watches {
                if status.phase.is_final() {
                    let first = *finals.entry(name.clone()).or_insert(status.phase);
                    if first != status.phase {
                        self.wrong.push(format!("{name} was {first:?} and became {:?}", status.phase));
                    }
                }
            }
        }
        // Nothing happens any more; every deadline ends.
        for _ in 0..40 {
            self.now += SignedDuration::from_secs(30);
            for which in 0..2 {
                self.apps[which].error = false;
            }
            self.show();
            let when = (self.now, Cut::Never);
            let (pushes, _) =
                self.process.cycle(&mut self.repository, &mut self.stored, &self.wishes, self.settings, when);
            self.pushes.extend(pushes);
        }
        let mut wrong = self.wrong;
        wrong.extend(at_the_end(&self.stored, &self.pushes, &self.repository));
        let mut phases = BTreeMap::new();
        for (_, status) in self.stored.watches.values() {
            *phases.entry(status.phase).or_default() += 1;
        }
        (wrong, phases, self.pushes.len())
    }
}

/// The lives with these seeds; what was wrong with the first few that went wrong.
fn run(seeds: impl Iterator<Item = u64>) -> (Vec<String>, BTreeMap<Phase, u32>, usize) {
    let settings = settings("");
    let (mut wrong, mut phases, mut pushes) = (Vec::new(), BTreeMap::new(), 0);
    for seed in seeds {
        let (faults, ends, reverts) = Life::new(seed, &settings).live();
        if !faults.is_empty() && wrong.len() < 5 {
            wrong.push(format!("life {seed}: {}", faults.join("; ")));
        }
        for (phase, count) in ends {
            *phases.entry(phase).or_default() += count;
        }
        pushes += reverts;
    }
    (wrong, phases, pushes)
}

/// So many lives, unless `CASCADE_GUARD_LIVES` says otherwise: `make lives` has a hundred thousand of them, optimised.
const LIVES: u64 = 2_000;

#[test]
fn nothing_that_must_never_happen_happens() {
    let lives = std::env::var("CASCADE_GUARD_LIVES").ok().and_then(|text| text.parse().ok()).unwrap_or(LIVES);
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let workers: Vec<_> =
        (0..threads).map(|worker| thread::spawn(move || run((worker..lives).step_by(threads as usize)))).collect();
    let (mut wrong, mut phases, mut pushes) = (Vec::new(), BTreeMap::new(), 0);
    for worker in workers {
        let (faults, ends, reverts) = worker.join().unwrap();
        wrong.extend(faults);
        pushes += reverts;
        for (phase, count) in ends {
            *phases.entry(phase).or_insert(0) += count;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The lives are worth something only if everything happens in them.
    assert!(pushes as u64 > lives / 50, "only {pushes} reverts in {lives} lives: {phases:?}");
    for phase in [Phase::Confirmed, Phase::NotReached, Phase::WouldRevert, Phase::Reverted, Phase::Superseded] {
        assert!(u64::from(phases.get(&phase).copied().unwrap_or_default()) > lives / 200, "{phase:?} of {phases:?}");
    }
}
