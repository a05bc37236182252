//! What a decision found, by rule and check, for the words of an answer.

use super::{Decision, Outcome};

/// Findings of one rule and check with the same summary.
pub(super) struct Group<'a> {
    pub(super) outcomes: Vec<&'a Outcome>,
}

pub(super) fn groups(decision: &Decision, wanted: impl Fn(&Outcome) -> bool) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for outcome in decision.outcomes.iter().filter(|outcome| wanted(outcome)) {
        let same = |group: &&mut Group<'_>| {
            let first = &group.outcomes[0].finding;
            first.check == outcome.finding.check && first.summary == outcome.finding.summary
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.outcomes.push(outcome),
            None => groups.push(Group { outcomes: vec![outcome] }),
        }
    }
    groups
}

pub(super) fn label(group: &Group<'_>) -> String {
    group.outcomes[0].finding.check.to_string()
}

/// One line without control characters: what it quotes may be anything, and it is read in a terminal.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
