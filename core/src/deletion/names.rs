//! Names of objects: the inventory keeps fingerprints, so a name may take one read of an Application that lists it.

use serde_json::value::RawValue;

use super::plan::{Inputs, Item, Plan};
use crate::{
    argo::Application,
    facts::{Facts, ListedNames},
    inventory::AppId,
    object::ObjectRef,
};

/// Finds the name of an item by one read of an Application that lists it.
pub(super) fn name(inputs: Inputs<'_>, facts: &mut Facts, plan: &mut Plan, place: usize) {
    match find_name(inputs, facts, plan, &plan.items[place]) {
        Some(object) => plan.items[place].object = object.ok(),
        None => plan.pending = true,
    }
}

/// The name of an item: known, or read from an Application that lists it; or why nobody can tell it. `None` while an
/// answer is out.
pub fn find_name(inputs: Inputs<'_>, facts: &mut Facts, plan: &Plan, item: &Item) -> Option<Result<ObjectRef, String>> {
    if let Some(object) = &item.object {
        return Some(Ok(object.clone()));
    }
    let unknown = || Err("no Application that lists it tells its name".to_owned());
    let listed_by = || inputs.inventory.claims().owners(item.key).first().copied();
    let Some(id) = plan.takers_of(item).find_map(|taker| taker.id).or_else(listed_by) else { return Some(unknown()) };
    Some(match names_of(inputs, facts, id)? {
        Ok(names) => names.get(&item.key).map_or_else(unknown, |name| Ok(item.called(name))),
        Err(reason) => Err(reason.to_owned()),
    })
}

/// Names of everything an Application lists, by one read of it; `None` while the answer is out, the reason in words if it
/// cannot be read.
pub(super) fn names_of<'f>(
    inputs: Inputs<'_>,
    facts: &'f mut Facts,
    id: AppId,
) -> Option<Result<&'f ListedNames, &'f str>> {
    let Some(app) = inputs.inventory.app(id) else {
        return Some(Err("the Application is gone"));
    };
    let decode = |raw: &RawValue| {
        let application: Application<'_> = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        let held = inputs.inventory.held(&application, app.cluster);
        Ok(held.map(|(key, held)| (key, held.name.into())).collect())
    };
    let names = facts.names(&app.object(), decode)?;
    Some(names.as_ref().map_err(String::as_str))
}
