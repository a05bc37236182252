//! What the process does, without a process: watches in a map, a cursor, a cycle.

use std::collections::BTreeMap;

use cascade_guard_core::watchdog::{
    Applications, Circumstances, Phase, RolloutWatchSpec, RolloutWatchStatus, Settings, Step,
    circuit::openings,
    circumstances::Sibling,
    facts::Facts,
    judge::{intend, judge},
    schema::{Opening, watch_name},
    trailer::Wish,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    cluster::URL,
    repository::{Commit, Repository, id, index},
};

/// What survives the process.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    pub watches: BTreeMap<String, (RolloutWatchSpec, RolloutWatchStatus)>,
    pub open: Vec<Opening>,
    pub cursor: Option<usize>,
}

/// What the process keeps in memory.
#[derive(Debug, Default)]
pub struct Process {
    pub applications: Applications,
    pub facts: Facts,
    pub tip: Option<usize>,
}

/// Where a revert is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Never,
    BeforeIntent,
    AfterIntent,
    AfterPush,
    /// Somebody else pushes between judging and pushing.
    Moved,
}

/// A push that was made.
#[derive(Clone, Debug)]
pub struct Push {
    pub watch: String,
    pub commit: usize,
    pub revert: usize,
}

/// Settings in which everything may be armed.
pub fn settings(spec: &str) -> Settings {
    let text = format!(
        "apiVersion: cascade-guard.io/v1alpha1\nkind: WatchdogConfiguration\nspec: {{arm: {{applications: ['**']}}{spec}}}\n"
    );
    Settings::parse(&text).unwrap()
}

impl Process {
    /// Fetches, and takes new commits in.
    pub fn fetch(
        &mut self,
        repository: &Repository,
        stored: &mut Stored,
        wishes: &BTreeMap<usize, Vec<Wish>>,
        now: Timestamp,
    ) {
        let tip = repository.tip;
        if self.tip != Some(tip) {
            self.facts.forget_tips();
        }
        self.facts.forget_unsettled();
        self.tip = Some(tip);
        let Some(cursor) = stored.cursor.replace(tip) else { return };
        if !repository.contains(tip, cursor) {
            return;
        }
        for commit in repository.between(tip, &[cursor]) {
            for wish in wishes.get(&commit).into_iter().flatten() {
                let spec = RolloutWatchSpec {
                    repository: URL.to_owned(),
                    branch: "main".to_owned(),
                    commit: id(commit),
                    application: wish.app.clone(),
                    mode: wish.mode,
                    expect: wish.expect,
                    deadline: wish.deadline,
                    stable: wish.stable,
                    seen: Some(now),
                    problem: String::new(),
                };
                let name = watch_name(&wish.app, &spec.commit, "argocd");
                stored.watches.entry(name).or_insert((spec, RolloutWatchStatus::default()));
            }
        }
    }

    /// Judges every watch; the pushes that were made. `Err` means that the process died.
    pub fn cycle(
        &mut self,
        repository: &mut Repository,
        stored: &mut Stored,
        wishes: &BTreeMap<usize, Vec<Wish>>,
        settings: &Settings,
        (now, cut): (Timestamp, Cut),
    ) -> (Vec<Push>, bool) {
        let mut pushes = Vec::new();
        self.fetch(repository, stored, wishes, now);
        let active: Vec<String> = stored
            .watches
            .iter()
            .filter(|(_, (_, status))| status.ended.is_none())
            .map(|(name, _)| name.clone())
            .collect();
        for name in active {
            for _ in 0..100 {
                let (spec, status) = stored.watches[&name].clone();
                let open = openings(
                    stored.watches.values().map(|(spec, status)| (spec, status)),
                    &[],
                    &stored.open,
                    settings.spec.circuit,
                );
                stored.open.clone_from(&open);
                let siblings = siblings(stored, &name, &spec.commit);
                let tip = self.tip.map(id);
                let around = Circumstances {
                    settings,
                    applications: &self.applications,
                    updaters: &[],
                    readable: true,
                    tip: tip.as_deref(),
                    revert_tip: None,
                    is_default_branch: true,
                    fresh: true,
                    siblings: &siblings,
                    open: &open,
                    holds_lease: true,
                    gap: SignedDuration::from_secs(120),
                    now,
                };
                match judge(&name, &spec, &status, &around, &mut self.facts) {
                    Step::Ask => {
                        for question in self.facts.open.clone() {
                            let answer = repository.answer(&question);
                            self.facts.answer(question, answer);
                        }
                    }
                    Step::Fetch => unreachable!("every look is fresh"),
                    Step::Keep(status) => {
                        stored.watches.get_mut(&name).unwrap().1 = status;
                        break;
                    }
                    Step::Revert(mut status) => {
                        if cut == Cut::BeforeIntent {
                            return (pushes, false);
                        }
                        let commit = index(&spec.commit).unwrap();
                        let revert = repository.add(Commit {
                            parents: vec![self.tip.unwrap()],
                            paths: repository.paths(commit),
                            reverts: Some((commit, name.clone())),
                            ..Commit::default()
                        });
                        intend(&mut status, &id(revert), "main", now);
                        stored.watches.get_mut(&name).unwrap().1 = status;
                        if cut == Cut::AfterIntent {
                            return (pushes, false);
                        }
                        if cut == Cut::Moved && repository.tip == self.tip.unwrap() {
                            let parents = vec![repository.tip];
                            let paths = vec!["docs/x".to_owned()];
                            repository.tip = repository.add(Commit { parents, paths, ..Commit::default() });
                        }
                        // Only onto what was judged.
                        if repository.tip == self.tip.unwrap() {
                            repository.tip = revert;
                            pushes.push(Push { watch: name.clone(), commit, revert });
                            if cut == Cut::AfterPush {
                                return (pushes, false);
                            }
                        }
                        self.fetch(repository, stored, wishes, now);
                    }
                }
            }
        }
        (pushes, true)
    }
}

fn siblings(stored: &Stored, name: &str, commit: &str) -> Vec<Sibling> {
    let same = stored.watches.iter().filter(|(other, (spec, _))| *other != name && spec.commit == commit);
    same.map(|(name, (_, status))| Sibling {
        name: name.clone(),
        reverted: status.phase == Phase::Reverted,
        intends: status.revert.is_some() && status.ended.is_none() && status.phase != Phase::Reverted,
    })
    .collect()
}
