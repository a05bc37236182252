//! Which labels of a ClusterRole others rely on: those that an aggregated ClusterRole selects by.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::removals::Loss;
use crate::{
    facts::{Facts, ListQuestion, Listing, Reading},
    object::{GroupKind, RBAC_GROUP, null_to_default},
};

/// Labels by which ClusterRoles of every cluster select.
const ALWAYS: [&str; 3] = [
    "rbac.authorization.k8s.io/aggregate-to-admin",
    "rbac.authorization.k8s.io/aggregate-to-edit",
    "rbac.authorization.k8s.io/aggregate-to-view",
];

/// So many ClusterRoles are looked through for one that aggregates. Where there are more every label counts.
const MAX_ROLES: u32 = 1000;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Role {
    #[serde(deserialize_with = "null_to_default")]
    aggregation_rule: Rule,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    #[serde(deserialize_with = "null_to_default")]
    cluster_role_selectors: Vec<Selector>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    #[serde(deserialize_with = "null_to_default")]
    match_labels: HashMap<String, String>,
    #[serde(deserialize_with = "null_to_default")]
    match_expressions: Vec<Expression>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Expression {
    #[serde(deserialize_with = "null_to_default")]
    key: String,
}

/// Drops the labels by which no ClusterRole selects. What cannot be read selects by all of them. `false` while the answer
/// is out.
pub(super) fn keep(facts: &mut Facts, losses: &mut Vec<Loss>) -> bool {
    let in_doubt = |loss: &Loss| loss.label().is_some_and(|key| !ALWAYS.contains(&key));
    if !losses.iter().any(in_doubt) {
        return true;
    }
    let question = ListQuestion {
        what: Listing::Every(GroupKind::new(RBAC_GROUP, "ClusterRole")),
        namespace: String::new(),
        limit: MAX_ROLES,
    };
    let Some(reading) = facts.list(question) else { return false };
    if let Reading::Found(roles) = reading
        && roles.complete
        && let Some(selected) = selected(&roles.items)
    {
        losses.retain(|loss| !in_doubt(loss) || loss.label().is_some_and(|key| selected.contains(key)));
    }
    true
}

/// The keys that all selectors name; `None` if a role cannot be read.
fn selected(roles: &[Box<RawValue>]) -> Option<HashSet<String>> {
    let mut keys = HashSet::new();
    for raw in roles {
        let role: Role = serde_json::from_str(raw.get()).ok()?;
        for selector in role.aggregation_rule.cluster_role_selectors {
            keys.extend(selector.match_labels.into_keys());
            keys.extend(selector.match_expressions.into_iter().map(|expression| expression.key));
        }
    }
    Some(keys)
}
