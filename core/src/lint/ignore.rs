//! Findings that someone has looked at: named in an annotation with a reason, or listed in a baseline.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{document::LINT_IGNORE, manifest::Manifest};
use crate::{
    catalog::sync_wave::{BAD_IGNORE, META},
    decision::{Finding, Severity},
    report::ReportFinding,
};

/// Checks of one object that do not matter.
#[derive(Debug, Default)]
pub struct Ignored<'a> {
    checks: Vec<&'a str>,
    used: BTreeSet<usize>,
    faults: Vec<String>,
}

impl<'a> Ignored<'a> {
    /// Reads the annotation of an object and the comments of its document.
    pub fn of(manifest: &'a Manifest) -> Self {
        let mut ignored = Self::default();
        let annotation = manifest.meta.annotation(LINT_IGNORE).unwrap_or_default();
        let texts = manifest.ignore_comments.iter().map(String::as_str).chain([annotation]);
        let entries = texts.flat_map(|text| text.split([';', '\n']));
        for entry in entries.map(str::trim).filter(|entry| !entry.is_empty()) {
            let (check, reason) = entry.split_once(':').map_or((entry, ""), |(check, reason)| (check.trim(), reason));
            let check = check.strip_prefix("sync-wave/").unwrap_or(check);
            if META.check(check).is_none() {
                ignored.faults.push(format!("`{check}` is no check"));
            } else if reason.trim().is_empty() {
                ignored.faults.push(format!("`{check}` has no reason, so that it counts all the same"));
            } else {
                ignored.checks.push(check);
            }
        }
        ignored
    }

    /// Whether a finding of the object does not matter.
    pub fn covers(&mut self, finding: &Finding) -> bool {
        let found = self.checks.iter().position(|check| *check == finding.check.id);
        self.used.extend(found);
        found.is_some()
    }

    /// What is wrong with the annotation itself, when every finding was looked at.
    pub fn faults(mut self, manifest: &Manifest) -> Vec<Finding> {
        let unused = self.checks.iter().enumerate().filter(|(index, _)| !self.used.contains(index));
        self.faults.extend(unused.map(|(_, check)| format!("`{check}` finds nothing here any more")));
        let faults = self.faults.into_iter().map(|fault| {
            let summary = "an entry of the annotation or comment that ignores findings has no effect";
            let finding = Finding::new(&BAD_IGNORE, Severity::Warn, manifest.object.clone(), summary)
                .detail(format!("{LINT_IGNORE}: {fault}"))
                .remedy("write `check: reason`, several separated by semicolons");
            if manifest.meta.annotation(LINT_IGNORE).is_some() { finding.on_annotation(LINT_IGNORE) } else { finding }
        });
        faults.collect()
    }
}

/// Findings that were there before, so that only new ones count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The version of this format.
    version: u32,
    /// Fingerprints of the findings.
    findings: BTreeSet<String>,
}

/// The version of the baseline's format.
const VERSION: u32 = 1;

/// Why a text is no baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It does not have the format.
    #[error("it is no baseline; write one with --write-baseline: {0}")]
    Format(#[from] serde_json::Error),
    /// It is of a later version.
    #[error("it is a baseline of version {0}, and this program knows version {VERSION}")]
    Version(u32),
}

impl Baseline {
    /// Everything that was found.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a ReportFinding>) -> Self {
        Self { version: VERSION, findings: findings.into_iter().map(ReportFinding::fingerprint).collect() }
    }

    /// Reads a baseline.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let found: Self = serde_json::from_str(text)?;
        if found.version == VERSION { Ok(found) } else { Err(BaselineError::Version(found.version)) }
    }

    /// Writes it down, one finding a line, so that a review shows what came and went.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Takes out what was there before. How many findings that were, and how many entries are no longer found.
    pub fn subtract(&self, findings: &mut Vec<ReportFinding>) -> (usize, usize) {
        let before = findings.len();
        let mut seen = BTreeSet::new();
        findings.retain(|finding| {
            let print = finding.fingerprint();
            let known = self.findings.contains(&print);
            seen.insert(print);
            !known
        });
        (before - findings.len(), self.findings.difference(&seen).count())
    }
}
