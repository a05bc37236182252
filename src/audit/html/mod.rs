//! The audit as one page that carries everything with it: no script, nothing from elsewhere, the worst first.

mod graph;
mod sections;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Audit, Document};
use cascade_guard_core::decision::Severity;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn page(document: &Document) -> String {
    let audit = &document.audit;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Nothing may be loaded: what is on the page came with it.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                link rel="icon" href="data:,";
                title { "cascade-guard audit, " (document.generated_at) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to what was found" }
                (head(document))
                main #main {
                    (graph::section(&audit.overlaps))
                    (sections::refusals(audit))
                    (sections::terminating(&audit.terminating))
                    (sections::failed_open(&audit.failed_open))
                    (sections::hooks(&audit.hooks))
                    (sections::untrusted(&audit.untrusted, document.generated_at))
                    (sections::installations(&audit.installations))
                    (sections::unprotected(&audit.unprotected))
                    (sections::approvals(&audit.approvals))
                    (sections::changes(document.since.as_ref()))
                }
                footer {
                    p {
                        (document.tool.name) " " (document.tool.version) ", " (document.generated_at) ". "
                        "The same as data: " code { "cascade-guard audit -o json" }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn head(document: &Document) -> Markup {
    let audit = &document.audit;
    let report = document.report();
    let (errors, warnings) = (report.count(Severity::Deny), report.count(Severity::Warn));
    let counts = audit.counts;
    html! {
        header {
            h1 { "What a delete would take here" }
            p.verdict {
                @if errors + warnings == 0 {
                    span.ok { "Nothing found." }
                } @else {
                    strong { (errors) } " to mend now, " strong { (warnings) } " to look at."
                }
            }
            p.world {
                (counts.applications) " Applications, " (counts.application_sets) " ApplicationSets, "
                (counts.namespaces) " Namespaces, " (counts.claims) " claims at " time { (document.generated_at) }
            }
            (modes(audit))
            nav aria-label="Sections" { ul.tiles {
                @for tile in tiles(audit) {
                    li class=(if tile.count == 0 { "clean" } else { tile.severity }) {
                        a href=(format!("#{}", tile.anchor)) {
                            span.number { (tile.count) } span.label { (tile.label) }
                        }
                    }
                }
            } }
        }
    }
}

fn modes(audit: &Audit) -> Markup {
    html! {
        p.modes {
            "Rules: "
            @for (rule, mode) in &audit.modes {
                span class=(format!("mode {}", mode.as_str())) { (rule) " " (mode.as_str()) } " "
            }
        }
    }
}

struct Tile {
    anchor: &'static str,
    label: &'static str,
    severity: &'static str,
    count: usize,
}

fn tiles(audit: &Audit) -> Vec<Tile> {
    let tile = |anchor, label, severity, count| Tile { anchor, label, severity, count };
    vec![
        tile("overlaps", "claimed twice", "warn", audit.overlaps.len()),
        tile("refusals", "deletes that take too much", "deny", audit.too_much()),
        tile("terminating", "stuck in Terminating", "deny", audit.terminating.len()),
        tile("failed-open", "deleted unseen", "deny", audit.failed_open.len()),
        tile("hooks", "hooks out of order", "deny", audit.hooks.len()),
        tile("untrusted", "lists not to be believed", "warn", audit.untrusted.len()),
        tile("installations", "Argo CDs not settled", "warn", audit.installations.len()),
        tile("unprotected", "less protected", "warn", audit.unprotected.len()),
        tile("approvals", "approvals", "info", audit.approvals.len()),
    ]
}
