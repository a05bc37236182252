//! Building a deletion plan.
//!
//! Two steps repeat until nothing changes: [`closure`] follows Applications, ApplicationSets, Namespaces and definitions as
//! deep as they go; then the fate of each object is decided: what of it others still claim, and what the cascade will pass
//! by. What is passed by takes nothing along, so the closure is built again without it. Each round can only make the plan
//! smaller, so this ends.

use std::collections::{HashMap, HashSet};

use super::{
    claimants::{claimants, is_terminating_application},
    closure::{self, Root},
    names::name,
    plan::{Fate, Inputs, Item, Plan, Spared, Via},
    sparing::{fate, settle},
    unknown_claimants::{read_for_unknown_claimants, unknown_claimants},
};
use crate::{
    facts::Facts,
    inventory::{AppId, Key, LOCAL},
    object::ARGO_GROUP,
};

/// Builds the plan of `root`. Applications in `with` are treated as going too.
pub fn build(
    inputs: Inputs<'_>,
    facts: &mut Facts,
    root: &Root<'_>,
    with: &HashSet<AppId>,
    manager: Option<AppId>,
) -> Plan {
    let mut spared: HashMap<Key, Spared> = HashMap::new();
    loop {
        let mut plan = closure::close(inputs, facts, root, with, &spared);
        let newly = decide(inputs, facts, &mut plan, manager, &mut spared);
        if !newly {
            return plan;
        }
    }
}

/// Decides every item. Returns whether something that takes others along turned out to be spared, so that the closure has
/// to be built again without it.
fn decide(
    inputs: Inputs<'_>,
    facts: &mut Facts,
    plan: &mut Plan,
    manager: Option<AppId>,
    spared: &mut HashMap<Key, Spared>,
) -> bool {
    let mut newly = false;
    for place in 0..plan.items.len() {
        let claimants = claimants(inputs, plan, place, manager);
        plan.items[place].claimants = claimants;
        if inputs.thorough {
            name(inputs, facts, plan, place);
        }
        let item = &plan.items[place];
        if item.via != Via::Cascade || matches!(item.fate, Fate::Spared(_)) || !needs_decision(inputs, plan, item) {
            continue;
        }
        name(inputs, facts, plan, place);
        let Some(fate) = fate(inputs, facts, plan, &plan.items[place]) else {
            plan.pending = true;
            continue;
        };
        newly |= settle(facts, plan, place, fate, spared);
    }
    if !newly {
        newly = read_for_unknown_claimants(inputs, facts, plan, manager, spared);
    }
    if newly {
        return true;
    }
    for item in plan.items.iter_mut().filter(|item| !item.claimants.is_empty()) {
        if is_terminating_application(inputs, item) {
            item.claimants.clear();
        }
    }
    plan.unknown_claimants = unknown_claimants(inputs, plan, manager);
    false
}

/// Only what others claim is worth a read, and Namespaces, because so much goes with them.
fn needs_decision(inputs: Inputs<'_>, plan: &Plan, item: &Item) -> bool {
    if inputs.thorough || !item.claimants.is_empty() || item.kind.is("", "Namespace") {
        return true;
    }
    // A child that is kept takes nothing along. The inventory knows that much without a read.
    let child = (item.cluster == LOCAL && item.kind.is(ARGO_GROUP, "Application"))
        .then(|| inputs.inventory.app_by_key(item.key));
    child.flatten().and_then(|id| inputs.inventory.app(id)).is_some_and(|app| app.kept && plan.items.len() > 1)
}
