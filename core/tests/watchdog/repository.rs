//! A repository in memory, which answers what the judgement asks.

use cascade_guard_core::watchdog::facts::{Answer, Change, OwnOrForeign, Question};

/// A commit.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub parents: Vec<usize>,
    pub paths: Vec<String>,
    /// The commit that it says it reverts, and the watch that it names.
    pub reverts: Option<(usize, String)>,
    /// Whether it makes `web` or `api` ill.
    pub breaks: bool,
    /// Itself and its ancestors, as bits.
    pub within: Vec<u64>,
}

/// A repository with one branch.
#[derive(Clone, Debug, Default)]
pub struct Repository {
    pub commits: Vec<Commit>,
    pub tip: usize,
}

/// The object id of a commit; it begins with what tells it from others, as the names of watches do.
pub fn id(index: usize) -> String {
    format!("{index:010x}{}", "0".repeat(30))
}

/// The commit with an object id, if it is one of ours.
pub fn index(id: &str) -> Option<usize> {
    usize::from_str_radix(id.get(..10)?, 16).ok()
}

impl Repository {
    /// Adds a commit; it is on the branch only once `tip` says so.
    pub fn add(&mut self, commit: Commit) -> usize {
        let index = self.commits.len();
        let mut within = vec![0u64; index / 64 + 1];
        for parent in &commit.parents {
            for (mine, theirs) in within.iter_mut().zip(&self.commits[*parent].within) {
                *mine |= theirs;
            }
        }
        within[index / 64] |= 1 << (index % 64);
        self.commits.push(Commit { within, ..commit });
        index
    }

    /// Whether `commit` is in `revision`.
    pub fn contains(&self, revision: usize, commit: usize) -> bool {
        self.commits[revision].within.get(commit / 64).is_some_and(|bits| bits & (1 << (commit % 64)) != 0)
    }

    /// The commits in `tip` and not in any of `without`.
    pub fn between(&self, tip: usize, without: &[usize]) -> Vec<usize> {
        (0..=tip)
            .filter(|commit| self.contains(tip, *commit))
            .filter(|commit| !without.iter().any(|old| self.contains(*old, *commit)))
            .collect()
    }

    /// The commits that say they revert `commit`, or a merge that brought it.
    pub fn reverts(&self, tip: usize, commit: usize) -> Vec<usize> {
        let reverting = |candidate: &usize| {
            let Some((reverted, _)) = &self.commits[*candidate].reverts else { return false };
            *reverted == commit || self.brought(*reverted, commit)
        };
        self.between(tip, &[commit]).into_iter().filter(reverting).collect()
    }

    fn brought(&self, merge: usize, commit: usize) -> bool {
        let parents = &self.commits[merge].parents;
        parents.len() > 1 && self.contains(merge, commit) && !self.contains(parents[0], commit)
    }

    /// The commit itself and, if it is a merge, what it brought.
    pub fn own(&self, commit: usize) -> Vec<usize> {
        match self.commits[commit].parents.as_slice() {
            [first, _, ..] => self.between(commit, &[*first]),
            _ => vec![commit],
        }
    }

    /// The files that a commit changed, of a merge all that it brought.
    pub fn paths(&self, commit: usize) -> Vec<String> {
        self.own(commit).into_iter().flat_map(|own| self.commits[own].paths.clone()).collect()
    }

    /// What git would answer.
    pub fn answer(&self, question: &Question) -> Answer {
        let known = |text: &str| index(text).filter(|index| *index < self.commits.len());
        let change = |index: usize, paths: Vec<String>| Change {
            commit: id(index),
            parents: self.commits[index].parents.iter().map(|parent| id(*parent)).collect(),
            paths,
        };
        match question {
            Question::Contains { revision, commit } => match (known(revision), known(commit)) {
                (Some(revision), Some(commit)) => Answer::Is(self.contains(revision, commit)),
                _ => Answer::Unknown,
            },
            Question::Change(commit) => {
                known(commit).map_or(Answer::Unknown, |commit| Answer::Change(change(commit, self.paths(commit))))
            }
            Question::Others { tip, deployed, commit } => {
                let deployed: Vec<usize> = deployed.iter().filter_map(|id| known(id)).collect();
                let (Some(tip), Some(commit)) = (known(tip), known(commit)) else { return Answer::Unknown };
                let own = self.own(commit);
                let others = self.between(tip, &deployed).into_iter().filter(|other| !own.contains(other));
                Answer::Others(others.map(|other| change(other, self.commits[other].paths.clone())).collect())
            }
            Question::Reverts { tip, commit } => {
                let (Some(tip), Some(commit)) = (known(tip), known(commit)) else { return Answer::Unknown };
                let own = |revert: usize| OwnOrForeign {
                    commit: id(revert),
                    watch: self.commits[revert].reverts.clone().map(|(_, watch)| watch).unwrap_or_default(),
                };
                Answer::Reverts(self.reverts(tip, commit).into_iter().map(own).collect())
            }
            Question::Outside { .. } => Answer::Is(false),
            Question::Removal(_) => Answer::Unknown,
        }
    }
}
