//! Every rule is complete.

use std::collections::BTreeSet;

use cascade_guard_core::{catalog, policy::RuleKey, rules::RULES};

use crate::support::repository;

#[test]
fn every_rule_has_an_id_and_a_page() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.meta().id).collect();
    assert_eq!(ids.len(), RULES.len(), "two rules share an id");
    for rule in RULES {
        let meta = rule.meta();
        assert_eq!(meta.docs, format!("docs/rules/{}.md", meta.id));
        let page = meta.page;
        for part in ["What it does", "Why", "Example", "Way out"] {
            assert!(page.to_lowercase().contains(&part.to_lowercase()), "{} has no part `{part}`", meta.docs);
        }
        assert!(!meta.operations.is_empty() && !meta.summary.is_empty());
    }
}

#[test]
fn every_rule_that_is_declared_is_registered() {
    let registered: BTreeSet<&str> = RULES.iter().map(|rule| rule.meta().id).collect();
    let declared: BTreeSet<&str> = catalog::ALL.iter().map(|rule| rule.id).collect();
    assert_eq!(registered, declared);
}

#[test]
fn policy_spells_a_key_as_its_declaration_does() {
    for key in RuleKey::ALL {
        assert_eq!(serde_json::to_value(key).unwrap(), key.as_str());
    }
}

#[test]
fn checks_of_a_rule_have_ids_of_their_own() {
    for rule in catalog::ALL {
        let ids: BTreeSet<&str> = rule.checks.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), rule.checks.len(), "{}", rule.id);
    }
}

fn page(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap()
}

#[test]
fn readme_lists_every_rule_and_what_it_is_judged_on() {
    let readme = page("README.md");
    for rule in catalog::ALL {
        let operations: Vec<&str> = rule.operations.iter().map(|operation| operation.as_str()).collect();
        let row = format!("| [{}]({}) | {} | ", rule.id, rule.docs, operations.join(", "));
        assert!(readme.lines().any(|line| line.starts_with(&row)), "README.md has no row `{row}`");
    }
}

#[test]
fn policy_of_the_readme_and_the_rollout_name_every_key() {
    let (readme, rollout) = (page("README.md"), page("docs/rollout.md"));
    for key in RuleKey::ALL {
        let line = format!("    {}: {{mode: ", key.as_str());
        assert!(readme.lines().any(|text| text.starts_with(&line)), "the policy in README.md has no line `{line}`");
        let named = format!("`{}`", key.as_str());
        assert!(rollout.contains(&named), "docs/rollout.md does not say when to enforce {named}");
    }
}
