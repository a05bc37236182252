//! Applications that were never compared: nobody knows what they claim, so they are asked after where they may want something.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{
    names::name,
    places::touched,
    plan::{Fate, Inputs, Plan, Via},
    sparing::{fate, settle},
};
use crate::{
    argo::digest::Digest,
    facts::Facts,
    inventory::{App, AppId, ClusterId, LOCAL},
};

/// So many objects are read at a time to find one that really goes.
const PROBES: usize = 8;

/// Whether an Application that was never compared may want something of a namespace hangs on whether anything in it
/// really goes. What nobody else claims has not been read so far; it is read here until one object is found to go.
pub(super) fn read_for_unknown_claimants(
    inputs: Inputs<'_>,
    facts: &mut Facts,
    plan: &mut Plan,
    manager: Option<AppId>,
) {
    if inputs.thorough {
        return;
    }
    let wanting = unknown_claimants(inputs, plan, manager);
    if wanting.is_empty() {
        return;
    }
    let going = plan.namespaces();
    let awaited: BTreeSet<(ClusterId, String)> = wanting
        .into_iter()
        .filter_map(|id| inputs.inventory.app(id))
        .map(|app| (app.cluster, app.destination.namespace.clone()))
        .filter(|(cluster, name)| *cluster != LOCAL || !going.contains_key(name.as_str()))
        .collect();
    for places in in_namespaces(plan, awaited) {
        let mut out = 0;
        for place in places {
            let item = &plan.items[place];
            if item.fate.is_spared() {
                continue;
            }
            if item.via != Via::Cascade || item.fate != Fate::Deleted || facts.is_spent() || out == PROBES {
                break;
            }
            name(inputs, facts, plan, place);
            match fate(inputs, facts, plan, &plan.items[place]) {
                Some(Fate::Deleted | Fate::DeletedAlthough(_) | Fate::Absent) => break,
                Some(fate) => settle(facts, plan, place, fate),
                None => {
                    plan.pending = true;
                    out += 1;
                }
            }
        }
    }
}

/// Places of the items in each of these namespaces.
fn in_namespaces(plan: &Plan, namespaces: BTreeSet<(ClusterId, String)>) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<(ClusterId, String), Vec<usize>> =
        namespaces.into_iter().map(|namespace| (namespace, Vec::new())).collect();
    if !places.is_empty() {
        for (place, item) in plan.items.iter().enumerate() {
            if let Some(found) = places.get_mut(&(item.cluster, item.namespace.to_string())) {
                found.push(place);
            }
        }
    }
    places.into_values().collect()
}

/// Applications never compared that deploy into a namespace the plan touches, or render what an Application of the plan
/// renders, on the same cluster. The one that deletes, or manages what is deleted by hand, is none.
pub(super) fn unknown_claimants(inputs: Inputs<'_>, plan: &Plan, manager: Option<AppId>) -> Vec<AppId> {
    if inputs.inventory.wanting_unknown().next().is_none() {
        return Vec::new();
    }
    let touched = touched(plan);
    let rendered: HashSet<(ClusterId, Digest)> = plan
        .takers
        .iter()
        .filter(|taker| taker.app.rendered != Digest::default() && plan.items.len() > 1)
        .map(|taker| (taker.app.cluster, taker.app.rendered))
        .collect();
    let wants = |app: &App| {
        touched.contains(&(app.cluster, app.destination.namespace.as_str()))
            || rendered.contains(&(app.cluster, app.rendered))
    };
    wanting(inputs, plan, manager, wants)
}

/// The same for what the plan does not hold and takes along all the same: Applications never compared that deploy into one
/// of these namespaces of the guard's own cluster.
pub fn unknown_claimants_in(
    inputs: Inputs<'_>,
    plan: &Plan,
    manager: Option<AppId>,
    namespaces: &BTreeSet<&str>,
) -> Vec<AppId> {
    let into = |app: &App| app.cluster == LOCAL && namespaces.contains(app.destination.namespace.as_str());
    wanting(inputs, plan, manager, into)
}

fn wanting(inputs: Inputs<'_>, plan: &Plan, manager: Option<AppId>, wants: impl Fn(&App) -> bool) -> Vec<AppId> {
    let mut found: Vec<AppId> = inputs
        .inventory
        .wanting_unknown()
        .filter(|id| !plan.leaving.surely.contains(id) && manager != Some(*id))
        .filter(|id| {
            inputs.inventory.app(*id).is_some_and(|app| {
                app.terminating.is_none()
                    && inputs.policy.watches_applications_in(&app.namespace)
                    // Where no Argo CD serves it, it will never be compared and never take anything.
                    && (!app.never_compared || app.is_unreadable() || inputs.inventory.is_served(&app.namespace))
                    && wants(app)
                    && inputs.inventory.permits(app, &app.destination.namespace)
            })
        })
        .collect();
    found.sort();
    found
}
