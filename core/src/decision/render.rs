//! The words of an answer. They are read in the Argo CD dashboard and in a terminal at night: what is refused, by which
//! rule, which objects and who claims them, and what to do.

use std::{collections::BTreeMap, fmt::Write};

use super::{Decision, Effect, Outcome, Severity};
use crate::{
    admission::{Operation, Request, Response},
    text::clip,
};

/// A message is cut so as not to exceed this many characters.
const MAX_MESSAGE: usize = 1000;
/// So many objects are named for each rule, then they are counted.
const MAX_OBJECTS: usize = 5;
/// A longer warning is cut; the API server asks for 120 at most.
const MAX_WARNING: usize = 120;
/// So many warnings go out; the last one becomes a count if there are more.
const MAX_WARNINGS: usize = 5;
/// What would be refused is said in so many lines.
const MAX_WOULD_REFUSE: usize = 2;

/// Findings of one rule and check with the same summary.
struct Group<'a> {
    outcomes: Vec<&'a Outcome>,
}

fn groups(decision: &Decision, wanted: impl Fn(&Outcome) -> bool) -> Vec<Group<'_>> {
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

/// Turns a decision into the answer to `request`.
pub fn render(decision: &Decision, request: &Request<'_>) -> Response {
    let allowed = decision.allowed();
    Response {
        allowed,
        message: if allowed { String::new() } else { message(decision, request) },
        warnings: warnings(decision),
        audit_annotations: audit_annotations(decision),
    }
}

fn message(decision: &Decision, request: &Request<'_>) -> String {
    let verb = match request.operation {
        Operation::Delete => "delete",
        Operation::Create => "create",
        Operation::Update | Operation::Connect => "change",
    };
    let mut lines = vec![format!("cascade-guard refuses to {verb} {}.", request.target)];
    let mut notes: Vec<&str> = Vec::new();
    let mut refused = groups(decision, |outcome| outcome.effect == Effect::Refused);
    // What is wrong with the object itself comes before what is wrong with something it takes along.
    refused.sort_by_key(|group| group.outcomes.iter().all(|outcome| outcome.finding.object != request.target));
    for group in &refused {
        let first = &group.outcomes[0].finding;
        let details: Vec<_> = group.outcomes.iter().filter(|outcome| !outcome.finding.detail.is_empty()).collect();
        // The number stands in front, where nothing is ever cut.
        let number = if details.len() > MAX_OBJECTS { format!(" ({} in all)", details.len()) } else { String::new() };
        lines.push(format!("[{}] {}{number}", label(group), first.summary));
        // Names can be long; where few are named they are named whole.
        let each = (600 / details.len().max(1)).max(200);
        for outcome in details.iter().take(MAX_OBJECTS) {
            lines.push(format!("- {}", clip(&plain(&outcome.finding.detail), each)));
        }
        if details.len() > MAX_OBJECTS {
            lines.push(format!("- and {} more", details.len() - MAX_OBJECTS));
        }
        notes.extend(group.outcomes.iter().flat_map(|outcome| outcome.finding.notes.iter().map(String::as_str)));
    }
    lines.extend(notes.iter().map(|note| clip(&plain(note), 200)));
    let text = lines.join("\n");
    let (first, rest) = remedies(&refused);
    if first.is_empty() {
        return clip(&text, MAX_MESSAGE);
    }
    // The way out is what people need most: room is made for one remedy of each rule, the others follow where they fit.
    let mut way_out = String::from("\nWhat to do:");
    let each = MAX_MESSAGE / 2 / first.len();
    for remedy in first {
        let _ = write!(way_out, "\n> {}", clip(&plain(remedy), each));
    }
    let found = clip(&text, MAX_MESSAGE - way_out.chars().count());
    let mut left = MAX_MESSAGE - way_out.chars().count() - found.chars().count();
    for remedy in rest {
        let line = format!("\n> {}", plain(remedy));
        let length = line.chars().count();
        if length <= left {
            way_out.push_str(&line);
            left -= length;
        }
    }
    found + &way_out
}

/// So many groups are sure of a remedy of theirs.
const MAX_WAYS: usize = 3;

/// The first remedy of each group, and all others, a round at a time so that no group takes the room of the next.
fn remedies<'a>(refused: &[Group<'a>]) -> (Vec<&'a str>, Vec<&'a str>) {
    let of = |group: &Group<'a>| -> Vec<&'a str> {
        group.outcomes.iter().flat_map(|outcome| &outcome.finding.remedies).map(String::as_str).collect()
    };
    let all: Vec<Vec<&str>> = refused.iter().map(of).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or_default();
    let mut in_turn: Vec<&str> = Vec::new();
    for round in 0..longest {
        for remedy in all.iter().filter_map(|remedies| remedies.get(round)) {
            if !in_turn.contains(remedy) {
                in_turn.push(remedy);
            }
        }
    }
    let mut first: Vec<&str> = Vec::new();
    for remedy in all.iter().filter_map(|remedies| remedies.first()) {
        if !first.contains(remedy) && first.len() < MAX_WAYS {
            first.push(remedy);
        }
    }
    in_turn.retain(|remedy| !first.contains(remedy));
    (first, in_turn)
}

fn label(group: &Group<'_>) -> String {
    group.outcomes[0].finding.check.to_string()
}

fn warnings(decision: &Decision) -> Vec<String> {
    let mut lines = Vec::new();
    let broken = decision.outcomes.iter().any(|outcome| outcome.effect == Effect::BrokeGlass);
    if let Some(glass) = decision.break_glass.as_ref().filter(|_| broken) {
        lines.push(warning(&format!("cascade-guard: glass broken ({}); every rule is waived", glass.reason)));
    }
    let would_refuse = groups(decision, |outcome| {
        outcome.finding.severity == Severity::Deny && matches!(outcome.effect, Effect::Warned | Effect::BrokeGlass)
    });
    let hidden = would_refuse.len().saturating_sub(MAX_WOULD_REFUSE);
    for group in would_refuse.iter().take(MAX_WOULD_REFUSE) {
        let first = &group.outcomes[0].finding;
        let more = (group.outcomes.len() - 1) + hidden;
        let tail = if more > 0 { format!(" (+{more} more)") } else { String::new() };
        let what = if first.detail.is_empty() { &first.summary } else { &first.detail };
        lines.push(warning_with(&format!("[{}] would deny: {what}", label(group)), &tail));
    }
    for group in
        groups(decision, |outcome| outcome.finding.severity == Severity::Warn && outcome.effect == Effect::Warned)
    {
        for outcome in group.outcomes {
            let finding = &outcome.finding;
            let text = if finding.detail.is_empty() { &finding.summary } else { &finding.detail };
            let line = warning(&format!("[{}] {text}", finding.rule.id));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    if lines.len() > MAX_WARNINGS {
        let more = lines.len() - (MAX_WARNINGS - 1);
        lines.truncate(MAX_WARNINGS - 1);
        lines.push(format!("cascade-guard: and {more} more warnings"));
    }
    lines
}

/// The API server drops a warning with a control character and cuts long ones.
pub(super) fn warning(text: &str) -> String {
    warning_with(text, "")
}

fn warning_with(text: &str, tail: &str) -> String {
    format!("{}{}", clip(&plain(text), MAX_WARNING - tail.chars().count()), plain(tail))
}

/// One line without control characters: what it quotes may be anything, and it is read in a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn audit_annotations(decision: &Decision) -> BTreeMap<String, String> {
    let said: Vec<&Outcome> = decision.said().collect();
    let mut annotations = BTreeMap::new();
    let Some(worst) = decision.worst() else { return annotations };
    let mut put = |key: &str, values: Vec<&str>| {
        let mut unique: Vec<&str> = Vec::new();
        for value in values {
            if !value.is_empty() && !unique.contains(&value) {
                unique.push(value);
            }
        }
        if !unique.is_empty() {
            let more = unique.len().saturating_sub(MAX_OBJECTS);
            unique.truncate(MAX_OBJECTS);
            let mut text = unique.join(",");
            if more > 0 {
                let _ = write!(text, ",+{more}");
            }
            annotations.insert(key.to_owned(), clip(&plain(&text), 500));
        }
    };
    put("decision", vec![worst.word()]);
    put("mode", vec![worst.resolved.mode.as_str()]);
    put("rule", said.iter().map(|outcome| outcome.finding.rule.id).collect());
    put("claimed-by", said.iter().flat_map(|outcome| outcome.finding.claimants.iter().map(String::as_str)).collect());
    put("approved-by", said.iter().map(|outcome| outcome.finding.approved_by.as_str()).collect());
    put("object", said.iter().map(|outcome| outcome.finding.detail.as_str()).collect());
    if let Some(glass) = &decision.break_glass {
        annotations.insert("break-glass".to_owned(), clip(&plain(&glass.reason), 200));
    }
    annotations
}
