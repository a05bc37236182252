//! Building a deletion plan.
//!
//! First the [`closure`] follows Applications, ApplicationSets, Namespaces and definitions as deep as they go, and leaves
//! aside what the cascade passes by. Then it is found out which Applications surely go ([`certainty`]): only these lose
//! their claims. Then the fate of every other object is decided, as far as somebody hangs on it.

use super::{
    certainty,
    claimants::{claimants, is_terminating_application},
    closure::{self, Root},
    names::name,
    perhaps_here,
    plan::{Inputs, Item, Leaving, Plan, Via},
    sparing::{fate, settle},
    unknown_claimants::{read_for_unknown_claimants, unknown_claimants},
};
use crate::{facts::Facts, inventory::AppId};

/// Builds the plan of `root`. Applications in `with` are treated as going too.
pub fn build(inputs: Inputs<'_>, facts: &mut Facts, root: &Root<'_>, with: &Leaving, manager: Option<AppId>) -> Plan {
    let mut plan = closure::close(inputs, facts, root, with);
    certainty::find(inputs, facts, &mut plan);
    for place in 0..plan.items.len() {
        if !facts.step() {
            return plan;
        }
        plan.items[place].claimants = claimants(inputs, &plan, place, manager);
        if inputs.thorough {
            name(inputs, facts, &mut plan, place);
        }
        let item = &plan.items[place];
        // The closure has decided what takes others along.
        if item.via != Via::Cascade || item.kind.takes_others() || !needs_decision(inputs, item) {
            continue;
        }
        name(inputs, facts, &mut plan, place);
        match fate(inputs, facts, &plan, &plan.items[place]) {
            Some(fate) => settle(facts, &mut plan, place, fate),
            None => plan.pending = true,
        }
    }
    read_for_unknown_claimants(inputs, facts, &mut plan, manager);
    for item in plan.items.iter_mut().filter(|item| !item.claimants.is_empty()) {
        if is_terminating_application(inputs, item) {
            item.claimants.clear();
        }
    }
    plan.unknown_claimants = unknown_claimants(inputs, &plan, manager);
    plan.perhaps_here = perhaps_here::find(inputs, &plan);
    plan
}

/// The Applications that go with `root`, without what becomes of all the rest.
pub fn leaving(inputs: Inputs<'_>, facts: &mut Facts, root: &Root<'_>) -> Leaving {
    let mut plan = closure::close(inputs, facts, root, &Leaving::default());
    certainty::find(inputs, facts, &mut plan);
    plan.leaving
}

/// Only what others claim is worth a read.
fn needs_decision(inputs: Inputs<'_>, item: &Item) -> bool {
    inputs.thorough || !item.claimants.is_empty()
}
