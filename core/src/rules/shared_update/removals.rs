//! What an update takes away from an object.
//!
//! Old and new are brought into a small form in which every list is a set (an object whose keys are the members), so that
//! a JSON diff of the two says what is gone, whatever the order, the splitting of rules or the metadata around it.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use json_patch::{PatchOperation, jsonptr::Pointer};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    admission::Object,
    object::{ObjectMeta, ObjectRef, null_to_default},
    rbac::{PolicyRule, RoleSubject},
};

/// Rules are compared grant by grant as long as that takes at most this many comparisons of words.
const MAX_COMPARISONS: usize = 10_000_000;

/// So many grants are written down one by one.
const MAX_GRANTS: usize = 50_000;

/// Labels that say which release or tool an object came from. They differ between any two Applications, and nobody
/// selects Namespaces or roles by them.
const UNSELECTED_LABELS: [&str; 8] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "version",
    "helm.sh/chart",
    "chart",
    "heritage",
    "kubernetes.io/metadata.name",
];

/// Something that was there and no longer is. Displayed as a clause that follows the object's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Verbs on one resource or path.
    Grant { on: String, verbs: Vec<String> },
    /// Rules that could not be compared grant by grant.
    Rules,
    /// All of a role's own rules, because an aggregation replaces them.
    OwnRules,
    /// Somebody a role was bound to.
    Subject(String),
    /// A Secret a ServiceAccount names.
    Secret(String),
    /// A Secret that Pods of a ServiceAccount pull images with.
    PullSecret(String),
    /// The token in Pods of a ServiceAccount.
    Token,
    /// A selector of an aggregated role.
    Aggregation(String),
    /// A label.
    Label { key: String, value: String },
    /// A label with another value now.
    LabelValue { key: String, from: String, to: String },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grant { on, verbs } => write!(f, "no longer grants {} on {on}", verbs.join(", ")),
            Self::Rules => f.write_str("has rules that no longer grant what they did"),
            Self::OwnRules => f.write_str("loses its own rules, an aggregation replaces them"),
            Self::Subject(subject) => write!(f, "no longer binds {subject}"),
            Self::Secret(name) => write!(f, "loses secret {name}"),
            Self::PullSecret(name) => write!(f, "loses imagePullSecret {name}"),
            Self::Token => f.write_str("no longer mounts its token into Pods"),
            Self::Aggregation(selector) => write!(f, "no longer aggregates {selector}"),
            Self::Label { key, value } => write!(f, "loses label {key}={value}"),
            Self::LabelValue { key, from, to } => write!(f, "has label {key}={to} instead of {from}"),
        }
    }
}

impl Loss {
    /// The label that is gone or changed, if it is one.
    pub(super) fn label(&self) -> Option<&str> {
        match self {
            Self::Label { key, .. } | Self::LabelValue { key, .. } => Some(key),
            _ => None,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    #[serde(deserialize_with = "null_to_default")]
    rules: Vec<PolicyRule>,
    aggregation_rule: Option<AggregationRule>,
    #[serde(deserialize_with = "null_to_default")]
    subjects: Vec<RoleSubject>,
    #[serde(deserialize_with = "null_to_default")]
    secrets: Vec<Named>,
    #[serde(deserialize_with = "null_to_default")]
    image_pull_secrets: Vec<Named>,
    automount_service_account_token: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AggregationRule {
    #[serde(deserialize_with = "null_to_default")]
    cluster_role_selectors: Vec<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: String,
}

/// What `new` no longer has of `old`. `label_keys` are labels that mark an object as somebody's, besides the usual one.
pub(super) fn losses(
    target: &ObjectRef,
    old: &Object<'_>,
    new: &Object<'_>,
    label_keys: &[&str],
) -> Result<Vec<Loss>, serde_json::Error> {
    let (before, after): (Body, Body) = (old.decode()?, new.decode()?);
    let mut losses = Vec::new();
    let mut forms = [form(&before), form(&after)];
    if target.is_namespace() || target.kind.kind == "ClusterRole" {
        for (form, meta) in forms.iter_mut().zip([&old.meta, &new.meta]) {
            form.insert("labels".to_owned(), labels(meta, label_keys));
        }
    }
    match (&before.aggregation_rule, &after.aggregation_rule) {
        (_, None) => match grants(&before.rules, &after.rules) {
            Some((old, new)) => {
                let [before, after] = &mut forms;
                before.insert("rules".to_owned(), old);
                after.insert("rules".to_owned(), new);
            }
            None if !covered_one_by_one(&before.rules, &after.rules) => losses.push(Loss::Rules),
            None => {}
        },
        // The rules of an aggregated role are written by the aggregation controller, whatever a manifest says.
        (Some(_), Some(_)) => {}
        (None, Some(_)) if before.rules.is_empty() => {}
        (None, Some(_)) => losses.push(Loss::OwnRules),
    }
    let [before, after] = forms.map(Value::Object);
    losses.extend(diffed(&before, &after));
    Ok(losses)
}

/// The parts of an object in which every list is a set.
fn form(body: &Body) -> Map<String, Value> {
    let selectors = body.aggregation_rule.iter().flat_map(|rule| &rule.cluster_role_selectors);
    let mounts = body.automount_service_account_token != Some(false);
    [
        ("subjects", set(body.subjects.iter().map(ToString::to_string))),
        ("secrets", set(body.secrets.iter().map(|secret| secret.name.clone()))),
        ("imagePullSecrets", set(body.image_pull_secrets.iter().map(|secret| secret.name.clone()))),
        ("aggregates", set(selectors.map(ToString::to_string))),
        ("token", set(mounts.then(|| "mounted".to_owned()))),
    ]
    .map(|(part, members)| (part.to_owned(), members))
    .into_iter()
    .collect()
}

fn set(members: impl IntoIterator<Item = String>) -> Value {
    Value::Object(members.into_iter().map(|member| (member, Value::Bool(true))).collect())
}

fn labels(meta: &ObjectMeta, label_keys: &[&str]) -> Value {
    let counts = |key: &str| {
        !UNSELECTED_LABELS.contains(&key)
            && !label_keys.contains(&key)
            && !key.split('/').next().is_some_and(|domain| domain.ends_with("argoproj.io"))
    };
    let counting = meta.labels.iter().filter(|(key, _)| counts(key));
    Value::Object(counting.map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect())
}

/// Two rule lists as sets of grants by what they are on. A grant that a wildcard or another rule still gives counts as
/// kept. `None` where that would take too long.
fn grants(before: &[PolicyRule], after: &[PolicyRule]) -> Option<(Value, Value)> {
    let same: HashSet<&PolicyRule> = after.iter().collect();
    let changed: Vec<&PolicyRule> = before.iter().filter(|rule| !same.contains(rule)).collect();
    let size = changed.iter().map(|rule| rule.size()).fold(0, usize::saturating_add);
    let words: usize = after.iter().map(PolicyRule::words).sum();
    if size > MAX_GRANTS || size.saturating_mul(words.max(1)) > MAX_COMPARISONS {
        return None;
    }
    let (mut old, mut new) = (Map::new(), Map::new());
    for grant in changed.iter().flat_map(|rule| rule.grants()) {
        let on = grant.on.to_string();
        insert(&mut old, &on, grant.verb);
        if after.iter().any(|rule| rule.covers(grant)) {
            insert(&mut new, &on, grant.verb);
        }
    }
    Some((Value::Object(old), Value::Object(new)))
}

fn insert(map: &mut Map<String, Value>, on: &str, verb: &str) {
    if let Value::Object(verbs) = map.entry(on).or_insert_with(|| Value::Object(Map::new())) {
        verbs.insert(verb.to_owned(), Value::Bool(true));
    }
}

/// Whether each rule of before is granted by a single one of after; where even that is too much to compare, nobody knows.
fn covered_one_by_one(before: &[PolicyRule], after: &[PolicyRule]) -> bool {
    let same: HashSet<&PolicyRule> = after.iter().collect();
    let changed: Vec<&PolicyRule> = before.iter().filter(|rule| !same.contains(rule)).collect();
    let (old, new): (usize, usize) =
        (changed.iter().map(|rule| rule.words()).sum(), after.iter().map(PolicyRule::words).sum());
    let comparisons = changed.len().saturating_mul(new).saturating_add(after.len().saturating_mul(old));
    comparisons <= MAX_COMPARISONS && changed.iter().all(|rule| after.iter().any(|other| other.covers_rule(rule)))
}

/// Reads removals and replacements out of the difference of two forms; additions take nothing away.
fn diffed(before: &Value, after: &Value) -> Vec<Loss> {
    let mut losses: Vec<Loss> = Vec::new();
    let mut grants: HashMap<String, usize> = HashMap::new();
    for operation in json_patch::diff(before, after).0 {
        let (path, new) = match &operation {
            PatchOperation::Remove(remove) => (&remove.path, None),
            PatchOperation::Replace(replace) => (&replace.path, replace.value.as_str()),
            _ => continue,
        };
        let Some(loss) = loss(before, path, new) else { continue };
        if let Loss::Grant { on, verbs } = &loss {
            if let Some(Loss::Grant { verbs: known, .. }) = grants.get(on).and_then(|place| losses.get_mut(*place)) {
                known.extend(verbs.iter().cloned());
                continue;
            }
            grants.insert(on.clone(), losses.len());
        }
        losses.push(loss);
    }
    losses
}

fn loss(before: &Value, path: &Pointer, new: Option<&str>) -> Option<Loss> {
    let words: Vec<String> = path.tokens().map(|token| token.decoded().into_owned()).collect();
    let old = before.pointer(path.as_str());
    let (part, rest) = words.split_first()?;
    let (member, rest) = rest.split_first()?;
    let member = member.clone();
    Some(match part.as_str() {
        "rules" => {
            let whole = || old.and_then(Value::as_object).map(|verbs| verbs.keys().cloned().collect());
            Loss::Grant { on: member, verbs: rest.first().map(|verb| vec![verb.clone()]).or_else(whole)? }
        }
        "subjects" => Loss::Subject(member),
        "secrets" => Loss::Secret(member),
        "imagePullSecrets" => Loss::PullSecret(member),
        "token" => Loss::Token,
        "aggregates" => Loss::Aggregation(member),
        "labels" => {
            let from = old.and_then(Value::as_str).unwrap_or_default().to_owned();
            match new {
                Some(to) => Loss::LabelValue { key: member, from, to: to.to_owned() },
                None => Loss::Label { key: member, value: from },
            }
        }
        _ => return None,
    })
}
