//! The message of a refusal. Argo CD shows it as one paragraph, so the first line says by itself what is refused, why and
//! for whose sake. What costs most comes first, and of each rule at least one object is always named.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    Decision, Effect, Finding,
    groups::{Group, groups, label, plain},
};
use crate::{
    admission::{Operation, Request},
    catalog,
    remedy::Remedy,
    text::{clip, plural, some},
};

/// A message is cut so as not to exceed this many characters.
pub(super) const MAX_MESSAGE: usize = 1000;
/// So many objects are named for each rule, then they are counted.
pub(super) const MAX_OBJECTS: usize = 5;
/// So many claimants stand in the first line.
const MAX_CLAIMANTS: usize = 2;
/// So many objects of each rule are named before any note.
const FEW: usize = 3;
/// So many notes are looked at; no more fit.
const MAX_NOTES: usize = 12;
/// A note is cut so as not to exceed this many characters.
const MAX_NOTE: usize = 200;

/// What is said of one rule and check.
struct Paragraph<'a> {
    group: &'a Group<'a>,
    /// What it found: a line for each object, or one for several of which the same is true.
    facts: Vec<String>,
}

impl<'a> Paragraph<'a> {
    fn new(group: &'a Group<'a>) -> Self {
        Self { group, facts: facts(group) }
    }

    /// The rule, and what it is about. The number stands in front, where nothing is ever cut.
    fn head(&self) -> String {
        let all =
            if self.facts.len() > MAX_OBJECTS { format!(" ({} in all)", self.facts.len()) } else { String::new() };
        format!("[{}] {}{all}", label(self.group), self.group.outcomes[0].finding.summary)
    }

    /// The head of the first paragraph, with those for whose sake it is.
    fn opening(&self) -> String {
        let summary = &self.group.outcomes[0].finding.summary;
        let claimants: BTreeSet<&String> =
            self.group.outcomes.iter().flat_map(|outcome| &outcome.finding.claimants).collect();
        let claimants: Vec<&String> = claimants.into_iter().filter(|name| !summary.contains(*name)).collect();
        let whose = if claimants.is_empty() { "" } else { ": " };
        format!("{}{whose}{}", self.head(), some(&claimants, MAX_CLAIMANTS))
    }

    fn lines(&self, shown: usize) -> impl Iterator<Item = String> {
        let hidden = self.facts.len().saturating_sub(shown);
        let more = (hidden > 0).then(|| format!("- and {hidden} more"));
        // Names can be long; where few are named they are named whole.
        let each = (600 / self.facts.len().max(1)).max(200);
        self.facts.iter().take(shown).map(move |fact| format!("- {}", clip(fact, each))).chain(more)
    }
}

/// What a group found. Objects of which the same is true share a line.
fn facts(group: &Group<'_>) -> Vec<String> {
    let mut shared: HashMap<&str, usize> = HashMap::new();
    let mut facts: Vec<(&str, Vec<&Finding>)> = Vec::new();
    for finding in group.outcomes.iter().map(|outcome| &outcome.finding).filter(|finding| !finding.detail.is_empty()) {
        let named = finding.object.to_string();
        let Some(fact) = finding.detail.strip_prefix(&named).and_then(|rest| rest.strip_prefix(": ")) else {
            facts.push((&finding.detail, vec![finding]));
            continue;
        };
        let place = *shared.entry(fact).or_insert(facts.len());
        match facts.get_mut(place) {
            Some((_, findings)) => findings.push(finding),
            None => facts.push((fact, vec![finding])),
        }
    }
    let line = |(fact, findings): (&str, Vec<&Finding>)| {
        if let [finding] = findings[..] {
            return plain(&finding.detail);
        }
        let kind = &findings[0].object.kind;
        let alike = findings.iter().all(|finding| finding.object.kind == *kind);
        let name = |finding: &&Finding| if alike { finding.object.path() } else { finding.object.to_string() };
        let names: Vec<String> = findings.iter().map(name).collect();
        let kinds = if alike { format!("{} ", plural(names.len(), &kind.kind)) } else { String::new() };
        plain(&format!("each of {kinds}{}: {fact}", some(&names, MAX_OBJECTS)))
    };
    facts.into_iter().map(line).collect()
}

/// The message of a refusal of `request`.
pub(super) fn message(decision: &Decision, request: &Request<'_>) -> String {
    let what = match request.operation {
        Operation::Delete => "delete",
        Operation::Create => "creation",
        Operation::Update | Operation::Connect => "change",
    };
    let denied = format!("cascade-guard denied the {what} of {}", request.target);
    let mut refused = groups(decision, |outcome| outcome.effect == Effect::Refused);
    // To lose Argo CD itself costs most. Then, what is wrong with the object comes before what is wrong with something it
    // takes along.
    refused.sort_by_key(|group| {
        let control_plane = group.outcomes[0].finding.rule.id == catalog::control_plane::META.id;
        let about_itself = group.outcomes.iter().any(|outcome| outcome.finding.object == request.target);
        (!control_plane, !about_itself)
    });
    let ways = ways_out(&refused);
    let paragraphs: Vec<Paragraph<'_>> = refused.iter().map(Paragraph::new).collect();
    let note = decision.note.as_ref().map_or_else(String::new, |note| format!(" {}.", plain(note)));
    let room = MAX_MESSAGE - ways.chars().count();
    let found = fit(&paragraphs, &format!("{denied}.{note}"), room);
    let left = room - found.chars().count();
    let further = if ways.is_empty() { String::new() } else { further_ways(&refused, &ways, left) };
    found + &ways + &further
}

/// The paragraphs below `denied`, in so many characters. Of many objects some are counted, then notes are left out, and of
/// each paragraph the first object stays.
fn fit(paragraphs: &[Paragraph<'_>], denied: &str, room: usize) -> String {
    let mut shown: Vec<usize> = paragraphs.iter().map(|paragraph| paragraph.facts.len().min(MAX_OBJECTS)).collect();
    let outcomes = paragraphs.iter().flat_map(|paragraph| &paragraph.group.outcomes);
    let mut notes: Vec<String> = Vec::new();
    for note in outcomes.flat_map(|outcome| &outcome.finding.notes).take(MAX_NOTES) {
        let note = clip(&plain(note), MAX_NOTE);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    loop {
        let mut lines = Vec::new();
        for (place, paragraph) in paragraphs.iter().enumerate() {
            lines.push(if place == 0 { format!("{denied} {}", paragraph.opening()) } else { paragraph.head() });
            lines.extend(paragraph.lines(shown[place]));
        }
        lines.extend(notes.iter().cloned());
        let text = lines.join("\n");
        match shown.iter_mut().max() {
            _ if text.chars().count() <= room => return text,
            Some(most) if *most > FEW => *most -= 1,
            _ if notes.pop().is_some() => {}
            Some(most) if *most > 1 => *most -= 1,
            _ => return clip(&text, room),
        }
    }
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
    let rule = group.outcomes[0].finding.rule.id;
    let several = refused.iter().any(|other| other.outcomes[0].finding.rule.id != rule);
    let whose = if several { format!("[{rule}] ") } else { String::new() };
    let remedies = group.outcomes.iter().flat_map(|outcome| &outcome.finding.remedies).take(MAX_REMEDIES);
    let mut shown = HashSet::new();
    let remedies = remedies.map(Remedy::to_string).filter(|remedy| shown.insert(remedy.clone()));
    remedies.map(|remedy| (format!("\n- {whose}{remedy}"), remedy)).collect()
}
