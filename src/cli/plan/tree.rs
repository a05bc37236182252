//! Prints a plan as a tree.

use std::fmt::Write;

use super::Report;
use cascade_guard_core::deletion::{Item, Plan, Via};

pub(super) fn draw(report: &Report, plan: Option<&Plan>) -> String {
    let mut text = String::new();
    let verdict = if report.allowed { "would be admitted" } else { "would be refused" };
    let _ = writeln!(text, "Deleting {} as {} {verdict}.", report.object, report.user);
    let count = |fate: &str| report.objects.iter().filter(|row| row.fate == fate).count();
    let (deleted, contested, spared, absent) = (count("deleted"), count("contested"), count("spared"), count("absent"));
    let absent = if absent > 0 { format!(", {absent} absent") } else { String::new() };
    let _ = writeln!(text, "{deleted} deleted, {contested} contested, {spared} spared{absent}\n");
    if let Some(plan) = plan {
        let mut drawn = vec![false; plan.items.len()];
        branch(&mut text, report, plan, 0, "", "", &mut drawn);
    }
    if !report.unknown_claimants.is_empty() {
        let _ = writeln!(text, "\nNever compared, may claim any of it: {}", report.unknown_claimants.join(", "));
    }
    if !report.unclaimed.is_empty() {
        text.push_str("\nGoes as well, although no Application lists it:\n");
        for object in &report.unclaimed {
            let _ = writeln!(text, "  {object}");
        }
    }
    if !report.not_read.is_empty() {
        text.push_str("\nNot read, so that nobody knows what of it goes:\n");
        for unread in &report.not_read {
            let _ = writeln!(text, "  {} ({})", unread.what, unread.why);
        }
    }
    if !report.hanging.is_empty() {
        text.push_str("\nMay hang, because somebody has to remove a finalizer:\n");
        for held in &report.hanging {
            let who =
                held.known.map(|known| format!(", of {}: {}", known.removed_by, known.advice)).unwrap_or_default();
            let _ = writeln!(text, "  {}: {}{who}", held.object, held.finalizer);
        }
    }
    if !report.findings.is_empty() {
        text.push_str("\nFindings:\n");
        for finding in &report.findings {
            let _ = writeln!(text, "  [{}] {} ({}, {})", finding.rule, finding.detail, finding.mode, finding.effect);
        }
    }
    if let Some(way_out) = report.message.split_once("What to do:\n").map(|(_, way_out)| way_out) {
        let _ = writeln!(text, "\nWhat to do:\n{way_out}");
    }
    text
}

fn branch(text: &mut String, report: &Report, plan: &Plan, place: usize, lead: &str, rest: &str, drawn: &mut [bool]) {
    drawn[place] = true;
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
    let _ = writeln!(text, "{lead}{name}{mark}{notes}");
    let children: Vec<usize> =
        (0..plan.items.len()).filter(|child| !drawn[*child] && belongs(plan, place, &plan.items[*child])).collect();
    for child in &children {
        drawn[*child] = true;
    }
    for (index, child) in children.iter().enumerate() {
        let last = index + 1 == children.len();
        let (branch_lead, branch_rest) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        branch(text, report, plan, *child, &format!("{rest}{branch_lead}"), &format!("{rest}{branch_rest}"), drawn);
    }
}

/// Whether `item` goes because the item at `place` goes.
fn belongs(plan: &Plan, place: usize, item: &Item) -> bool {
    let parent = &plan.items[place];
    match &item.via {
        Via::Root => false,
        Via::Cascade => plan.takers_of(item).any(|taker| parent.object.as_ref() == Some(&taker.app.object())),
        Via::Generated => parent.kind.kind == "ApplicationSet",
        Via::Namespace(name) => {
            parent.object.as_ref().is_some_and(|object| object.is_namespace() && object.name == **name)
        }
        Via::Definition => place == 0,
    }
}
