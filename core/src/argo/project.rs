//! What an AppProject permits, and for whom Argo CD acts in it.

use globset::GlobMatcher;
use serde::Deserialize;

use super::{destination::is_url, patterns, patterns::Patterns};
use crate::object::{GroupKind, null_to_default};

/// `spec` of an AppProject, as far as the guard asks for it.
#[derive(Clone, Debug, Default)]
pub struct ProjectSpec {
    /// Users that Argo CD impersonates for syncs of this project (`destinationServiceAccounts`), as patterns:
    /// `<namespace>:<service account>`, with an empty namespace meaning that of the destination.
    pub sync_accounts: Vec<String>,
    source_namespaces: Patterns,
    destinations: Vec<Destinations>,
    cluster_kinds: Vec<(Pattern, Pattern)>,
}

/// One entry of `destinations`.
#[derive(Clone, Debug)]
struct Destinations {
    server: Pattern,
    name: Pattern,
    namespace: Pattern,
}

/// A glob, or with `!` before it everything else.
#[derive(Clone, Debug)]
struct Pattern {
    denies: bool,
    glob: Option<GlobMatcher>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let (denies, glob) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        Self { denies, glob: patterns::glob(glob).map(|glob| glob.compile_matcher()) }
    }

    /// Whether it matches something that is written in these ways (`globMatch` in `app_project_types.go`).
    fn matches<'t>(&self, mut texts: impl Iterator<Item = &'t str>) -> bool {
        texts.any(|text| self.glob.as_ref().is_some_and(|glob| glob.is_match(text))) != self.denies
    }
}

impl ProjectSpec {
    /// Reads an AppProject. One that cannot be read names nobody and permits no namespace but its Argo CD's own.
    pub fn read(project: &str) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Body {
            #[serde(deserialize_with = "null_to_default")]
            spec: Spec,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Spec {
            #[serde(deserialize_with = "null_to_default")]
            destination_service_accounts: Vec<Account>,
            #[serde(deserialize_with = "null_to_default")]
            source_namespaces: Vec<String>,
            #[serde(deserialize_with = "null_to_default")]
            destinations: Vec<super::Destination>,
            #[serde(deserialize_with = "null_to_default")]
            cluster_resource_whitelist: Vec<Kind>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Account {
            default_service_account: String,
            namespace: String,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Kind {
            group: String,
            kind: String,
        }
        let Body { spec } = serde_json::from_str(project).unwrap_or_default();
        // `namespace:name`, or a name in the destination's namespace, which the entry gives as a pattern.
        let account = |account: Account| {
            if account.default_service_account.contains(':') {
                account.default_service_account
            } else {
                format!("{}:{}", account.namespace, account.default_service_account)
            }
        };
        let destination = |to: &super::Destination| Destinations {
            server: Pattern::new(&to.server),
            name: Pattern::new(&to.name),
            namespace: Pattern::new(&to.namespace),
        };
        Self {
            sync_accounts: spec.destination_service_accounts.into_iter().map(account).collect(),
            source_namespaces: Patterns::new(spec.source_namespaces.iter().map(String::as_str)),
            destinations: spec.destinations.iter().map(destination).collect(),
            cluster_kinds: spec
                .cluster_resource_whitelist
                .iter()
                .map(|kind| (Pattern::new(&kind.group), Pattern::new(&kind.kind)))
                .collect(),
        }
    }

    /// Whether an Application of this project may live in a namespace other than its Argo CD's own
    /// (`IsAppNamespacePermitted`). A pattern that cannot be read here may permit it.
    pub fn permits_source(&self, namespace: &str) -> bool {
        self.source_namespaces.is_opaque() || self.source_namespaces.match_text(namespace)
    }

    /// Whether its Applications may deploy into a namespace of the cluster that is known by these names and URLs: some entry
    /// matches, and none forbids it (`isDestinationMatched`). Of a project without entries nothing is taken for forbidden:
    /// nobody has filled it in, and what its Applications list they may have deployed before.
    pub fn permits_destination(&self, cluster: &[&str], namespace: &str) -> bool {
        let mut permitted = self.destinations.is_empty();
        for entry in &self.destinations {
            let (names, servers): (Vec<&str>, Vec<&str>) = cluster.iter().copied().partition(|text| !is_url(text));
            let server = !servers.is_empty() && entry.server.matches(servers.into_iter());
            let name = !names.is_empty() && entry.name.matches(names.into_iter());
            let into = entry.namespace.matches(std::iter::once(namespace));
            if (server || name) && into {
                permitted = true;
            } else if (entry.name.denies && !name)
                || (entry.server.denies && !server)
                || (entry.namespace.denies && !into)
            {
                return false;
            }
        }
        permitted
    }

    /// Whether its Applications may deploy any object that has no namespace.
    pub fn permits_some_cluster_scoped(&self) -> bool {
        !self.cluster_kinds.is_empty()
    }

    /// Whether its Applications may deploy objects of a kind that has no namespace (`clusterResourceWhitelist`).
    pub fn permits_cluster_scoped(&self, kind: &GroupKind) -> bool {
        self.cluster_kinds.iter().any(|(group, name)| {
            group.matches(std::iter::once(kind.group.as_str())) && name.matches(std::iter::once(kind.kind.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HERE: [&str; 2] = ["https://kubernetes.default.svc", "in-cluster"];

    fn spec(spec: &Value) -> ProjectSpec {
        ProjectSpec::read(&json!({"spec": spec}).to_string())
    }

    #[test]
    fn destination_is_permitted_where_one_entry_matches_and_none_forbids() {
        let to = |destinations: Value, namespace: &str| {
            spec(&json!({"destinations": destinations})).permits_destination(&HERE, namespace)
        };
        assert!(to(json!([{"server": "*", "namespace": "*"}]), "a"));
        assert!(to(json!([{"name": "in-cluster", "namespace": "team-*"}]), "team-a"));
        assert!(to(json!([{"server": "https://kubernetes.default.svc", "namespace": "a"}]), "a"));
        assert!(!to(json!([{"server": "https://kubernetes.default.svc", "namespace": "a"}]), "b"));
        assert!(!to(json!([{"server": "https://elsewhere", "namespace": "*"}]), "a"));
        assert!(!to(json!([{"namespace": "*"}]), "a"), "no cluster");
        assert!(to(json!([]), "a"), "nobody has filled it in");
        let not_system = json!([{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-system"}]);
        assert!(to(not_system.clone(), "a") && !to(not_system, "kube-system"));
        assert!(to(json!([{"server": "*", "namespace": "!kube-system"}]), "a"));
    }

    #[test]
    fn source_namespaces_and_cluster_kinds_are_permitted_by_name_only() {
        let project = spec(&json!({"sourceNamespaces": ["team-*", "/^x$/"],
            "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}]}));
        assert!(project.permits_source("team-a") && project.permits_source("x") && !project.permits_source("evil"));
        assert!(project.permits_cluster_scoped(&GroupKind::new("", "Namespace")));
        assert!(!project.permits_cluster_scoped(&GroupKind::new("rbac.authorization.k8s.io", "ClusterRole")));
        assert!(!spec(&json!({})).permits_source("team-a"));
        assert!(!ProjectSpec::read("7").permits_source("team-a"));
    }
}
