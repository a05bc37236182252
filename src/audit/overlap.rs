//! Objects that several Applications claim.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{AuditInput, Step, each_object, metadata_of};
use crate::judge::{Source, View};
use cascade_guard_core::{
    argo::{Application, Marker, tracking},
    facts::Reading,
    inventory::{AppId, Inventory, Key, LOCAL},
    object::{ObjectMeta, ObjectRef},
    policy::Policy,
};

/// An object that several Applications claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overlap {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// The cluster it is on, as Argo CD names it.
    pub cluster: String,
    /// Who claims it, in order.
    pub claimants: Vec<String>,
    /// The Application whose marker it carries, by its name in markers: the one whose cascade would delete it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked_by: Option<String>,
}

/// What is known of an overlap before its name is.
struct Nameless {
    /// Group, kind and namespace, without a name.
    object: ObjectRef,
    cluster: String,
    local: bool,
    claimants: Vec<String>,
}

pub(super) async fn find<V: View, S: Source>(
    input: &AuditInput<'_, V, S>,
    progress: &(dyn Fn(Step) + Sync),
) -> Vec<Overlap> {
    let wanted = input.view.with(|inventory| contested(inventory, input.policy));
    let total: usize = wanted.len();
    let mut found = Vec::new();
    let mut done = 0;
    let listed_by: Vec<ObjectRef> = wanted.keys().cloned().collect();
    each_object(input.source, listed_by, |app, reading| {
        done += 1;
        progress(Step { what: "overlaps", done, total });
        let Some(nameless) = wanted.get(app) else { return };
        let named = match &reading {
            Reading::Found(raw) => input.view.with(|inventory| names(inventory, app, raw.get())),
            _ => BTreeMap::new(),
        };
        for (key, nameless) in nameless {
            found.push((named.get(key).cloned().unwrap_or_else(|| nameless.object.clone()), nameless));
        }
    })
    .await;
    let here = found.iter().filter(|(object, nameless)| nameless.local && !object.name.is_empty());
    let live = metadata_of(input.source, here.map(|(object, _)| object.clone()).collect::<Vec<_>>()).await;
    let mut overlaps: Vec<Overlap> = found
        .into_iter()
        .map(|(object, nameless)| Overlap {
            tracked_by: live
                .get(&object)
                .filter(|_| nameless.local)
                .and_then(|meta| input.view.with(|inventory| tracked_by(inventory, meta))),
            object,
            cluster: nameless.cluster.clone(),
            claimants: nameless.claimants.clone(),
        })
        .collect();
    overlaps
        .sort_by(|a, b| (b.claimants.len(), &a.cluster, &a.object).cmp(&(a.claimants.len(), &b.cluster, &b.object)));
    overlaps
}

/// Every object with two claimants, under the first Application that lists it: one read of that Application names it.
fn contested(inventory: &Inventory, policy: &Policy) -> BTreeMap<ObjectRef, Vec<(Key, Nameless)>> {
    let mut seen: HashSet<Key> = HashSet::new();
    let mut found: BTreeMap<ObjectRef, Vec<(Key, Nameless)>> = BTreeMap::new();
    for (_, app) in inventory.applications() {
        for claim in app.claims.iter().filter(|claim| inventory.claims().owners(claim.key).len() > 1) {
            if !seen.insert(claim.key) {
                continue;
            }
            let claimants: Vec<AppId> = inventory.claimants(claim.key, policy).collect();
            if claimants.len() < 2 {
                continue;
            }
            let bucket = inventory.claims().bucket(claim.bucket);
            let cluster = bucket.cluster;
            let mut paths: Vec<String> = claimants
                .iter()
                .filter_map(|id| inventory.app(*id))
                .map(cascade_guard_core::inventory::App::path)
                .collect();
            paths.sort();
            let nameless = Nameless {
                object: ObjectRef {
                    kind: (*bucket.kind).clone(),
                    namespace: bucket.namespace.to_string(),
                    name: String::new(),
                },
                cluster: inventory.cluster_name(cluster).to_owned(),
                local: cluster == LOCAL,
                claimants: paths,
            };
            found.entry(app.object()).or_default().push((claim.key, nameless));
        }
    }
    found
}

fn names(inventory: &Inventory, app: &ObjectRef, raw: &str) -> BTreeMap<Key, ObjectRef> {
    let cluster = inventory
        .app_named(&app.namespace, &app.name)
        .and_then(|id| inventory.app(id))
        .map_or(LOCAL, |app| app.cluster);
    let Ok(application) = serde_json::from_str::<Application<'_>>(raw) else { return BTreeMap::new() };
    inventory
        .held(&application, cluster)
        .map(|(key, held)| (key, inventory.normalise(ObjectRef::new(held.group, held.kind, held.namespace, held.name))))
        .collect()
}

fn tracked_by(inventory: &Inventory, meta: &ObjectMeta) -> Option<String> {
    inventory.installations().homes().find_map(|home| match tracking::marker(meta, inventory.settings(home)) {
        Marker::Instance(instance) => Some(instance.to_owned()),
        Marker::None | Marker::Unknown => None,
    })
}
