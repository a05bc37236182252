//! Where an Application deploys to, and which names and URLs mean the same physical cluster.

use std::{borrow::Cow, collections::HashMap};

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
    /// Whether two destinations say the same, the spelling of the URL aside.
    pub fn same_as(&self, other: &Self) -> bool {
        self.namespace == other.namespace
            && self.name == other.name
            && canonical(&self.server) == canonical(&other.server)
    }

    /// Whether Argo CD finds this destination by the Secret that registers the cluster `name` at `server`. It knows its
    /// own cluster without one.
    pub fn needs_secret(&self, name: &str, server: &str) -> bool {
        let own = canonical(&self.server);
        if own.is_empty() {
            return self.name == name && name != IN_CLUSTER;
        }
        own == canonical(server) && !IN_CLUSTER_URLS.contains(&&*own)
    }

    /// Whether Argo CD finds this destination only by the Secret of some cluster.
    pub fn needs_some_secret(&self) -> bool {
        let own = canonical(&self.server);
        if own.is_empty() {
            !self.name.is_empty() && self.name != IN_CLUSTER
        } else {
            !IN_CLUSTER_URLS.contains(&&*own)
        }
    }
}

/// Whether a text is the URL of a cluster, not its name.
pub(super) fn is_url(name_or_url: &str) -> bool {
    name_or_url.contains("://")
}

/// A URL in the one spelling by which it is compared: scheme and host in lower case, no port that the scheme implies, no
/// slash at the end. A name stays as it is.
fn canonical(name_or_url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = name_or_url.split_once("://") else { return Cow::Borrowed(name_or_url) };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (scheme, host) = (scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
    let implied = match scheme.as_str() {
        "https" => ":443",
        "http" => ":80",
        _ => "",
    };
    let host = host.strip_suffix(implied).unwrap_or(&host);
    Cow::Owned(format!("{scheme}://{host}{}", path.trim_end_matches('/')))
}

/// Which names and URLs belong to one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Clusters {
    canonical: HashMap<String, String>,
    /// Names and URLs of each cluster, by its canonical name.
    spellings: HashMap<String, Vec<String>>,
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
            for name in group.iter().map(|name| canonical(name).into_owned()).chain(names) {
                clusters.canonical.insert(name, first.clone());
            }
        }
        for (spelling, cluster) in &clusters.canonical {
            clusters.spellings.entry(cluster.clone()).or_default().push(spelling.clone());
        }
        for spellings in clusters.spellings.values_mut() {
            spellings.sort();
        }
        clusters
    }

    fn of(&self, name_or_url: &str) -> String {
        let key = canonical(name_or_url);
        if let Some(canonical) = self.canonical.get(&*key) {
            return canonical.clone();
        }
        if key == IN_CLUSTER || IN_CLUSTER_URLS.contains(&&*key) { IN_CLUSTER.to_owned() } else { key.into_owned() }
    }

    /// Whether nobody says which cluster this canonical name means: Argo CD knows it by a Secret that the guard does not
    /// see. It may be the guard's own.
    pub fn is_unresolved(&self, cluster: &str) -> bool {
        cluster != IN_CLUSTER && !is_url(cluster) && !self.canonical.contains_key(cluster)
    }

    /// Every name and URL that is known for the cluster of a destination.
    pub fn spellings<'a>(&'a self, destination: &'a Destination) -> Vec<&'a str> {
        let cluster = self.resolve(destination);
        let own = (cluster == IN_CLUSTER).then(|| [IN_CLUSTER].into_iter().chain(IN_CLUSTER_URLS));
        let known = self.spellings.get(&cluster).into_iter().flatten().map(String::as_str);
        let written = [&destination.server, &destination.name].into_iter().map(|text| text.trim_end_matches('/'));
        own.into_iter().flatten().chain(known).chain(written.filter(|text| !text.is_empty())).collect()
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
    fn urls_are_compared_by_scheme_host_port_and_path() {
        let clusters = Clusters::new([vec!["https://Rancher.example.com/k8s/clusters/c-1", "one"]]);
        let same = |a: &str, b: &str| clusters.resolve(&server(a)) == clusters.resolve(&server(b));
        for spelled in [
            "https://rancher.example.com/k8s/clusters/c-1/",
            "HTTPS://RANCHER.example.com:443/k8s/clusters/c-1",
            "https://rancher.EXAMPLE.com:443/k8s/clusters/c-1//",
        ] {
            assert!(same(spelled, "https://rancher.example.com/k8s/clusters/c-1"), "{spelled}");
            assert_eq!(clusters.resolve(&server(spelled)), clusters.resolve(&name("one")), "{spelled}");
        }
        for other in [
            "https://rancher.example.com/k8s/clusters/c-2",
            "https://rancher.example.com/K8S/clusters/c-1",
            "https://rancher.example.com:8443/k8s/clusters/c-1",
            "http://rancher.example.com/k8s/clusters/c-1",
            "https://rancher.example.com",
        ] {
            assert!(!same(other, "https://rancher.example.com/k8s/clusters/c-1"), "{other}");
        }
        assert!(same("http://10.0.0.1:80", "http://10.0.0.1") && !same("https://10.0.0.1:80", "https://10.0.0.1"));
        assert_eq!(clusters.resolve(&server("https://Kubernetes.Default.Svc:443/")), IN_CLUSTER);
    }

    #[test]
    fn name_that_no_secret_and_no_alias_tells_is_unresolved() {
        let clusters = Clusters::new([vec!["east", "https://east"], vec!["prod", IN_CLUSTER]]);
        let unresolved = |to: Destination| clusters.is_unresolved(&clusters.resolve(&to));
        assert!(unresolved(name("west")));
        for known in [name("east"), name("prod"), name(IN_CLUSTER), server("https://west"), Destination::default()] {
            assert!(!unresolved(known.clone()), "{known:?}");
        }
        assert_eq!(clusters.spellings(&name("east")), ["east", "https://east", "east"]);
        assert!(clusters.spellings(&name("prod")).contains(&IN_CLUSTER_URLS[0]));
    }

    #[test]
    fn overlapping_groups_are_one_cluster() {
        let clusters = Clusters::new([vec!["east", "https://east"], vec!["https://east-lb", "https://east/"]]);
        assert_eq!(clusters.resolve(&name("east")), clusters.resolve(&server("https://east-lb")));
        let clusters = Clusters::new([vec!["a", "https://a"], vec!["https://a", IN_CLUSTER]]);
        assert_eq!(clusters.resolve(&name("a")), IN_CLUSTER);
    }
}
