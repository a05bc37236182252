//! Everything on the page but its head and its picture.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::audit::{
    ApprovalValidity, Audit, AuditedApproval, Changes, FailedOpen, Refusal, Stuck, Unprotected, Unsettled, Untrusted,
};
use cascade_guard_core::text::span;
use cascade_guard_core::{remedy::Remedy, report::ReportFinding};

/// So many cards a section has; JSON has them all.
const MAX_CARDS: usize = 200;

pub(super) fn refusals(audit: &Audit) -> Markup {
    let wrong: Vec<&Refusal> = audit.refusals.iter().filter(|refusal| !refusal.expected).collect();
    let guarded = audit.guarded();
    html! {
        section #refusals {
            h2 { "Deletes that take too much" }
            @if wrong.is_empty() { p.ok { "No Application or ApplicationSet takes with it what others still need." } }
            @for refusal in wrong.iter().take(MAX_CARDS) { (card(refusal)) }
            (more(wrong.len()))
            @if guarded > 0 {
                p { (guarded) " Namespaces are kept: deleting one needs an approval, and nothing claimed in it. That is as it should be." }
            }
        }
    }
}

fn card(refusal: &Refusal) -> Markup {
    let more = refusal.count.saturating_sub(refusal.details.len());
    let word = if refusal.refused { "refused" } else { "would be refused" };
    html! {
        article class=(if refusal.refused { "deny" } else { "warn" }) {
            h3 { (refusal.object) }
            p.chips {
                span.chip { (refusal.rule) @if !refusal.check.is_empty() { "/" (refusal.check) } }
                span class=(format!("mode {}", refusal.mode.as_str())) { (word) " (" (refusal.mode.as_str()) ")" }
            }
            p { (refusal.summary) }
            @if !refusal.details.is_empty() {
                ul {
                    @for detail in &refusal.details { li { (detail) } }
                    @if more > 0 { li { "and " (more) " more" } }
                }
            }
            (way_out(&refusal.remedies))
        }
    }
}

fn way_out(remedies: &[Remedy]) -> Markup {
    html! {
        @if !remedies.is_empty() {
            details { summary { "What to do" } @for remedy in remedies { (way(remedy)) } }
        }
    }
}

/// What is typed looks like it, what is read does not.
fn way(remedy: &Remedy) -> Markup {
    html! { p { (remedy.sentence()) } @for command in &remedy.commands { pre { (command) } } }
}

fn more(rows: usize) -> Markup {
    html! { @if rows > MAX_CARDS { p { "and " (rows - MAX_CARDS) " more, in " code { "-o json" } } } }
}

pub(super) fn terminating(stuck: &[Stuck]) -> Markup {
    // The bars compare ages; the oldest fills its bar.
    let oldest = stuck.iter().map(|stuck| stuck.age_seconds).max().unwrap_or(1).max(1);
    html! {
        section #terminating {
            h2 { "Stuck in Terminating" }
            @if stuck.is_empty() { p.ok { "Every deletion comes to its end." } }
            @for stuck in stuck.iter().take(MAX_CARDS) {
                article.deny {
                    h3 { (stuck.object) }
                    p { "for " strong { (span(SignedDuration::from_secs(stuck.age_seconds))) } ", since " time { (stuck.since) } }
                    div.bar role="presentation" { div style=(format!("width:{}%", (stuck.age_seconds * 100 / oldest).max(2))) {} }
                    dl {
                        @for holder in &stuck.holders {
                            dt { (holder.what) }
                            dd { (holder.why) (way(&holder.mend)) }
                        }
                    }
                    @if !stuck.remaining.is_empty() {
                        p.small { "Left: " @for (kind, count) in &stuck.remaining { (count) " " (kind) "  " } }
                    }
                }
            }
            (more(stuck.len()))
        }
    }
}

pub(super) fn failed_open(failed: &[FailedOpen]) -> Markup {
    html! {
        @if !failed.is_empty() {
            section #failed-open {
                h2 { "Deleted while the guard did not answer" }
                @for failed in failed.iter().take(MAX_CARDS) {
                    article class=(if failed.refusals.is_empty() { "info" } else { "deny" }) {
                        h3 { (failed.object) }
                        p { (failed.sentence()) }
                        @if !failed.known { p { "It is not in the snapshot, so it cannot be judged." } }
                        @else if failed.refusals.is_empty() { p.ok { "It would have passed." } }
                        @for refusal in &failed.refusals {
                            p { span.chip { (refusal.rule) } " would have refused it: " (refusal.details.join("; ")) }
                        }
                    }
                }
                (more(failed.len()))
            }
        }
    }
}

pub(super) fn hooks(findings: &[ReportFinding]) -> Markup {
    html! {
        @if !findings.is_empty() {
            section #hooks {
                h2 { "Hooks whose order cannot work" }
                (list(findings))
            }
        }
    }
}

fn list(findings: &[ReportFinding]) -> Markup {
    html! {
        @for finding in findings.iter().take(MAX_CARDS) {
            article class=(if finding.severity == cascade_guard_core::decision::Severity::Deny { "deny" } else { "warn" }) {
                h3 { (finding.object) }
                p.chips { span.chip { (finding.label()) } }
                p { (finding.sentence()) }
                (way_out(&finding.remedies))
            }
        }
        (more(findings.len()))
    }
}

pub(super) fn untrusted(rows: &[Untrusted], now: Timestamp) -> Markup {
    html! {
        @if !rows.is_empty() {
            section #untrusted {
                h2 { "Lists not to be believed" }
                p { "What these Applications want is not known. Their last lists count in full until they are compared again." }
                table {
                    thead { tr { th { "Application" } th { "For" } th { "Why" } } }
                    tbody {
                        @for row in rows.iter().take(MAX_CARDS) {
                            tr {
                                td { (row.object.path()) }
                                td { @match row.since { Some(since) => (span(now.duration_since(since))), None => "always" } }
                                td { (row.why) @if !row.message.is_empty() { br; span.small { (row.message) } } }
                            }
                        }
                    }
                }
                (more(rows.len()))
            }
        }
    }
}

pub(super) fn installations(rows: &[Unsettled]) -> Markup {
    html! {
        @if !rows.is_empty() {
            section #installations {
                h2 { "Argo CDs that are not settled" }
                table {
                    thead { tr { th { "About" } th { "What is so" } th { "What to do" } } }
                    tbody {
                        @for row in rows.iter().take(MAX_CARDS) {
                            tr { td { (row.object) } td { (row.detail) } td { (row.remedy.text) } }
                        }
                    }
                }
                (more(rows.len()))
            }
        }
    }
}

pub(super) fn unprotected(rows: &[Unprotected]) -> Markup {
    html! {
        @if !rows.is_empty() {
            section #unprotected {
                h2 { "Less protected than the rules say" }
                table {
                    thead { tr { th { "Namespace" } th { "Rule" } th { "Mode" } th { "Because of" } th { "Applications" } } }
                    tbody {
                        @for row in rows.iter().take(MAX_CARDS) {
                            tr {
                                td { @if row.namespace.is_empty() { "every one" } @else { (row.namespace) } }
                                td { (row.rule) }
                                td { span class=(format!("mode {}", row.mode.as_str())) { (row.mode.as_str()) } }
                                td { (row.decided_by) }
                                td { (row.applications) }
                            }
                        }
                    }
                }
                (more(rows.len()))
            }
        }
    }
}

pub(super) fn approvals(rows: &[AuditedApproval]) -> Markup {
    html! {
        @if !rows.is_empty() {
            section #approvals {
                h2 { "Approvals" }
                table {
                    thead { tr { th { "Namespace" } th { "State" } th { "By" } th { "Until" } th { "Remarks" } } }
                    tbody {
                        @for row in rows.iter().take(MAX_CARDS) {
                            tr {
                                td { (row.namespace) }
                                td {
                                    @match row.state {
                                        ApprovalValidity::Broken => { span.bad { "broken" } },
                                        ApprovalValidity::Expired => { span.bad { "expired" } },
                                        ApprovalValidity::Ending => "about to end",
                                        ApprovalValidity::Pending => "waits to be used",
                                    }
                                }
                                td { (row.by) }
                                td { (row.until) }
                                td { (row.reason) " " (row.problems.join("; ")) }
                            }
                        }
                    }
                }
                (more(rows.len()))
            }
        }
    }
}

pub(super) fn changes(since: Option<&Changes>) -> Markup {
    html! {
        @if let Some(since) = since {
            section #since {
                h2 { "Since " time { (since.earlier) } }
                p { (since.new.len()) " new, " (since.gone.len()) " gone, " (since.unchanged) " as before" }
                @if !since.new.is_empty() { h3 { "New" } (list(&since.new)) }
                @if !since.gone.is_empty() { h3 { "Gone" } ul { @for finding in since.gone.iter().take(MAX_CARDS) { li { (finding.sentence()) } } } }
            }
        }
    }
}
