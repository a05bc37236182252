//! Where an Application deploys to, and which names and URLs mean the same physical cluster.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::object::null_to_default;

/// Canonical name of the cluster that the guard runs in.
pub const IN_CLUSTER: &str = "in-cluster";
/// URLs under which a cluster reaches itself. Argo CD writes the first; the others can be registered as well and mean the
/// same API server.
const IN_CLUSTER_URLS: [&str; 3] =
    ["https://kubernetes.default.svc", "https://kubernetes.default", "https://kubernetes.default.svc.cluster.local"];

/// `spec.destination` of an Application.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Destination {
    /// URL of the API server.
    #[serde(deserialize_with = "null_to_default")]
    pub server: String,
    /// Name of the cluster, instead of the URL.
    #[serde(deserialize_with = "null_to_default")]
    pub name: String,
    /// Namespace for objects whose manifest names none.
    #[serde(deserialize_with = "null_to_default")]
    pub namespace: String,
}

impl Destination {
    /// Whether two destinations say the same, a trailing slash aside (`util/argo/argo.go` trims it).
    pub fn same_as(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.name == other.name && trim(&self.server) == trim(&other.server)
    }

    /// Whether Argo CD finds this destination by the Secret that registers the cluster `name` at `server`. It knows its
    /// own cluster without one.
    pub fn needs_secret(&self, name: &str, server: &str) -> bool {
        let own = trim(&self.server);
        if own.is_empty() {
            return self.name == name && name != IN_CLUSTER;
        }
        own == trim(server) && !IN_CLUSTER_URLS.contains(&own)
    }

    /// Whether Argo CD finds this destination only by the Secret of some cluster.
    pub fn needs_some_secret(&self) -> bool {
        let own = trim(&self.server);
        if own.is_empty() { !self.name.is_empty() && self.name != IN_CLUSTER } else { !IN_CLUSTER_URLS.contains(&own) }
    }
}

fn trim(server: &str) -> &str {
    let server = server.trim_end_matches('/');
    server.strip_suffix(":443").unwrap_or(server)
}

/// Which names and URLs belong to one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Clusters {
    canonical: HashMap<String, String>,
}

impl Clusters {
    /// Builds the table from groups of names and URLs, each group one physical cluster: `clusterAliases` of the policy
    /// and the name and server of every readable cluster Secret.
    pub fn new<'a>(groups: impl IntoIterator<Item = Vec<&'a str>>) -> Self {
        let mut clusters = Self::default();
        for group in groups {
            // Groups that overlap are one cluster; the guard's own cluster keeps its name.
            let mut names: Vec<String> = group.iter().map(|name| clusters.of(name)).collect();
            names.sort_by_key(|name| name != IN_CLUSTER);
            let Some(first) = names.first().cloned() else { continue };
            for value in clusters.canonical.values_mut() {
                if names.contains(value) {
                    first.clone_into(value);
                }
            }
            for name in group.iter().map(|name| trim(name)).chain(names.iter().map(String::as_str)) {
                clusters.canonical.insert(name.to_owned(), first.clone());
            }
        }
        clusters
    }

    fn of(&self, name_or_url: &str) -> String {
        let key = trim(name_or_url);
        if let Some(canonical) = self.canonical.get(key) {
            return canonical.clone();
        }
        if key == IN_CLUSTER || IN_CLUSTER_URLS.contains(&key) { IN_CLUSTER.to_owned() } else { key.to_owned() }
    }

    /// Canonical name of the cluster a destination means. Without server and name the guard's own cluster is assumed:
    /// such an Application is invalid, and what it lists was listed here.
    pub fn resolve(&self, destination: &Destination) -> String {
        match (destination.server.is_empty(), destination.name.is_empty()) {
            (false, _) => self.of(&destination.server),
            (true, false) => self.of(&destination.name),
            (true, true) => IN_CLUSTER.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(server: &str) -> Destination {
        Destination { server: server.to_owned(), ..Destination::default() }
    }

    fn name(name: &str) -> Destination {
        Destination { name: name.to_owned(), ..Destination::default() }
    }

    #[test]
    fn secret_is_needed_by_whoever_names_its_cluster() {
        let needs = |destination: Destination| destination.needs_secret("east", "https://east.example.com");
        assert!(needs(name("east")) && needs(server("https://east.example.com/")));
        assert!(!needs(name("west")) && !needs(Destination::default()));
        assert!(name("west").needs_some_secret() && server("https://west").needs_some_secret());
        assert!(
            !name(IN_CLUSTER).needs_some_secret() && !server("https://kubernetes.default.svc/").needs_some_secret()
        );
        assert!(!Destination::default().needs_some_secret());
        assert!(!name(IN_CLUSTER).needs_secret(IN_CLUSTER, IN_CLUSTER_URLS[0]));
        assert!(!server(IN_CLUSTER_URLS[0]).needs_secret(IN_CLUSTER, IN_CLUSTER_URLS[0]));
    }

    #[test]
    fn own_cluster_has_many_spellings() {
        let clusters = Clusters::new([vec!["https://api.example.com:6443", "in-cluster"]]);
        for destination in [
            server("https://kubernetes.default.svc"),
            server("https://kubernetes.default.svc/"),
            server("https://kubernetes.default.svc:443"),
            name("in-cluster"),
            server("https://api.example.com:6443/"),
        ] {
            assert_eq!(clusters.resolve(&destination), IN_CLUSTER, "{destination:?}");
        }
        assert_ne!(clusters.resolve(&server("https://east.example.com")), IN_CLUSTER);
    }

    #[test]
    fn overlapping_groups_are_one_cluster() {
        let clusters = Clusters::new([vec!["east", "https://east"], vec!["https://east-lb", "https://east/"]]);
        assert_eq!(clusters.resolve(&name("east")), clusters.resolve(&server("https://east-lb")));
        let clusters = Clusters::new([vec!["a", "https://a"], vec!["https://a", IN_CLUSTER]]);
        assert_eq!(clusters.resolve(&name("a")), IN_CLUSTER);
    }
}
