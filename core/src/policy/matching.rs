//! Where an override or an exemption applies.

use std::collections::BTreeMap;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::{
    PolicyError,
    schema::{LabelOperator, LabelSelector, Match},
};

/// What a matcher is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Namespace of the object a finding is about; for a Namespace its own name, empty for other cluster-scoped kinds.
    pub namespace: &'a str,
    /// Labels of that namespace, if known.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// AppProject of the Application that is deleted.
    pub project: Option<&'a str>,
    /// User name of the caller.
    pub user: &'a str,
}

/// A checked [`Match`].
#[derive(Clone, Debug)]
pub struct Matcher {
    namespaces: Option<GlobSet>,
    selector: Option<LabelSelector>,
    projects: Option<GlobSet>,
    users: Vec<String>,
}

impl Matcher {
    /// Checks `wanted`, found at `field` of the policy.
    pub(super) fn new(wanted: &Match, field: &str) -> Result<Self, PolicyError> {
        let selector = wanted
            .namespace_selector
            .clone()
            .filter(|selector| !selector.match_labels.is_empty() || !selector.match_expressions.is_empty());
        let matcher = Self {
            namespaces: patterns(&wanted.namespaces, &format!("{field}.namespaces"))?,
            selector,
            projects: patterns(&wanted.projects, &format!("{field}.projects"))?,
            users: wanted.users.clone(),
        };
        if matcher.namespaces.is_none()
            && matcher.selector.is_none()
            && matcher.projects.is_none()
            && matcher.users.is_empty()
        {
            return Err(PolicyError::new(
                field,
                "it matches nothing in particular; write namespaces: [\"*\"] to mean everything",
            ));
        }
        Ok(matcher)
    }

    /// A matcher of every namespace.
    pub(super) fn everything() -> Self {
        Self { namespaces: None, selector: None, projects: None, users: Vec::new() }
    }

    /// Whether every condition that is given holds.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        self.matches_namespace(subject.namespace)
            && self.selector.as_ref().is_none_or(|selector| {
                // A namespace whose labels are not known is not matched: unknown must not widen an exemption.
                subject.labels.is_some_and(|labels| selector.matches(labels))
            })
            && self.projects.as_ref().is_none_or(|set| subject.project.is_some_and(|project| set.is_match(project)))
            && (self.users.is_empty() || self.users.iter().any(|user| user == subject.user))
    }

    /// Whether the namespace patterns, if any, match.
    pub(super) fn matches_namespace(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|set| set.is_match(namespace))
    }

    /// Whether the conditions on the namespace and its labels hold, whatever project and user.
    pub(super) fn matches_place(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        self.matches_namespace(namespace) && self.selector.as_ref().is_none_or(|selector| selector.matches(labels))
    }

    /// Whether neither project nor user takes part.
    pub(super) fn is_about_place_only(&self) -> bool {
        self.projects.is_none() && self.users.is_empty()
    }

    /// Whether the project of an Application takes part.
    pub fn reads_projects(&self) -> bool {
        self.projects.is_some()
    }

    /// The users it names.
    pub(super) fn users(&self) -> &[String] {
        &self.users
    }

    /// The labels of the namespace that take part.
    pub(super) fn label_keys(&self) -> impl Iterator<Item = &str> {
        let matched = self.selector.iter().flat_map(|selector| selector.match_labels.keys());
        let expressions = self.selector.iter().flat_map(|selector| &selector.match_expressions);
        matched.chain(expressions.map(|expression| &expression.key)).map(String::as_str)
    }

    /// Whether labels of the namespace take part.
    pub fn reads_labels(&self) -> bool {
        self.selector.is_some()
    }
}

fn patterns(patterns: &[String], field: &str) -> Result<Option<GlobSet>, PolicyError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for (index, pattern) in patterns.iter().enumerate() {
        let glob = GlobBuilder::new(pattern).build().map_err(|error| {
            PolicyError::new(format!("{field}[{index}]"), format!("`{pattern}` is no pattern: {}", error.kind()))
        })?;
        set.add(glob);
    }
    set.build().map(Some).map_err(|error| PolicyError::new(field, error.to_string()))
}

impl LabelSelector {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| {
                let value = labels.get(&expression.key);
                match expression.operator {
                    LabelOperator::In => value.is_some_and(|value| expression.values.contains(value)),
                    LabelOperator::NotIn => value.is_none_or(|value| !expression.values.contains(value)),
                    LabelOperator::Exists => value.is_some(),
                    LabelOperator::DoesNotExist => value.is_none(),
                }
            })
    }
}
