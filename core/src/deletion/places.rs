//! Where a plan takes something.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::plan::{Item, Plan, Via};
use crate::{inventory::ClusterId, object::ARGO_GROUP};

/// Namespaces from which a plan takes something, or that it takes.
pub(super) fn touched(plan: &Plan) -> HashSet<(ClusterId, &str)> {
    let mut touched = HashSet::new();
    for item in plan.items.iter().filter(|item| !item.fate.is_spared()) {
        if item.kind.is("", "Namespace") {
            touched.extend(item.object.as_ref().map(|object| (item.cluster, object.name.as_str())));
        } else if !item.namespace.is_empty() && !is_root_application(item) {
            touched.insert((item.cluster, &*item.namespace));
        }
    }
    touched
}

/// The Application that is deleted is no part of what its namespace holds for others.
fn is_root_application(item: &Item) -> bool {
    item.via == Via::Root && item.kind.is(ARGO_GROUP, "Application")
}

/// The namespaces that a plan touches, in order, by cluster.
pub(super) fn touched_by_cluster(plan: &Plan) -> HashMap<ClusterId, BTreeSet<&str>> {
    let mut clusters: HashMap<ClusterId, BTreeSet<&str>> = HashMap::new();
    for (cluster, namespace) in touched(plan) {
        clusters.entry(cluster).or_default().insert(namespace);
    }
    clusters
}
