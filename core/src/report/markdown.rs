//! A comment on a pull request: the worst first, folded, and never longer than a forge takes.

use std::fmt::Write;

use super::{Report, ReportFinding};
use crate::{decision::Severity, text::count};

/// GitHub takes 65,536 characters and GitLab a million; this leaves room for a header.
const MAX: usize = 60_000;

/// So many findings stand open; the others are folded.
const OPEN: usize = 5;

/// What a program finds its own comment by.
const MARK: &str = "<!-- cascade-guard -->";

pub(super) fn write(report: &Report) -> String {
    let mut text = format!("{MARK}\n### cascade-guard {}: {}\n", report.tool.command, report.tally());
    let parts: Vec<(Severity, String)> =
        report.findings.iter().map(|finding| (finding.severity, part(finding))).collect();
    // What is folded takes its head and its end along, and what is left out is counted.
    let reserve = 400;
    let (mut written, mut folded) = (0, None);
    for (index, (severity, part)) in parts.iter().enumerate() {
        let fold = index >= OPEN || *severity == Severity::Warn;
        if text.chars().count() + part.chars().count() + reserve > MAX {
            break;
        }
        if fold && folded != Some(*severity) {
            if folded.is_some() {
                text.push_str("\n</details>\n");
            }
            let rest = parts[index..].iter().filter(|(other, _)| other == severity).count();
            let (more, word) = match severity {
                Severity::Deny => ("more ", "error"),
                Severity::Warn => ("", "warning"),
            };
            let _ = write!(text, "\n<details>\n<summary>{}</summary>\n", counted(rest, more, word));
            folded = Some(*severity);
        }
        text.push_str(part);
        written += 1;
    }
    if folded.is_some() {
        text.push_str("\n</details>\n");
    }
    if written < parts.len() {
        let _ = write!(
            text,
            "\n{} did not fit into this comment; `-o json` has everything.\n",
            count(parts.len() - written, "finding")
        );
    }
    text
}

fn counted(number: usize, more: &str, word: &str) -> String {
    let all = count(number, word);
    if more.is_empty() { all } else { all.replacen(' ', &format!(" {more}"), 1) }
}

/// One finding.
fn part(finding: &ReportFinding) -> String {
    let icon = match finding.severity {
        Severity::Deny => "🛑",
        Severity::Warn => "⚠️",
    };
    let mut text = format!("\n{icon} {} · {}\n", code(&finding.object.to_string()), code(&finding.label()));
    let _ = writeln!(text, "{}", plain(finding.sentence()));
    if !finding.claimants.is_empty() && !finding.claimants.iter().all(|app| finding.sentence().contains(app)) {
        let names: Vec<String> = finding.claimants.iter().map(|name| code(name)).collect();
        let _ = writeln!(text, "Claimed by {}", names.join(", "));
    }
    if let Some(location) = finding.location.as_ref().filter(|location| !location.file.is_empty()) {
        let _ = writeln!(text, "In {}", code(&location.to_string()));
    }
    for remedy in &finding.remedies {
        let _ = writeln!(text, "- {}", plain(&remedy.text));
        for command in &remedy.commands {
            let _ = writeln!(text, "  {}", code(command.as_str()));
        }
    }
    text
}

/// Text that is not taken for Markdown, for HTML or for the name of a person.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '&' => plain.push_str("&amp;"),
            '@' => plain.push_str("&#64;"),
            '\n' | '\r' => plain.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => plain.extend(['\\', c]),
            c => plain.push(c),
        }
    }
    plain
}

/// A span of code, whatever stands in it.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use crate::{
        decision::Severity,
        report::{Format, tests::sample},
    };

    #[test]
    fn worst_stands_open_and_warnings_are_folded() {
        let text = sample().write(Format::Markdown).unwrap();
        let error = text.find("sync-wave/malformed-wave").unwrap();
        let fold = text.find("<details>\n<summary>1 warning</summary>").unwrap();
        assert!(text.starts_with("<!-- cascade-guard -->\n### cascade-guard "), "{text}");
        assert!(error < fold && text.trim_end().ends_with("</details>"), "{text}");
        assert!(
            text.contains("Claimed by `argocd/a`, `argocd/b`") && text.contains("In `out/job,a.yaml:7:3`"),
            "{text}"
        );
    }

    #[test]
    fn nothing_in_it_is_taken_for_markup() {
        let mut report = sample();
        report.findings[0].detail = "a <b> & `c` *d* @e [f](g)\nh".to_owned();
        report.findings[0].object.name = "x`y</details>".to_owned();
        let text = report.write(Format::Markdown).unwrap();
        assert!(text.contains("a &lt;b&gt; &amp; \\`c\\` \\*d\\* &#64;e \\[f\\](g) h"), "{text}");
        assert!(text.contains("`` Job shop/x`y</details> ``"), "{text}");
    }

    #[test]
    fn comment_is_never_too_long_and_says_what_it_leaves_out() {
        let mut report = sample();
        let one = report.findings[0].clone();
        for number in 0..2_000 {
            let mut next = one.clone();
            next.object.name = format!("job-{number}");
            next.severity = if number % 2 == 0 { Severity::Deny } else { Severity::Warn };
            report.findings.push(next);
        }
        report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let text = report.write(Format::Markdown).unwrap();
        assert!(text.chars().count() < 60_000, "{}", text.chars().count());
        assert!(text.contains("findings did not fit into this comment"), "{}", &text[text.len() - 300..]);
        assert_eq!(text.matches("<details>").count(), text.matches("\n</details>").count());
    }
}
