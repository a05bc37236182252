//! What a report says about the rules themselves.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::catalog::{self, RuleMeta};

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
        let of_rules = catalog::ALL.iter().map(|rule| (rule.docs, rule.page));
        of_rules.chain(PAGES.iter().copied()).find(|(docs, _)| *docs == self.docs).map(|(_, page)| page)
    }
}

impl From<&'static RuleMeta> for Rule {
    fn from(meta: &'static RuleMeta) -> Self {
        Self::new(meta.id, meta.summary, meta.docs)
    }
}

/// Every rule that judges requests.
pub fn known_rules() -> Vec<Rule> {
    catalog::ALL.iter().copied().map(Rule::from).collect()
}

/// Pages of other checks that commands make.
const PAGES: &[(&str, &str)] = &[
    ("docs/audit.md", include_str!("../../../docs/audit.md")),
    ("docs/lint.md", include_str!("../../../docs/lint.md")),
    ("docs/pull-requests.md", include_str!("../../../docs/pull-requests.md")),
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
