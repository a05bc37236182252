//! Workflow commands of GitHub Actions: one line a finding, shown beside the line it is about.

use std::fmt::Write;

use super::Report;
use crate::decision::Severity;

pub(super) fn write(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let command = match finding.severity {
            Severity::Deny => "error",
            Severity::Warn => "warning",
        };
        let mut properties = Vec::new();
        if let Some(location) = &finding.location {
            properties.push(format!("file={}", property(&location.file)));
            if location.line > 0 {
                properties.push(format!("line={}", location.line));
            }
            if location.column > 0 {
                properties.push(format!("col={}", location.column));
            }
        }
        properties.push(format!("title={}", property(&finding.label())));
        let mut message = finding.sentence().to_owned();
        for remedy in &finding.remedies {
            let _ = write!(message, "\n- {remedy}");
        }
        let _ = writeln!(text, "::{command} {}::{}", properties.join(","), data(&message));
    }
    let _ = writeln!(text, "{}", report.tally());
    text
}

/// A message, escaped as `@actions/core` does: a command ends with its line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property, in which colon and comma also mean something.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use crate::report::{Format, tests::sample};

    #[test]
    fn command_is_one_line_whatever_stands_in_it() {
        let text = sample().write(Format::Github).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "::error file=out/job%2Ca.yaml,line=7,col=3,title=sync-wave/malformed-wave::Job shop/migrate: sync-wave \
             `one, two` is <not> 100%25 a number%0Aso 0 counts%0A- write a whole number"
        );
        assert_eq!(lines[1], "::warning title=shared-claim::claimed twice");
        assert_eq!(lines[2..], ["1 error, 1 warning"]);
    }
}
