//! Clusters that Applications name and nobody can resolve: Argo CD knows them by Secrets that the guard does not see. Each may
//! be the guard's own, which anybody can register under a second name.

use std::collections::BTreeSet;

use super::{AppId, ClusterId, Inventory, Key, LOCAL};

impl Inventory {
    /// Clusters that nobody can resolve and that some Application deploys to.
    pub fn unresolved_clusters(&self) -> BTreeSet<ClusterId> {
        self.somewhere.iter().map(|(cluster, _)| *cluster).collect()
    }

    /// Whether nobody can resolve a cluster.
    pub fn is_unresolved(&self, cluster: ClusterId) -> bool {
        self.clusters.is_unresolved(self.cluster_name(cluster))
    }

    /// Applications that deploy to a cluster which nobody can resolve.
    pub fn somewhere(&self) -> impl Iterator<Item = AppId> {
        self.somewhere.iter().map(|(_, id)| *id)
    }

    /// What the fingerprint of an object on one cluster is if that cluster is another one.
    pub fn moved(&self, key: Key, from: ClusterId, to: ClusterId) -> Key {
        key.on(self.salt(from)).on(self.salt(to))
    }

    /// What the fingerprint of an object on a cluster is if that is the guard's own.
    pub fn taken_for_local(&self, key: Key, cluster: ClusterId) -> Key {
        self.moved(key, cluster, LOCAL)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        argo::{Application, Clusters},
        object::ObjectRef,
    };

    #[test]
    fn cluster_is_unresolved_until_an_alias_or_a_secret_tells() {
        let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
        let text = json!({"metadata": {"name": "a", "namespace": "argocd"}, "spec": {"destination": {"name": "prod"}},
            "status": {"resources": [{"kind": "Secret", "namespace": "shop", "name": "s", "status": "Synced"}]}})
        .to_string();
        let id = inventory.apply_application(&serde_json::from_str::<Application<'_>>(&text).unwrap());
        let secret = ObjectRef::new("", "Secret", "shop", "s");
        let cluster = inventory.app(id).unwrap().cluster;
        assert_eq!(inventory.somewhere().collect::<Vec<_>>(), [id]);
        assert_eq!(inventory.unresolved_clusters(), BTreeSet::from([cluster]));
        let key = inventory.app(id).unwrap().claims[0].key;
        assert_eq!(inventory.taken_for_local(key, cluster), inventory.key_of(LOCAL, &secret));
        for group in [vec!["prod", "in-cluster"], vec!["prod"], vec!["prod", "https://east"]] {
            inventory.set_clusters(Clusters::new([group]));
            assert_eq!(inventory.somewhere().count(), 0);
        }
        inventory.set_clusters(Clusters::default());
        assert_eq!(inventory.somewhere().count(), 1);
        inventory.remove_application("argocd", "a");
        assert!(inventory.unresolved_clusters().is_empty());
    }
}
