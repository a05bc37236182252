//! Claims across a cluster that nobody can resolve: it may be the guard's own, and then they are contested like any other.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{Inputs, Item, PerhapsHere, Plan};
use crate::inventory::{AppId, ClusterId, LOCAL};

/// Who may claim what of a plan, in the order of the plan. Work is linear in the plan or in the claims on such clusters,
/// whichever is less.
pub(super) fn find(inputs: Inputs<'_>, plan: &Plan) -> Vec<PerhapsHere> {
    let inventory = inputs.inventory;
    let clusters = inventory.unresolved_clusters();
    if clusters.is_empty() {
        return Vec::new();
    }
    let mut found = Found::default();
    let going = |item: &Item| !item.fate.is_spared();
    let claimants = |place: usize, on: ClusterId| {
        let item = &plan.items[place];
        let key = inventory.moved(item.key, item.cluster, on);
        inventory.claimants(key, inputs.policy).filter(|id| !plan.leaving.surely.contains(id))
    };
    for (place, item) in plan.items.iter().enumerate().filter(|(_, item)| going(item)) {
        if inventory.is_unresolved(item.cluster) {
            claimants(place, LOCAL).for_each(|id| found.add(id, item.cluster, place, 1));
        }
    }
    let here: Vec<usize> = (0..plan.items.len())
        .filter(|place| plan.items[*place].cluster == LOCAL && going(&plan.items[*place]))
        .collect();
    let claims: usize = inventory.somewhere().filter_map(|id| inventory.app(id)).map(|app| app.claims.len()).sum();
    if here.len().saturating_mul(clusters.len()) <= claims {
        for place in &here {
            for cluster in &clusters {
                claimants(*place, *cluster).for_each(|id| found.add(id, *cluster, *place, 1));
            }
        }
    } else {
        for id in inventory.somewhere() {
            let Some(app) = inventory.app(id) else { continue };
            for claim in &app.claims {
                let place = plan.place(inventory.taken_for_local(claim.key, app.cluster));
                let Some(place) = place.filter(|place| going(&plan.items[*place])) else { continue };
                if claimants(place, app.cluster).any(|claimant| claimant == id) {
                    found.add(id, app.cluster, place, 1);
                }
            }
        }
    }
    // What a Namespace holds of them is in no plan, because nobody claims it on this cluster.
    for place in here.iter().filter(|place| plan.items[**place].kind.is("", "Namespace")) {
        let Some(object) = &plan.items[*place].object else { continue };
        for cluster in &clusters {
            let buckets: BTreeSet<_> =
                inventory.claims().in_namespace(*cluster, &object.name).map(|(id, _)| id).collect();
            let apps: BTreeSet<AppId> =
                buckets.iter().flat_map(|bucket| inventory.claims().bucket(*bucket).apps()).collect();
            for id in apps.into_iter().filter(|id| !plan.leaving.surely.contains(id)) {
                let Some(app) = inventory.app(id).filter(|app| app.terminating.is_none()) else { continue };
                let wants = app.claims.iter().filter(|claim| buckets.contains(&claim.bucket));
                let counts = wants.filter(|claim| {
                    let place = plan.place(inventory.taken_for_local(claim.key, *cluster));
                    place.is_none() && inventory.claimants(claim.key, inputs.policy).any(|claimant| claimant == id)
                });
                match counts.count() {
                    0 => {}
                    count => found.add(id, *cluster, *place, count),
                }
            }
        }
    }
    let mut found: Vec<PerhapsHere> = found.0.into_values().collect();
    found.sort_by_key(|perhaps| (perhaps.place, perhaps.claimant));
    found
}

/// What is found, by claimant and cluster.
#[derive(Default)]
struct Found(BTreeMap<(AppId, ClusterId), PerhapsHere>);

impl Found {
    fn add(&mut self, claimant: AppId, cluster: ClusterId, place: usize, count: usize) {
        let known = self.0.entry((claimant, cluster)).or_insert(PerhapsHere { claimant, cluster, place, count: 0 });
        known.count += count;
    }
}
