//! The audit as tables for a terminal. What needs attention comes first.

use std::fmt::Write;

use jiff::SignedDuration;

use super::{ApprovalValidity, Document, Refusal, Stuck};
use cascade_guard_core::text::span;
use cascade_guard_core::{policy::Mode, remedy::Remedy, report::ReportFinding};

/// So many rows of a section are shown; JSON has them all.
const MAX_ROWS: usize = 40;

/// Draws it.
pub fn draw(document: &Document) -> String {
    let audit = &document.audit;
    let mut text = String::new();
    let counts = audit.counts;
    let _ = writeln!(
        text,
        "{} Applications, {} ApplicationSets and {} Namespaces with {} claims, at {}",
        counts.applications, counts.application_sets, counts.namespaces, counts.claims, document.generated_at
    );
    let modes: Vec<String> = audit.modes.iter().map(|(rule, mode)| format!("{rule} {}", mode.as_str())).collect();
    let _ = writeln!(text, "Modes: {}", modes.join(", "));

    section(&mut text, "Deleted while the guard did not answer", &audit.failed_open, |failed| {
        let verdict = match (failed.known, failed.refusals.first()) {
            (false, _) => "not judged: it is not in the snapshot".to_owned(),
            (true, None) => "would have passed".to_owned(),
            (true, Some(refusal)) => format!("would have been refused: [{}] {}", refusal.rule, first(refusal)),
        };
        vec![failed.sentence(), format!("  {verdict}")]
    });
    let wrong: Vec<&Refusal> = audit.refusals.iter().filter(|refusal| !refusal.expected).collect();
    section_of(&mut text, "Deletes that take too much", audit.too_much(), &wrong, |refusal| refused(refusal));
    section(&mut text, "Stuck in Terminating", &audit.terminating, stuck);
    section(&mut text, "Hooks whose order cannot work", &audit.hooks, |finding| {
        vec![format!("{}  [{}] {}", finding.object, finding.label(), finding.sentence())]
    });
    section(&mut text, "Claimed by several Applications", &audit.overlaps, |overlap| {
        let name = if overlap.object.name.is_empty() { " (its name is not known)" } else { "" };
        let tracked = overlap.tracked_by.as_ref().map(|app| format!("  (tracked by {app})")).unwrap_or_default();
        vec![format!("{}{name}  {}{tracked}", overlap.object, overlap.claimants.join(", "))]
    });
    section(&mut text, "Lists not to be believed", &audit.untrusted, |untrusted| {
        let since = untrusted.since.map_or_else(|| "always".to_owned(), |since| since.to_string());
        vec![format!("{}  since {since}: {}", untrusted.object.path(), untrusted.why)]
    });
    section(&mut text, "Argo CDs that are not settled", &audit.installations, |row| {
        let mut lines = vec![row.detail.clone()];
        lines.extend(way("  ", &row.remedy));
        lines
    });
    section(&mut text, "Less protected than the rules say", &audit.unprotected, |row| {
        let place = if row.namespace.is_empty() { "every Namespace" } else { &row.namespace };
        vec![format!(
            "{place}  {} {}, by {} ({} Applications)",
            row.rule,
            row.mode.as_str(),
            row.decided_by,
            row.applications
        )]
    });
    section(&mut text, "Approvals", &audit.approvals, |approval| {
        let state = match approval.state {
            ApprovalValidity::Broken => "BROKEN",
            ApprovalValidity::Expired => "EXPIRED",
            ApprovalValidity::Ending => "about to end",
            ApprovalValidity::Pending => "waits to be used",
        };
        let why =
            if approval.problems.is_empty() { String::new() } else { format!(": {}", approval.problems.join("; ")) };
        // A broken approval may lack either.
        let said = |word: &str, value: &str| if value.is_empty() { String::new() } else { format!(" {word} {value}") };
        let (by, until) = (said("by", &approval.by), said("until", &approval.until));
        let comma = if by.is_empty() && until.is_empty() { "" } else { "," };
        vec![format!("{}  {state}{comma}{by}{until}{why}", approval.namespace)]
    });
    let guarded = audit.guarded();
    if guarded > 0 {
        let how = if audit.refusals.iter().any(|refusal| refusal.expected && refusal.refused) {
            "are kept: deleting one needs an approval, and nothing claimed in it"
        } else {
            "would be kept if the rules enforced: deleting one would need an approval, and nothing claimed in it"
        };
        let _ = writeln!(text, "\n{guarded} Namespaces {how}.");
    }
    if let Some(since) = &document.since {
        let _ = writeln!(
            text,
            "\nSince {}: {} new, {} gone, {} as before",
            since.earlier,
            since.new.len(),
            since.gone.len(),
            since.unchanged
        );
        let mut list = |sign: &str, findings: &[ReportFinding]| {
            for finding in findings.iter().take(MAX_ROWS) {
                let _ = writeln!(text, "  {sign} [{}] {}", finding.label(), finding.sentence());
            }
        };
        list("+", &since.new);
        list("-", &since.gone);
    }
    let _ = writeln!(text, "\n{}", document.report().tally());
    text
}

fn section<T>(text: &mut String, title: &str, rows: &[T], draw: impl Fn(&T) -> Vec<String>) {
    section_of(text, title, rows.len(), rows, draw);
}

/// A section about `number` objects, of which some may have several rows.
fn section_of<T>(text: &mut String, title: &str, number: usize, rows: &[T], draw: impl Fn(&T) -> Vec<String>) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title} ({number}):");
    for row in rows.iter().take(MAX_ROWS) {
        for line in draw(row) {
            let _ = writeln!(text, "  {line}");
        }
    }
    if rows.len() > MAX_ROWS {
        let _ = writeln!(text, "  and {} more; -o json has them all", rows.len() - MAX_ROWS);
    }
}

fn first(refusal: &Refusal) -> &str {
    refusal.details.first().unwrap_or(&refusal.summary)
}

fn refused(refusal: &Refusal) -> Vec<String> {
    let word = if refusal.refused {
        "refused"
    } else if refusal.mode == Mode::Warn {
        "would deny (warn)"
    } else {
        "would deny (audit)"
    };
    let mut lines = vec![format!("{}  {word} [{}] {}", refusal.object, refusal.rule, refusal.summary)];
    lines.extend(refusal.details.iter().take(3).map(|detail| format!("  - {detail}")));
    let more = refusal.count.saturating_sub(refusal.details.len().min(3));
    if more > 0 && !refusal.details.is_empty() {
        lines.push(format!("  - and {more} more"));
    }
    for remedy in refusal.remedies.iter().take(2) {
        lines.extend(way("  ", remedy));
    }
    lines
}

/// A way out: the sentence, and the commands further in.
fn way(margin: &str, remedy: &Remedy) -> Vec<String> {
    format!("- {remedy}").lines().map(|line| format!("{margin}{line}")).collect()
}

fn stuck(stuck: &Stuck) -> Vec<String> {
    let mut lines = vec![format!(
        "{}  since {} ({})",
        stuck.object,
        stuck.since,
        span(SignedDuration::from_secs(stuck.age_seconds))
    )];
    for holder in &stuck.holders {
        lines.push(format!("  - {}: {}", holder.what, holder.why));
        lines.extend(way("    ", &holder.mend));
    }
    if !stuck.remaining.is_empty() {
        let left: Vec<String> = stuck.remaining.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        lines.push(format!("  left: {}", left.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Audit, html};
    use cascade_guard_core::{object::ObjectRef, remedy::Command};

    #[test]
    fn object_that_two_rules_refuse_counts_once() {
        let refusal = |name: &str, rule: &'static str| Refusal {
            object: ObjectRef::application("argocd", name),
            rule: rule.into(),
            check: "".into(),
            mode: Mode::Enforce,
            decided_by: String::new(),
            refused: true,
            expected: false,
            summary: "it takes too much".to_owned(),
            details: Vec::new(),
            count: 1,
            claimants: Vec::new(),
            remedies: vec![Remedy::run("a command", Command::new("cascade-guard crds")), "a sentence".into()],
        };
        let refusals = vec![refusal("a", "shared-claim"), refusal("a", "control-plane"), refusal("b", "shared-claim")];
        let audit = Audit { refusals, ..Audit::default() };
        let document = Document::new(audit, jiff::Timestamp::UNIX_EPOCH, None);
        assert!(draw(&document).contains("Deletes that take too much (2):"), "{}", draw(&document));
        let page = html::page(&document);
        let tile = r#"<span class="number">2</span> <span class="label">deletes that take too much"#;
        assert!(page.replace("</span><span", "</span> <span").contains(tile), "{page}");
        // A sentence is not set as something to type.
        assert!(page.contains("<pre>cascade-guard crds</pre>") && page.contains("<p>a sentence</p>"), "{page}");
    }
}
