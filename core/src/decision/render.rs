//! The words of an answer. They are read in the Argo CD dashboard and in a terminal at night: what is refused, by which
//! rule, which objects and who claims them, and what to do.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
};

use super::{Decision, Effect, Outcome, Severity};
use crate::{
    admission::{Operation, Request, Response},
    remedy::Remedy,
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
    let ways = ways_out(&refused);
    if ways.is_empty() {
        return clip(&text, MAX_MESSAGE);
    }
    let found = clip(&text, MAX_MESSAGE - ways.chars().count());
    let left = MAX_MESSAGE - ways.chars().count() - found.chars().count();
    found + &ways + &further_ways(&refused, &ways, left)
}

/// The way out is what people need most: so much room is made for one remedy of each rule.
const MAX_WAYS_OUT: usize = 650;

/// So many remedies of a group are looked at: a message has room for a few.
const MAX_REMEDIES: usize = 200;

/// So many groups are sure of a remedy of theirs.
const MAX_WAYS: usize = 3;

/// One remedy of each of the first groups: its best, or the next that fits. A command is never cut, so a remedy is there
/// whole or not at all.
fn ways_out(refused: &[Group<'_>]) -> String {
    let mut ways = String::new();
    let mut shown = 0;
    for group in refused {
        let remedies = texts(refused, group);
        if shown == MAX_WAYS || remedies.iter().any(|(_, remedy)| ways.contains(remedy)) {
            continue;
        }
        let left = MAX_WAYS_OUT.saturating_sub(ways.chars().count() + WHAT_TO_DO.len());
        if let Some((line, _)) = remedies.iter().find(|(line, _)| line.chars().count() <= left) {
            ways.push_str(line);
            shown += 1;
        }
    }
    if shown == 0 { String::new() } else { format!("{WHAT_TO_DO}{ways}") }
}

/// The other remedies that fit, a round at a time so that no group takes the room of the next.
fn further_ways(refused: &[Group<'_>], shown: &str, mut left: usize) -> String {
    let all: Vec<_> = refused.iter().map(|group| texts(refused, group)).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or_default();
    let mut ways = String::new();
    for round in 0..longest {
        for (line, remedy) in all.iter().filter_map(|lines| lines.get(round)) {
            let length = line.chars().count();
            if length <= left && !shown.contains(remedy) && !ways.contains(remedy) {
                ways.push_str(line);
                left -= length;
            }
        }
    }
    ways
}

const WHAT_TO_DO: &str = "\nWhat to do:";

/// The remedies of a group, as lines of the message and by themselves. One remedy of a rule suffices for that rule; where
/// several rules refuse, each line names its own, because each needs one.
fn texts(refused: &[Group<'_>], group: &Group<'_>) -> Vec<(String, String)> {
    let mut shown = HashSet::new();
    let rule = group.outcomes[0].finding.rule.id;
    let several = refused.iter().any(|other| other.outcomes[0].finding.rule.id != rule);
    let whose = if several { format!("[{rule}] ") } else { String::new() };
    let remedies = group.outcomes.iter().flat_map(|outcome| &outcome.finding.remedies).take(MAX_REMEDIES);
    let remedies = remedies.map(Remedy::to_string).filter(|remedy| shown.insert(remedy.clone()));
    remedies.map(|remedy| (format!("\n- {whose}{remedy}"), remedy)).collect()
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
    let mut said: HashSet<String> = lines.iter().cloned().collect();
    for group in
        groups(decision, |outcome| outcome.finding.severity == Severity::Warn && outcome.effect == Effect::Warned)
    {
        for outcome in group.outcomes {
            let finding = &outcome.finding;
            let text = if finding.detail.is_empty() { &finding.summary } else { &finding.detail };
            let line = warning(&format!("[{}] {text}", finding.rule.id));
            if said.insert(line.clone()) {
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
    let said: Vec<&Outcome> = decision.recorded().collect();
    let mut annotations = BTreeMap::new();
    let Some(worst) = decision.worst() else { return annotations };
    let mut put = |key: &str, values: Vec<&str>| {
        let mut known = HashSet::new();
        let mut unique: Vec<&str> =
            values.into_iter().filter(|value| !value.is_empty() && known.insert(*value)).collect();
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
    let evidence = || said.iter().filter_map(|outcome| outcome.finding.evidence.as_ref());
    put("approved-until", evidence().map(|evidence| evidence.until.as_str()).collect());
    put("reason", evidence().map(|evidence| evidence.reason.as_str()).collect());
    let exempted = said.iter().filter(|outcome| outcome.is_exempted());
    put("exempted-by", exempted.map(|outcome| outcome.resolved.decided_by.as_str()).collect());
    put("object", said.iter().map(|outcome| outcome.finding.detail.as_str()).collect());
    if let Some(glass) = &decision.break_glass {
        annotations.insert("break-glass".to_owned(), clip(&plain(&glass.reason), 200));
    }
    annotations
}
