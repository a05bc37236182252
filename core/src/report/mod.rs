//! One model for what every command found, and the formats it is written in: a table for people, JSON and YAML for
//! programs, SARIF and JUnit for whatever shows them, workflow commands for GitHub Actions.
//!
//! Pure: values in, text out. A command decides what it found, this decides how that is said.

mod github;
mod junit;
mod markdown;
mod rules;
mod sarif;
mod table;

use std::{borrow::Cow, fmt::Write as _};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::rules::{Rule, known_rules};
pub use crate::decision::Fix;
use crate::{
    decision::{Effect, Finding, Outcome, Severity},
    object::ObjectRef,
    policy::Mode,
    remedy::Remedy,
    text::count,
};

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For both.
    Yaml,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML, for whatever shows test results.
    Junit,
    /// Workflow commands of GitHub Actions, which show up beside the changed lines.
    Github,
    /// A comment on a pull request.
    Markdown,
}

/// What a command found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Who wrote it.
    pub tool: Tool,
    /// When.
    pub generated_at: Timestamp,
    /// Every rule that was applied, also those that found nothing.
    pub rules: Vec<Rule>,
    /// What was found.
    pub findings: Vec<ReportFinding>,
}

/// Program and command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Name of the program.
    pub name: Cow<'static, str>,
    /// Its version.
    pub version: Cow<'static, str>,
    /// The command, such as `lint`.
    pub command: Cow<'static, str>,
}

impl Tool {
    /// This program, running `command`.
    pub fn running(command: &'static str) -> Self {
        Self { name: "cascade-guard".into(), version: env!("CARGO_PKG_VERSION").into(), command: command.into() }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportFinding {
    /// Id of the rule.
    pub rule: Cow<'static, str>,
    /// Which of the rule's checks; empty where it has only one.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub check: Cow<'static, str>,
    /// How bad it is, whatever the policy says.
    pub severity: Severity,
    /// The mode in force for it, where a policy was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// What became of it, or would have, where a policy was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The object it is about.
    pub object: ObjectRef,
    /// One sentence that holds for every finding of this rule and check.
    pub summary: String,
    /// What holds for this object alone; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The other object it is about, such as the one that comes too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regarding: Option<ObjectRef>,
    /// Applications that claim the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claimants: Vec<String>,
    /// What to do: one text each, a sentence and below it the commands, indented by four spaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
    /// Where the object is written, if it came from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// A change that would mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Location {
    /// Path, as it was given.
    pub file: String,
    /// Line, from 1; 0 if only the file is known.
    #[serde(default)]
    pub line: u32,
    /// Column, from 1; 0 if only the line is known.
    #[serde(default)]
    pub column: u32,
}

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be written as {format}: {problem}")]
pub struct FormatError {
    format: &'static str,
    problem: String,
}

impl ReportFinding {
    /// What a rule found, before any policy.
    pub fn new(finding: &Finding) -> Self {
        Self {
            rule: finding.rule.id.into(),
            check: finding.check.id.into(),
            severity: finding.severity,
            mode: None,
            effect: None,
            object: finding.object.clone(),
            summary: finding.summary.clone(),
            detail: finding.detail.clone(),
            regarding: finding.regarding.clone(),
            claimants: finding.claimants.clone(),
            remedies: finding.remedies.clone(),
            location: None,
            fix: finding.fix.as_deref().cloned(),
        }
    }

    /// What a rule found and what the policy makes of it.
    pub fn judged(outcome: &Outcome) -> Self {
        Self { mode: Some(outcome.resolved.mode), effect: Some(outcome.effect), ..Self::new(&outcome.finding) }
    }

    /// Says where the object is written.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// Adds a change that would mend it.
    #[must_use]
    pub fn fixed_by(mut self, description: impl Into<String>, patch: json_patch::Patch) -> Self {
        self.fix = Some(Fix { description: description.into(), patch });
        self
    }

    /// Rule and check, as in `sync-wave/malformed-wave`.
    pub fn label(&self) -> String {
        if self.check.is_empty() { self.rule.to_string() } else { format!("{}/{}", self.rule, self.check) }
    }

    /// What was found, in one sentence: the detail, or the summary where there is none.
    pub fn sentence(&self) -> &str {
        if self.detail.is_empty() { &self.summary } else { &self.detail }
    }

    /// Identity across reports: the same rule and check about the same object with the same Applications. Neither time
    /// nor wording takes part, so that a later version of the program recognises what an earlier one found.
    pub fn fingerprint(&self) -> String {
        let object = &self.object;
        let mut text = format!("{}|{}|{}|{}", self.label(), object.kind, object.path(), self.claimants.join(","));
        if let Some(other) = &self.regarding {
            let _ = write!(text, "|{}|{}", other.kind, other.path());
        }
        if let Some(location) = &self.location {
            let _ = write!(text, "|{}", location.file);
        }
        text
    }
}

impl std::fmt::Display for Location {
    /// `file:line:column`, as far as it is known: editors and terminals make a link of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

impl Report {
    /// A report of `command`, worst findings first. `rules` are those that were applied.
    pub fn new(command: &'static str, generated_at: Timestamp, rules: Vec<Rule>, findings: Vec<ReportFinding>) -> Self {
        let mut report = Self { tool: Tool::running(command), generated_at, rules, findings };
        // Some formats go by rule; a finding of a rule that is not among them would vanish there.
        for finding in &report.findings {
            if !report.rules.iter().any(|rule| rule.id == finding.rule) {
                let (id, summary) = (finding.rule.clone(), finding.summary.clone().into());
                report.rules.push(Rule { id, summary, docs: Cow::Borrowed("docs/rules") });
            }
        }
        // A stable sort: a command may have put them into an order of its own that is worth keeping.
        report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        report
    }

    /// How many findings there are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The worst severity found; `None` if nothing was.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// `2 errors, 1 warning`, or that nothing was found.
    pub fn tally(&self) -> String {
        match (self.count(Severity::Deny), self.count(Severity::Warn)) {
            (0, 0) => "nothing found".to_owned(),
            (errors, 0) => count(errors, "error"),
            (0, warnings) => count(warnings, "warning"),
            (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// When a format cannot express it.
    pub fn write(&self, format: Format) -> Result<String, FormatError> {
        let failed = |format: &'static str, problem: String| FormatError { format, problem };
        match format {
            Format::Table => Ok(table::write(self)),
            Format::Json => serde_json::to_string_pretty(self).map_err(|error| failed("JSON", error.to_string())),
            Format::Yaml => serde_saphyr::to_string(self).map_err(|error| failed("YAML", error.to_string())),
            Format::Sarif => sarif::write(self).map_err(|error| failed("SARIF", error.to_string())),
            Format::Junit => junit::write(self).map_err(|error| failed("JUnit", error.to_string())),
            Format::Github => Ok(github::write(self)),
            Format::Markdown => Ok(markdown::write(self)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report with one finding of each severity, one with a place and a fix.
    pub(crate) fn sample() -> Report {
        let object = ObjectRef::new("batch", "Job", "shop", "migrate");
        let lint = ReportFinding {
            rule: "sync-wave".into(),
            check: "malformed-wave".into(),
            severity: Severity::Deny,
            mode: None,
            effect: None,
            object,
            summary: "a wave is no number".to_owned(),
            detail: "Job shop/migrate: sync-wave `one, two` is <not> 100% a number\nso 0 counts".to_owned(),
            regarding: None,
            claimants: Vec::new(),
            remedies: vec!["write a whole number".into()],
            location: None,
            fix: None,
        }
        .at(Location { file: "out/job,a.yaml".to_owned(), line: 7, column: 3 })
        .fixed_by(
            "set the wave to 0",
            serde_json::from_str(r#"[{"op":"remove","path":"/metadata/annotations/argocd.argoproj.io~1sync-wave"}]"#)
                .unwrap(),
        );
        let shared = ReportFinding {
            rule: "shared-claim".into(),
            check: "".into(),
            severity: Severity::Warn,
            mode: Some(Mode::Audit),
            effect: Some(Effect::Recorded),
            object: ObjectRef::new("rbac.authorization.k8s.io", "Role", "shop", "api"),
            summary: "claimed twice".to_owned(),
            detail: String::new(),
            regarding: None,
            claimants: vec!["argocd/a".to_owned(), "argocd/b".to_owned()],
            remedies: Vec::new(),
            location: None,
            fix: None,
        };
        Report::new(
            "lint",
            "2026-11-29T12:00:00Z".parse().unwrap(),
            {
                let mut rules = known_rules();
                if rules.iter().all(|rule| rule.id != "sync-wave") {
                    rules.push(Rule::new(
                        "sync-wave",
                        "hooks run in an order that can work",
                        "docs/rules/sync-wave.md",
                    ));
                }
                rules
            },
            vec![shared, lint],
        )
    }

    #[test]
    fn json_and_yaml_read_back_as_they_were() {
        let report = sample();
        assert_eq!(serde_json::from_str::<Report>(&report.write(Format::Json).unwrap()).unwrap(), report);
        assert_eq!(serde_saphyr::from_str::<Report>(&report.write(Format::Yaml).unwrap()).unwrap(), report);
    }

    #[test]
    fn finding_of_an_unknown_rule_is_in_every_format() {
        let findings = sample().findings;
        let report = Report::new("lint", "2026-11-29T12:00:00Z".parse().unwrap(), Vec::new(), findings);
        assert_eq!(report.rules.len(), 2);
        assert!(report.write(Format::Junit).unwrap().contains("Job shop/migrate"));
    }

    #[test]
    fn worst_comes_first_and_is_counted() {
        let report = sample();
        assert_eq!(report.findings[0].label(), "sync-wave/malformed-wave");
        assert_eq!(report.worst(), Some(Severity::Deny));
        assert_eq!(report.tally(), "1 error, 1 warning");
    }

    #[test]
    fn fingerprint_outlives_a_change_of_words() {
        let before = sample().findings[0].clone();
        let mut after = before.clone();
        after.summary = "other words".to_owned();
        after.detail = "entirely".to_owned();
        assert_eq!(before.fingerprint(), after.fingerprint());
        after.object.name = "other".to_owned();
        assert_ne!(before.fingerprint(), after.fingerprint());
    }
}
