//! Which Applications of a plan surely go, and which only may.
//!
//! A child surely goes only if nothing passes it by: its marker names an Application that surely goes and takes it. Where
//! the marker names another Application or nobody, it may go while its parent heals itself or runs an operation, because
//! the parent is about to write the marker. What an ApplicationSet generated goes with the set.

use std::collections::HashMap;

use super::plan::{Fate, Inputs, Item, Plan, Taker, Via};
use crate::{
    argo::sync_options::is_kept,
    facts::Facts,
    inventory::{AppId, Key, LOCAL, Ownership, generated_by},
    object::{ARGO_GROUP, ObjectRef},
};

/// A plan is looked at so often. In the order in which it was followed, most of it is settled at the first look; what is
/// not settled by then only may go, which is the safe side.
const LOOKS: usize = 16;

/// Adds to [`super::plan::Leaving::surely`] every Application that surely goes.
pub(super) fn find(inputs: Inputs<'_>, facts: &mut Facts, plan: &mut Plan) {
    let leading: Vec<usize> = (0..plan.items.len()).filter(|place| leads_on(&plan.items[*place])).collect();
    let sets: HashMap<Box<str>, Key> = leading
        .iter()
        .map(|place| &plan.items[*place])
        .filter(|item| item.kind.is(ARGO_GROUP, "ApplicationSet"))
        .filter_map(|item| {
            let set = inputs.inventory.appset_by_key(item.key)?;
            Some((generated_by(&set.meta.name, &set.meta.uid), item.key))
        })
        .collect();
    let mut sure = vec![false; plan.items.len()];
    for _ in 0..LOOKS {
        let mut changed = false;
        for place in &leading {
            if !facts.step() {
                return;
            }
            let item = &plan.items[*place];
            if sure[*place] || !is_sure(inputs, plan, &sure, &sets, item) {
                continue;
            }
            sure[*place] = true;
            changed = true;
            let is_child = item.kind.group == ARGO_GROUP;
            if let Some(id) = application(inputs, item) {
                plan.leaving.surely.insert(id);
            }
            if is_child {
                plan.items[*place].fate = Fate::Deleted;
            }
        }
        if !changed {
            return;
        }
    }
}

fn leads_on(item: &Item) -> bool {
    item.cluster == LOCAL && item.kind.takes_others() && !item.fate.is_spared()
}

fn application(inputs: Inputs<'_>, item: &Item) -> Option<AppId> {
    inputs.inventory.app_by_key(item.key).filter(|_| item.kind.is(ARGO_GROUP, "Application"))
}

fn is_sure(inputs: Inputs<'_>, plan: &Plan, sure: &[bool], sets: &HashMap<Box<str>, Key>, item: &Item) -> bool {
    let sure_item = |key: Key| plan.place(key).is_some_and(|place| sure[place]);
    match &item.via {
        Via::Root | Via::Definition => true,
        Via::Namespace(name) => sure_item(inputs.inventory.key_of(LOCAL, &ObjectRef::namespace(name))),
        Via::Generated => {
            let set = application(inputs, item).and_then(|id| inputs.inventory.app(id)?.generated_by.as_ref());
            set.is_some_and(|set| match sets.get(set) {
                Some(key) => sure_item(*key),
                // The set that is deleted may be known to nobody but the review.
                None => plan.items.first().is_some_and(|root| root.kind.is(ARGO_GROUP, "ApplicationSet")),
            })
        }
        Via::Cascade => {
            plan.takers_of(item).any(|taker| is_leaving(plan, taker) && surely_takes(inputs, plan, taker, item))
        }
    }
}

/// Whether an Application surely goes. The one that the review carries need not be in the inventory.
fn is_leaving(plan: &Plan, taker: &Taker) -> bool {
    taker.id.is_none_or(|id| plan.leaving.surely.contains(&id))
}

/// Whether the cascade of an Application takes an item whatever else happens: the marker on it names the Application, and
/// nothing keeps it. Of a Namespace, which was read, its fate says so.
fn surely_takes(inputs: Inputs<'_>, plan: &Plan, taker: &Taker, item: &Item) -> bool {
    if item.kind.is("", "Namespace") {
        return item.fate == Fate::Deleted;
    }
    let meta = item.object.as_ref().and_then(|object| inputs.inventory.watched_markers(object));
    let inventory = inputs.inventory;
    meta.is_some_and(|meta| {
        // A marker that another Application may have written as well names nobody.
        let goes = |id: &AppId| Some(*id) == taker.id || plan.leaving.surely.contains(id);
        inventory.ownership(&taker.app, meta) == Ownership::Own
            && inventory.writers(meta, item.key).iter().all(goes)
            && !is_kept(meta, taker.app.keeps_objects)
    })
}
