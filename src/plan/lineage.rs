//! Applications above and below one another. A cascade of several levels was judged once, where it began; every DELETE
//! further down comes from the Application just above it and has to be seen as part of the whole.

use std::collections::HashSet;

use crate::{
    inventory::{App, AppId, Inventory, LOCAL},
    object::{ARGO_GROUP, ObjectRef},
};

/// Terminating Applications whose cascade takes this one along, at every level above it.
pub fn above(inventory: &Inventory, app: &App) -> Vec<AppId> {
    let mut found = Vec::new();
    let mut level = parents(inventory, app);
    while let Some(id) = level.pop() {
        if found.contains(&id) {
            continue;
        }
        found.push(id);
        level.extend(inventory.app(id).map(|app| parents(inventory, app)).unwrap_or_default());
    }
    found
}

/// Every Application that goes with the cascades of `roots`, those included: what stays behind may still claim something.
pub fn below(inventory: &Inventory, roots: impl IntoIterator<Item = AppId>) -> HashSet<AppId> {
    let mut found = HashSet::new();
    let mut left: Vec<AppId> = roots.into_iter().collect();
    while let Some(id) = left.pop() {
        if !found.insert(id) {
            continue;
        }
        let Some(app) = inventory.app(id).filter(|app| takes_applications(app)) else { continue };
        for claim in &app.claims {
            let kind = &inventory.claims().bucket(claim.bucket).kind;
            if kind.is(ARGO_GROUP, "Application") {
                let child = inventory.app_by_key(claim.key);
                left.extend(child.filter(|id| inventory.app(*id).is_some_and(|child| takes(inventory, app, child))));
            } else if kind.is(ARGO_GROUP, "ApplicationSet")
                && let Some(set) = inventory.appset_by_key(claim.key)
            {
                left.extend(inventory.apps_generated_by(&set.meta));
            }
        }
    }
    found
}

/// The terminating Applications that list an Application, or the ApplicationSet that generated it.
fn parents(inventory: &Inventory, app: &App) -> Vec<AppId> {
    let listing = |object: ObjectRef| inventory.claims().owners(inventory.key_of(LOCAL, &object)).to_vec();
    let going = |id: &AppId| inventory.app(*id).filter(|app| app.terminating.is_some() && takes_applications(app));
    let mut found = listing(app.object());
    found.retain(|id| going(id).is_some_and(|parent| takes(inventory, parent, app)));
    if let Some((set, _uid)) = app.generated_by.as_deref().and_then(|set| set.split_once('/')) {
        let sets = listing(ObjectRef::new(ARGO_GROUP, "ApplicationSet", &app.namespace, set));
        found.extend(sets.into_iter().filter(|id| going(id).is_some()));
    }
    found
}

/// Whether the deletion of an Application takes along what it holds on the cluster where Applications live.
fn takes_applications(app: &App) -> bool {
    app.cascades && app.cluster == LOCAL && !app.keeps_objects
}

/// Whether the cascade of `parent`, which lists it, does not pass `child` by. A marker that names another Application
/// spares it.
fn takes(inventory: &Inventory, parent: &App, child: &App) -> bool {
    let known = |name: &&str| !inventory.apps_of_instance(name).is_empty();
    !child.kept && child.parent.as_deref().filter(known).is_none_or(|name| name == &*parent.instance)
}
