//! Prints a comparison as a table for people.

use std::fmt::Write;

use cascade_guard_core::overlap::{Comparison, ListEntry, SharedObject};

/// At most this many differences of one object are shown; `-o json` shows all of them.
const MAX_DIFFERENCES: usize = 5;

pub(super) fn draw(comparison: &Comparison) -> String {
    let Comparison { a, b, .. } = comparison;
    let mut text = String::new();
    if comparison.is_clean() {
        let _ = writeln!(text, "{a} and {b} hold nothing in common.");
    } else {
        let count = comparison.objects.len();
        let _ = match count {
            0 => writeln!(text, "{a} and {b} hold no object in common."),
            1 => writeln!(text, "{a} and {b} both hold 1 object."),
            _ => writeln!(text, "{a} and {b} both hold {count} objects."),
        };
    }
    let mut rows = vec![["OBJECT", "HELD BY", "IN A", "IN B", "IF A WERE DELETED NOW"].map(str::to_owned)];
    rows.extend(comparison.objects.iter().map(cells));
    if comparison.objects.iter().any(|row| row.in_a.is_some() || row.in_b.is_some()) {
        text.push('\n');
        text.push_str(&columns(&rows));
    }
    for row in comparison.objects.iter().filter(|row| !row.remarks.is_empty() || !row.differences.is_empty()) {
        let _ = writeln!(text, "\n{}", row.object);
        for remark in &row.remarks {
            let _ = writeln!(text, "  {remark}");
        }
        for difference in row.differences.iter().take(MAX_DIFFERENCES) {
            let _ = writeln!(text, "  {difference}");
        }
        if row.differences.len() > MAX_DIFFERENCES {
            let _ = writeln!(text, "  and {} more differences", row.differences.len() - MAX_DIFFERENCES);
        }
    }
    if !comparison.taken_along.is_empty() {
        let _ = writeln!(text, "\nThe deletion of {a} would also take of {b}: {}", comparison.taken_along.join("; "));
    }
    for note in &comparison.notes {
        let _ = writeln!(text, "\nNote: {note}");
    }
    if !comparison.steps.is_empty() {
        let _ =
            writeln!(text, "\nTo move them from {a} to {b}, one after the other, each only after the check before it:");
    }
    for (number, step) in (1..).zip(&comparison.steps) {
        let done = if step.done { " (is so already)" } else { "" };
        let _ = writeln!(text, "\n{number}. {}{done}", step.title);
        for command in &step.commands {
            let _ = writeln!(text, "    {command}");
        }
        for check in &step.check {
            let _ = writeln!(text, "   check: {check}");
        }
    }
    text
}

fn cells(row: &SharedObject) -> [String; 5] {
    let listed = |listed: &Option<ListEntry>| match listed {
        None => "manifest".to_owned(),
        Some(ListEntry { status, wave: 0 }) => (*status).to_owned(),
        Some(ListEntry { status, wave }) => format!("{status}, wave {wave}"),
    };
    let fate = match (row.fate, row.why.as_str()) {
        (fate, "") => fate.to_owned(),
        (fate, why) => format!("{fate}: {why}"),
    };
    [row.object.to_string(), row.held_by.clone(), listed(&row.in_a), listed(&row.in_b), fate]
}

/// Left-aligned columns with two spaces between them.
fn columns(rows: &[[String; 5]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
    }
    text
}
