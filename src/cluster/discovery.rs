//! Which kinds the API server serves, under which names, with or without a namespace.
//!
//! Rules and Applications speak of groups and kinds; URLs want versions and plurals. The scope of custom kinds comes from
//! here as well: definitions themselves are large and are not read.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use kube::{Client, client::APIGroupDiscoveryList};
use tokio::{sync::Mutex, time::Instant};

use cascade_guard_core::object::GroupKind;

/// A kind that was asked for and is not known makes the guard look again, but not more often than this.
const AGAIN: Duration = Duration::from_secs(10);

/// How a kind is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The version the API server prefers.
    pub version: String,
    /// Plural, lower case.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// The kinds that the API server serves.
#[derive(Debug)]
pub struct Kinds {
    served: ArcSwap<HashMap<GroupKind, Served>>,
    refreshed: Mutex<Option<Instant>>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { served: ArcSwap::from_pointee(HashMap::new()), refreshed: Mutex::new(None) }
    }
}

impl Kinds {
    /// Asks the API server what it serves now.
    ///
    /// # Errors
    /// When it cannot be asked; what was known before stays.
    pub async fn refresh(&self, client: &Client) -> Result<(), kube::Error> {
        let mut refreshed = self.refreshed.lock().await;
        self.load(client).await?;
        *refreshed = Some(Instant::now());
        Ok(())
    }

    async fn load(&self, client: &Client) -> Result<(), kube::Error> {
        let (core, groups) =
            futures::try_join!(client.list_core_api_versions_aggregated(), client.list_api_groups_aggregated())?;
        let mut served = HashMap::new();
        for list in [core, groups] {
            collect(list, &mut served);
        }
        self.served.store(Arc::new(served));
        Ok(())
    }

    /// How a kind is served, if it is. Looks again before it says no.
    ///
    /// # Errors
    /// When the kind is not known and the API server cannot be asked.
    pub async fn find(&self, client: &Client, kind: &GroupKind) -> Result<Option<Served>, kube::Error> {
        if let Some(served) = self.known(kind) {
            return Ok(Some(served));
        }
        let mut refreshed = self.refreshed.lock().await;
        if refreshed.is_none_or(|at| at.elapsed() >= AGAIN) {
            self.load(client).await?;
            *refreshed = Some(Instant::now());
        }
        Ok(self.known(kind))
    }

    /// How a kind was served when the API server was last asked.
    pub fn known(&self, kind: &GroupKind) -> Option<Served> {
        self.served.load().get(kind).cloned()
    }

    /// The kind that a person means by a word, such as `role` or `deploy`. Where several groups have it the first in
    /// alphabetical order is meant; `Kind.group` says which.
    pub fn meant_by(&self, word: &str) -> Option<GroupKind> {
        self.served.load().keys().filter(|kind| kind.is_meant_by(word)).min().cloned()
    }

    /// Every kind whose objects have no namespace.
    pub fn cluster_scoped(&self) -> HashSet<GroupKind> {
        self.served.load().iter().filter(|(_, served)| !served.namespaced).map(|(kind, _)| kind.clone()).collect()
    }
}

fn collect(list: APIGroupDiscoveryList, served: &mut HashMap<GroupKind, Served>) {
    for group in list.items {
        let name = group.metadata.and_then(|meta| meta.name).unwrap_or_default();
        // Versions come in the order of preference; the first that has the kind counts.
        for version in group.versions {
            let number = version.version.unwrap_or_default();
            for resource in version.resources {
                let (Some(plural), Some(kind)) = (resource.resource, resource.response_kind.and_then(|kind| kind.kind))
                else {
                    continue;
                };
                // Kinds that are only posted (reviews, bindings) share names with others and cannot be read.
                if !resource.verbs.iter().any(|verb| verb == "get") {
                    continue;
                }
                let namespaced = resource.scope.as_deref() == Some("Namespaced");
                served.entry(GroupKind::new(&name, &kind)).or_insert(Served {
                    version: number.clone(),
                    plural,
                    namespaced,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferred_version_counts_and_what_cannot_be_read_does_not() {
        let list = serde_json::from_str(
            r#"{"items":[{"metadata":{"name":"autoscaling"},"versions":[
                {"version":"v2","resources":[{"resource":"horizontalpodautoscalers","scope":"Namespaced",
                    "responseKind":{"kind":"HorizontalPodAutoscaler"},"verbs":["get","list"]}]},
                {"version":"v1","resources":[{"resource":"horizontalpodautoscalers","scope":"Namespaced",
                    "responseKind":{"kind":"HorizontalPodAutoscaler"},"verbs":["get","list"]},
                    {"resource":"reviews","scope":"Cluster","responseKind":{"kind":"Review"},"verbs":["create"]}]}]}]}"#,
        )
        .unwrap();
        let mut served = HashMap::new();
        collect(list, &mut served);
        assert_eq!(served.len(), 1);
        let found = &served[&GroupKind::new("autoscaling", "HorizontalPodAutoscaler")];
        assert_eq!((found.version.as_str(), found.namespaced), ("v2", true));
    }
}
