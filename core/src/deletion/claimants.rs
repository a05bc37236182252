//! Who claims what goes.

use super::plan::{Inputs, Item, Plan, Via};
use crate::{
    inventory::{AppId, LOCAL},
    object::{ARGO_GROUP, ObjectMeta},
};

/// Applications outside the plan that claim an item: not terminating, on the same cluster (the fingerprint holds it), not
/// the manager of what a person deletes by hand.
pub(super) fn claimants(inputs: Inputs<'_>, plan: &Plan, place: usize, manager: Option<AppId>) -> Vec<AppId> {
    let item = &plan.items[place];
    if is_lost_already(inputs, item) {
        return Vec::new();
    }
    // Whoever manages a Namespace that is deleted by hand gives up what it has in there as well.
    let of_root = match &item.via {
        Via::Root => true,
        Via::Namespace(name) => {
            plan.items[0].object.as_ref().is_some_and(|root| root.is_namespace() && root.name == **name)
        }
        Via::Cascade | Via::Generated | Via::Definition => false,
    };
    let exempt = |id: AppId| plan.apps.contains(&id) || (of_root && manager == Some(id));
    inputs.inventory.claimants(item.key, inputs.policy).filter(|id| !exempt(*id)).collect()
}

/// Whether an item goes without this delete: it, or the Namespace it is in, is terminating. A claim on it keeps nothing,
/// and a refusal would only keep what else is to go.
fn is_lost_already(inputs: Inputs<'_>, item: &Item) -> bool {
    let inventory = inputs.inventory;
    if item.cluster != LOCAL {
        return false;
    }
    let namespace =
        if item.kind.is("", "Namespace") { inventory.namespace_by_key(item.key) } else { Some(&*item.namespace) };
    namespace.and_then(|name| inventory.namespace(name)).is_some_and(ObjectMeta::is_terminating)
}

/// Whether an item is an Application whose own deletion has begun. Others may claim what it holds, but no longer itself.
pub(super) fn is_terminating_application(inputs: Inputs<'_>, item: &Item) -> bool {
    let app = || inputs.inventory.app_by_key(item.key).and_then(|id| inputs.inventory.app(id));
    item.cluster == LOCAL
        && item.kind.is(ARGO_GROUP, "Application")
        && app().is_some_and(|app| app.terminating.is_some())
}
