//! For people in a terminal: the worst first, each with its way out.

use std::fmt::Write;

use super::Report;
use crate::decision::{Effect, Severity};

pub(super) fn write(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let place = finding.location.as_ref().map(|location| format!("{location}: ")).unwrap_or_default();
        let word = match finding.severity {
            Severity::Deny => "error",
            Severity::Warn => "warning",
        };
        // In a command that asks no policy the severity says it all.
        let policy = match (finding.mode, finding.effect) {
            (Some(mode), Some(effect)) => format!(" ({}: {})", mode.as_str(), said(effect, finding.severity)),
            _ => String::new(),
        };
        let _ = writeln!(text, "{place}{word}[{}] {}{policy}", finding.label(), finding.object);
        let _ = writeln!(text, "    {}", finding.sentence().replace('\n', "\n    "));
        if !finding.claimants.is_empty() && !finding.claimants.iter().all(|app| finding.sentence().contains(app)) {
            let _ = writeln!(text, "    claimed by {}", finding.claimants.join(", "));
        }
        for remedy in &finding.remedies {
            let _ = writeln!(text, "    - {}", remedy.to_string().replace('\n', "\n    "));
        }
        // A program reads the fix; people have read it already where it is one of the ways out.
        if let Some(fix) =
            finding.fix.as_ref().filter(|fix| finding.remedies.iter().all(|remedy| remedy.text != fix.description))
        {
            let _ = writeln!(text, "    fix: {}", fix.description);
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}", report.tally());
    text
}

/// What became of a finding. In audit nothing was refused, so nothing is called denied.
fn said(effect: Effect, severity: Severity) -> &'static str {
    match (effect, severity) {
        (Effect::Refused, _) => "denied",
        (Effect::BrokeGlass, _) => "break-glass used",
        (Effect::Dropped, _) => "not judged",
        (Effect::Recorded | Effect::Warned, Severity::Deny) => "would deny",
        (Effect::Recorded, Severity::Warn) => "recorded",
        (Effect::Warned, Severity::Warn) => "warns",
    }
}

#[cfg(test)]
mod tests {
    use crate::report::{Format, tests::sample};

    #[test]
    fn place_rule_object_and_way_out_stand_together() {
        let text = sample().write(Format::Table).unwrap();
        assert!(text.starts_with("out/job,a.yaml:7:3: error[sync-wave/malformed-wave] Job shop/migrate\n"), "{text}");
        assert!(text.contains("\n    - write a whole number\n    fix: set the wave to 0\n"), "{text}");
        assert!(text.contains("warning[shared-claim] Role shop/api (audit: recorded)\n    claimed twice\n"), "{text}");
        assert!(text.contains("    claimed by argocd/a, argocd/b\n"), "{text}");
        assert!(text.ends_with("1 error, 1 warning\n"), "{text}");
    }
}
