//! Roles, bindings and ServiceAccounts, decoded as far as rules read them, and what a role grants.

use std::{collections::HashSet, fmt};

use serde::Deserialize;

use crate::object::{ObjectMeta, null_to_default};

/// One rule of a Role or ClusterRole (`rbac.authorization.k8s.io/v1`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// API groups; `*` means every one.
    #[serde(deserialize_with = "null_to_default")]
    pub api_groups: Vec<String>,
    /// Resources, with `/subresource` where that is meant; `*` means every one.
    #[serde(deserialize_with = "null_to_default")]
    pub resources: Vec<String>,
    /// Names; empty means every name.
    #[serde(deserialize_with = "null_to_default")]
    pub resource_names: Vec<String>,
    /// Verbs; `*` means every one.
    #[serde(deserialize_with = "null_to_default")]
    pub verbs: Vec<String>,
    /// Paths that are no resources; a last `*` matches any rest.
    #[serde(rename = "nonResourceURLs", deserialize_with = "null_to_default")]
    pub non_resource_urls: Vec<String>,
}

/// Whom a binding binds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleSubject {
    /// `ServiceAccount`, `User` or `Group`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace of a ServiceAccount.
    #[serde(deserialize_with = "null_to_default")]
    pub namespace: String,
}

impl fmt::Display for RoleSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// Which role a binding binds to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(default)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Binding {
    /// Metadata.
    #[serde(deserialize_with = "null_to_default")]
    pub metadata: ObjectMeta,
    /// The role.
    #[serde(deserialize_with = "null_to_default")]
    pub role_ref: RoleRef,
    /// Whom it binds.
    #[serde(deserialize_with = "null_to_default")]
    pub subjects: Vec<RoleSubject>,
}

/// The smallest thing a role grants: one verb on one resource or path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grant<'a> {
    /// Verb.
    pub verb: &'a str,
    /// On what.
    pub on: On<'a>,
}

/// What a verb is granted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum On<'a> {
    /// A resource of an API group; without a name, all objects of it.
    Resource {
        /// API group.
        group: &'a str,
        /// Resource, with its subresource.
        resource: &'a str,
        /// Name of the object.
        name: Option<&'a str>,
    },
    /// A path that is no resource.
    Path(&'a str),
}

impl fmt::Display for On<'_> {
    /// `deployments.apps/web`, `pods`, `/healthz`: as `kubectl auth can-i` writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path),
            Self::Resource { group, resource, name } => {
                f.write_str(resource)?;
                if !group.is_empty() {
                    write!(f, ".{group}")?;
                }
                name.map_or(Ok(()), |name| write!(f, "/{name}"))
            }
        }
    }
}

impl PolicyRule {
    /// How many grants it consists of.
    pub fn size(&self) -> usize {
        let objects = self.api_groups.len().saturating_mul(self.resources.len());
        let named = objects.saturating_mul(self.resource_names.len().max(1));
        self.verbs.len().saturating_mul(named.saturating_add(self.non_resource_urls.len()))
    }

    /// How many words it is written in.
    pub fn words(&self) -> usize {
        self.api_groups.len()
            + self.resources.len()
            + self.resource_names.len()
            + self.verbs.len()
            + self.non_resource_urls.len()
    }

    /// Everything it grants.
    pub fn grants(&self) -> impl Iterator<Item = Grant<'_>> {
        self.verbs.iter().flat_map(move |verb| self.things().map(move |on| Grant { verb, on }))
    }

    fn things(&self) -> impl Iterator<Item = On<'_>> {
        let objects = self
            .api_groups
            .iter()
            .flat_map(move |group| self.resources.iter().map(move |resource| (group.as_str(), resource.as_str())));
        let resources = objects.flat_map(move |(group, resource)| {
            let all = self.resource_names.is_empty().then_some(On::Resource { group, resource, name: None });
            let named = self.resource_names.iter().map(move |name| On::Resource { group, resource, name: Some(name) });
            all.into_iter().chain(named)
        });
        resources.chain(self.non_resource_urls.iter().map(|path| On::Path(path)))
    }

    /// Whether it grants `grant`, alone or by a wildcard. Mirrors `evaluation_helpers.go` of `pkg/apis/rbac/v1`.
    pub fn covers(&self, grant: Grant<'_>) -> bool {
        if !holds(&self.verbs, grant.verb) {
            return false;
        }
        match grant.on {
            On::Path(path) => self.non_resource_urls.iter().any(|pattern| path_matches(pattern, path)),
            On::Resource { group, resource, name } => {
                holds(&self.api_groups, group)
                    && (holds(&self.resources, resource) || self.covers_subresource(resource))
                    && (self.resource_names.is_empty()
                        || name.is_some_and(|name| self.resource_names.iter().any(|other| other == name)))
            }
        }
    }

    fn covers_subresource(&self, resource: &str) -> bool {
        let Some((_, sub)) = resource.split_once('/') else { return false };
        self.resources.iter().any(|pattern| pattern.strip_prefix("*/") == Some(sub))
    }

    /// Whether it grants all of `other`, list by list; cheaper than grant by grant, and blind to rules that do so only
    /// together.
    pub fn covers_rule(&self, other: &Self) -> bool {
        let all = |ours: &[String], theirs: &[String]| {
            let ours: HashSet<&str> = ours.iter().map(String::as_str).collect();
            ours.contains("*") || theirs.iter().all(|word| ours.contains(word.as_str()))
        };
        all(&self.verbs, &other.verbs)
            && all(&self.api_groups, &other.api_groups)
            && all(&self.resources, &other.resources)
            && all(&self.non_resource_urls, &other.non_resource_urls)
            && (self.resource_names.is_empty()
                || (!other.resource_names.is_empty() && all(&self.resource_names, &other.resource_names)))
    }
}

/// Rules are compared grant by grant as long as that takes at most this many comparisons of words.
const MAX_COMPARISONS: usize = 10_000_000;

/// Whether `given` grants all of `wanted`. Where there is too much to compare grant by grant, each rule has to be granted
/// by a single other one; where even that is too much, nobody knows, and it does not.
pub fn grants_all(wanted: &[PolicyRule], given: &[PolicyRule]) -> bool {
    let same: HashSet<&PolicyRule> = given.iter().collect();
    let wanted: Vec<&PolicyRule> = wanted.iter().filter(|rule| !same.contains(rule)).collect();
    let size = wanted.iter().map(|rule| rule.size()).fold(0, usize::saturating_add);
    let words: usize = given.iter().map(PolicyRule::words).sum();
    if size.saturating_mul(words.max(1)) > MAX_COMPARISONS {
        let wanted_words: usize = wanted.iter().map(|rule| rule.words()).sum();
        let rules = wanted.len().saturating_mul(words).saturating_add(given.len().saturating_mul(wanted_words));
        return rules <= MAX_COMPARISONS && wanted.iter().all(|rule| given.iter().any(|other| other.covers_rule(rule)));
    }
    wanted.iter().flat_map(|rule| rule.grants()).all(|grant| given.iter().any(|rule| rule.covers(grant)))
}

fn holds(words: &[String], word: &str) -> bool {
    words.iter().any(|other| other == word || other == "*")
}

fn path_matches(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(json: &str) -> PolicyRule {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn grants_are_verbs_on_things() {
        let rule = rule(
            r#"{"apiGroups":["apps"],"resources":["deployments"],"resourceNames":["web"],"verbs":["get","list"],
                "nonResourceURLs":["/healthz"]}"#,
        );
        let grants: Vec<_> = rule.grants().map(|grant| format!("{} {}", grant.verb, grant.on)).collect();
        assert_eq!(grants, ["get deployments.apps/web", "get /healthz", "list deployments.apps/web", "list /healthz"]);
        assert_eq!(rule.size(), 4);
    }

    #[test]
    fn wildcards_cover_what_they_mean() {
        let on = |group, resource, name| Grant { verb: "get", on: On::Resource { group, resource, name } };
        let all = rule(r#"{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}"#);
        assert!(all.covers(on("apps", "deployments/scale", None)));
        let scale = rule(r#"{"apiGroups":["apps"],"resources":["*/scale"],"verbs":["get"]}"#);
        assert!(scale.covers(on("apps", "deployments/scale", Some("web"))));
        assert!(!scale.covers(on("apps", "deployments", None)));
        let pods = rule(r#"{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}"#);
        assert!(!pods.covers(on("", "pods/log", None)));
        let one = rule(r#"{"apiGroups":[""],"resources":["pods"],"resourceNames":["a"],"verbs":["get"]}"#);
        assert!(one.covers(on("", "pods", Some("a"))));
        assert!(!one.covers(on("", "pods", Some("b"))) && !one.covers(on("", "pods", None)));
        let paths = rule(r#"{"nonResourceURLs":["/metrics/*"],"verbs":["get"]}"#);
        assert!(paths.covers(Grant { verb: "get", on: On::Path("/metrics/cadvisor") }));
        assert!(!paths.covers(Grant { verb: "get", on: On::Path("/healthz") }));
    }

    #[test]
    fn rules_together_grant_what_none_of_them_grants_alone() {
        let pods = |verbs: &str| rule(&format!(r#"{{"apiGroups":[""],"resources":["pods"],"verbs":[{verbs}]}}"#));
        let wanted = [pods(r#""get","list""#)];
        assert!(grants_all(&wanted, &[pods(r#""list""#), pods(r#""get""#)]));
        assert!(!grants_all(&wanted, &[pods(r#""list""#)]));
        assert!(grants_all(&[], &[]));
        // Too many to compare one by one: each has to be covered by a single rule.
        let names: Vec<String> = (0..4000).map(|number| format!("\"n{number}\"")).collect();
        let many = rule(&format!(
            r#"{{"apiGroups":[""],"resources":["pods"],"resourceNames":[{}],"verbs":["get"]}}"#,
            names.join(",")
        ));
        let but_one = PolicyRule { resource_names: many.resource_names[1..].to_vec(), ..many.clone() };
        assert!(grants_all(std::slice::from_ref(&but_one), std::slice::from_ref(&many)));
        assert!(!grants_all(&[many], &[but_one]));
    }

    #[test]
    fn rule_covers_a_narrower_rule() {
        let wide = rule(r#"{"apiGroups":[""],"resources":["pods","secrets"],"verbs":["get","list"]}"#);
        let narrow = rule(r#"{"apiGroups":[""],"resources":["pods"],"resourceNames":["a"],"verbs":["get"]}"#);
        assert!(wide.covers_rule(&narrow));
        assert!(!narrow.covers_rule(&wide));
    }
}
