//! Prints a plan as a tree.

use std::{collections::HashMap, fmt::Write};

use super::Report;
use cascade_guard_core::{
    deletion::{Plan, Via},
    object::ObjectRef,
    text::some,
};

/// So many lines of a list are shown, unless all are wanted.
const SHOWN: usize = 20;

/// A tree is shown so deep, unless all of it is wanted, and never indented any deeper.
const MAX_DEPTH: usize = 16;

/// Draws a report. Long lists are folded, unless `all` is wanted.
pub(super) fn draw(report: &Report, plan: Option<&Plan>, all: bool) -> String {
    let mut text = String::new();
    let verdict = if report.allowed { "would be admitted" } else { "would be refused" };
    let _ = writeln!(text, "Deleting {} as {} {verdict}.", report.object, report.user);
    let count = |fate: &str| report.objects.iter().filter(|row| row.fate == fate).count();
    let (deleted, contested, spared, absent) = (count("deleted"), count("contested"), count("spared"), count("absent"));
    let absent = if absent > 0 { format!(", {absent} absent") } else { String::new() };
    let _ = writeln!(text, "{deleted} deleted, {contested} contested, {spared} spared{absent}\n");
    if let Some(plan) = plan {
        draw_tree(&mut text, report, plan, all);
    }
    if !report.unknown_claimants.is_empty() {
        let shown = if all { usize::MAX } else { SHOWN };
        let _ = writeln!(text, "\nNever compared, may claim any of it: {}", some(&report.unknown_claimants, shown));
    }
    if !report.unclaimed.is_empty() {
        text.push_str("\nGoes as well, although no Application lists it:\n");
        list(&mut text, &report.unclaimed, all, ToString::to_string);
    }
    if !report.not_read.is_empty() {
        text.push_str("\nNot read, so that nobody knows what of it goes:\n");
        list(&mut text, &report.not_read, all, |unread| format!("{} ({})", unread.what, unread.why));
    }
    if !report.hanging.is_empty() {
        text.push_str("\nMay hang, because somebody has to remove a finalizer:\n");
        list(&mut text, &report.hanging, all, |held| {
            let who =
                held.known.map(|known| format!(", of {}: {}", known.removed_by, known.advice)).unwrap_or_default();
            format!("{}: {}{who}", held.object, held.finalizer)
        });
    }
    if !report.findings.is_empty() {
        text.push_str("\nFindings:\n");
        list(&mut text, &report.findings, all, |finding| {
            format!("[{}] {} ({}, {})", finding.rule, finding.detail, finding.mode, finding.effect)
        });
    }
    if let Some(way_out) = report.message.split_once("What to do:\n").map(|(_, way_out)| way_out) {
        let _ = writeln!(text, "\nWhat to do:\n{way_out}");
    }
    text
}

/// The lines of a list; the first ones and a count, unless all are wanted.
fn list<T>(text: &mut String, items: &[T], all: bool, line: impl Fn(&T) -> String) {
    // One line is no longer than the line that says it is missing.
    let shown = if all || items.len() <= SHOWN + 1 { items.len() } else { SHOWN };
    for item in &items[..shown] {
        let _ = writeln!(text, "  {}", line(item));
    }
    if shown < items.len() {
        let _ = writeln!(text, "  … {} more, --all shows them", items.len() - shown);
    }
}

/// What is still to be drawn.
enum Branch {
    /// An object, and what stands before its line and before those below it.
    Object { place: usize, depth: usize, lead: String, rest: String },
    /// A line that says what is not drawn.
    Folded(String),
}

/// Draws the plan from its root down, each object once: below the first one drawn that it goes with.
fn draw_tree(text: &mut String, report: &Report, plan: &Plan, all: bool) {
    let below = Below::new(plan);
    let mut drawn = vec![false; plan.items.len()];
    drawn[0] = true;
    let mut left = vec![Branch::Object { place: 0, depth: 0, lead: String::new(), rest: String::new() }];
    while let Some(branch) = left.pop() {
        let (place, depth, lead, rest) = match branch {
            Branch::Object { place, depth, lead, rest } => (place, depth, lead, rest),
            Branch::Folded(line) => {
                let _ = writeln!(text, "{line}");
                continue;
            }
        };
        let _ = writeln!(text, "{lead}{}", line(report, plan, place));
        let mut children = below.of(plan, place, &drawn);
        for child in &children {
            drawn[*child] = true;
        }
        let most = if depth < MAX_DEPTH { SHOWN } else { 0 };
        let hidden = if all { Vec::new() } else { fold(report, &mut children, most) };
        let last = if hidden.is_empty() { children.len().checked_sub(1) } else { None };
        if !hidden.is_empty() {
            left.push(Branch::Folded(format!("{rest}└─ {}", folded(report, &hidden, children.is_empty()))));
        }
        // What is pushed last is drawn first.
        left.extend(children.into_iter().enumerate().rev().map(|(index, place)| {
            let (lead, more) = if Some(index) == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            // Deeper than this a line is only pushed out of sight.
            let below = if depth < MAX_DEPTH { format!("{rest}{more}") } else { rest.clone() };
            Branch::Object { place, depth: depth + 1, lead: format!("{rest}{lead}"), rest: below }
        }));
    }
}

fn folded(report: &Report, hidden: &[usize], is_everything: bool) -> String {
    let contested = hidden.iter().filter(|child| report.objects[**child].fate == "contested").count();
    let contested = if contested > 0 { format!(", {contested} of them CONTESTED") } else { String::new() };
    let more = if is_everything { "below" } else { "more" };
    format!("… {} {more}{contested}, --all shows them", hidden.len())
}

/// Leaves at most so many children, what is contested before anything else, and gives those that were left out.
fn fold(report: &Report, children: &mut Vec<usize>, most: usize) -> Vec<usize> {
    // One line is no longer than the line that says it is missing.
    if children.len() <= most + 1 && most > 0 {
        return Vec::new();
    }
    children.sort_by_key(|child| (report.objects[*child].fate != "contested", *child));
    let hidden = children.split_off(most.min(children.len()));
    children.sort_unstable();
    hidden
}

fn line(report: &Report, plan: &Plan, place: usize) -> String {
    let row = &report.objects[place];
    let name = if row.object.name.is_empty() { plan.items[place].label() } else { row.object.to_string() };
    let mut notes = Vec::new();
    if !row.claimed_by.is_empty() {
        notes.push(format!("claimed by {}", row.claimed_by.join(", ")));
    }
    if !row.why.is_empty() {
        notes.push(row.why.clone());
    }
    let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join("; ")) };
    let mark = match row.fate {
        "spared" => "  spared",
        "contested" => "  CONTESTED",
        "absent" => "  absent",
        _ => "",
    };
    format!("{name}{mark}{notes}")
}

/// What goes because something else goes, looked up once for the whole plan.
struct Below<'a> {
    /// Places of what the cascade of an Application takes, by the Application.
    cascades: HashMap<ObjectRef, Vec<usize>>,
    generated: Vec<usize>,
    namespaces: HashMap<&'a str, Vec<usize>>,
    instances: Vec<usize>,
}

impl<'a> Below<'a> {
    fn new(plan: &'a Plan) -> Self {
        let takers: Vec<ObjectRef> = plan.takers.iter().map(|taker| taker.app.object()).collect();
        let mut below =
            Self { cascades: HashMap::new(), generated: Vec::new(), namespaces: HashMap::new(), instances: Vec::new() };
        for (place, item) in plan.items.iter().enumerate() {
            match &item.via {
                Via::Root => {}
                Via::Cascade => {
                    for taker in item.takers.iter().filter_map(|(taker, _)| takers.get(*taker)) {
                        below.cascades.entry(taker.clone()).or_default().push(place);
                    }
                }
                Via::Generated => below.generated.push(place),
                Via::Namespace(name) => below.namespaces.entry(name).or_default().push(place),
                Via::Definition => below.instances.push(place),
            }
        }
        below
    }

    /// Places of what goes because the item at `place` goes, as far as it is not drawn yet.
    fn of(&self, plan: &Plan, place: usize, drawn: &[bool]) -> Vec<usize> {
        let parent = &plan.items[place];
        let mut found: Vec<usize> = Vec::new();
        if let Some(object) = &parent.object {
            found.extend(self.cascades.get(object).into_iter().flatten());
            if object.is_namespace() {
                found.extend(self.namespaces.get(object.name.as_str()).into_iter().flatten());
            }
        }
        // Whatever was generated stands below the first set.
        if parent.kind.kind == "ApplicationSet" && self.generated.first().is_some_and(|first| !drawn[*first]) {
            found.extend(&self.generated);
        }
        if place == 0 {
            found.extend(&self.instances);
        }
        found.retain(|child| !drawn[*child]);
        found.sort_unstable();
        found.dedup();
        found
    }
}
