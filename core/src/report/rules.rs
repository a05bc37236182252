//! What a report says about the rules themselves.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::rules::{RULES, RuleMeta};

/// A rule, or another kind of check that a command makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Stable id.
    pub id: Cow<'static, str>,
    /// One line.
    pub summary: Cow<'static, str>,
    /// Where it is explained, below the root of the repository.
    pub docs: Cow<'static, str>,
}

impl Rule {
    /// A rule of a command's own.
    pub const fn new(id: &'static str, summary: &'static str, docs: &'static str) -> Self {
        Self { id: Cow::Borrowed(id), summary: Cow::Borrowed(summary), docs: Cow::Borrowed(docs) }
    }

    /// Its page in Markdown, where this program carries it.
    pub fn page(&self) -> Option<&'static str> {
        PAGES.iter().find(|(docs, _)| *docs == self.docs).map(|(_, page)| *page)
    }
}

impl From<&'static RuleMeta> for Rule {
    fn from(meta: &'static RuleMeta) -> Self {
        Self::new(meta.id, meta.summary, meta.docs)
    }
}

/// Every rule that judges requests.
pub fn known_rules() -> Vec<Rule> {
    RULES.iter().map(|rule| Rule::from(rule.meta())).collect()
}

/// The pages, carried along: whoever reads a report in a code scanner has no repository at hand.
const PAGES: &[(&str, &str)] = &[
    ("docs/audit.md", include_str!("../../../docs/audit.md")),
    ("docs/lint.md", include_str!("../../../docs/lint.md")),
    ("docs/rules/shared-claim.md", include_str!("../../../docs/rules/shared-claim.md")),
    ("docs/rules/namespace-approval.md", include_str!("../../../docs/rules/namespace-approval.md")),
    ("docs/rules/approval-integrity.md", include_str!("../../../docs/rules/approval-integrity.md")),
    ("docs/rules/shared-update.md", include_str!("../../../docs/rules/shared-update.md")),
    ("docs/rules/sync-wave.md", include_str!("../../../docs/rules/sync-wave.md")),
    ("docs/rules/runtime-dependency.md", include_str!("../../../docs/rules/runtime-dependency.md")),
    ("docs/rules/control-plane.md", include_str!("../../../docs/rules/control-plane.md")),
    ("docs/rules/policy.md", include_str!("../../../docs/rules/policy.md")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_carries_its_page() {
        for rule in known_rules() {
            assert!(rule.page().is_some(), "{}: add {} to PAGES", rule.id, rule.docs);
        }
    }
}
