//! What changed between two audits.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Document;
use cascade_guard_core::report::ReportFinding;

/// What changed since an earlier audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// When the earlier one was made.
    pub earlier: Timestamp,
    /// What was found now and not then.
    pub new: Vec<ReportFinding>,
    /// What was found then and not now.
    pub gone: Vec<ReportFinding>,
    /// How many were found both times.
    pub unchanged: usize,
}

impl Changes {
    /// From `earlier` to `findings`.
    pub(super) fn between(earlier: &Document, findings: &[ReportFinding]) -> Self {
        let prints =
            |findings: &[ReportFinding]| findings.iter().map(ReportFinding::fingerprint).collect::<HashSet<String>>();
        let (before, after) = (prints(&earlier.findings), prints(findings));
        let missing_in = |from: &[ReportFinding], other: &HashSet<String>| {
            from.iter().filter(|finding| !other.contains(&finding.fingerprint())).cloned().collect::<Vec<_>>()
        };
        let new = missing_in(findings, &before);
        Self {
            earlier: earlier.generated_at,
            unchanged: findings.len() - new.len(),
            gone: missing_in(&earlier.findings, &after),
            new,
        }
    }
}
