//! Every rule is complete.

use std::{collections::BTreeSet, fs};

use cascade_guard_core::rules::RULES;

use crate::support::repository;

#[test]
fn every_rule_has_an_id_and_a_page() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.meta().id).collect();
    assert_eq!(ids.len(), RULES.len(), "two rules share an id");
    for rule in RULES {
        let meta = rule.meta();
        assert_eq!(meta.docs, format!("docs/rules/{}.md", meta.id));
        let page =
            fs::read_to_string(repository().join(meta.docs)).unwrap_or_else(|error| panic!("{}: {error}", meta.docs));
        for part in ["What it does", "Why", "Example", "Way out"] {
            assert!(page.to_lowercase().contains(&part.to_lowercase()), "{} has no part `{part}`", meta.docs);
        }
        assert!(!meta.operations.is_empty() && !meta.summary.is_empty());
    }
}
