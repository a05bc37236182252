//! What happens to each object of a plan: deleted, passed by, or contested.

use jiff::Timestamp;

use super::plan::{Fate, Inputs, Item, Plan, Spared, Via};
use crate::{
    argo::sync_options::is_kept,
    facts::{Facts, Reading},
    inventory::{App, LOCAL, Ownership},
    object::{ObjectMeta, ObjectRef},
    text::some,
};

/// Sets the fate of an item.
pub(super) fn settle(facts: &mut Facts, plan: &mut Plan, place: usize, fate: Fate) {
    let item = &mut plan.items[place];
    item.finalizers = finalizers(facts, item);
    item.fate = fate;
}

/// Why an Application may take an object that does not carry its marker, if it may: it is about to write the marker, and
/// then the live object says nothing about a second from now (recording s03).
pub(super) fn busy(app: &App) -> Option<String> {
    if app.running.is_some() {
        Some(format!("{} runs an operation", app.path()))
    } else if app.self_heals {
        Some(format!("{} heals itself and may take it back at any moment", app.path()))
    } else {
        None
    }
}

/// The fate of `item`, called `object`, with the read that the plan of a review spares itself where nobody else claims
/// an object. `None` while an answer is out.
pub fn confirm(inputs: Inputs<'_>, facts: &mut Facts, plan: &Plan, item: &Item, object: &ObjectRef) -> Option<Fate> {
    if item.via != Via::Cascade || item.fate != Fate::Deleted {
        return Some(item.fate.clone());
    }
    fate(inputs, facts, plan, &Item { object: Some(object.clone()), ..item.clone() })
}

/// The fate of an object that a cascade lists; `None` while an answer is out.
pub(super) fn fate(inputs: Inputs<'_>, facts: &mut Facts, plan: &Plan, item: &Item) -> Option<Fate> {
    facts.spend(item.takers.len() + item.claimants.len());
    // Who keeps what it lists writes no marker that would change that.
    let unless_busy = |reason: Spared, meta: Option<&ObjectMeta>| {
        let keeps = |app: &App| meta.is_some_and(|meta| is_kept(meta, app.keeps_objects));
        let mut takers = plan.takers_of(item).filter(|taker| !keeps(&taker.app));
        match takers.find_map(|taker| busy(&taker.app)) {
            None => Fate::Spared(reason),
            Some(why) => Fate::DeletedAlthough(format!("{reason}, but {why}")),
        }
    };
    let unread = |reason: &str| Fate::DeletedAlthough(format!("whether it would be spared is not known: {reason}"));
    let by_lists = |otherwise: Fate| match taken_over(inputs, plan, item) {
        Some(app) => unless_busy(Spared::TakenOver(app), None),
        None => otherwise,
    };
    let Some(object) = item.object.as_ref().filter(|object| !object.name.is_empty()) else {
        let unread = Fate::DeletedAlthough("its name is not known, so it was not read".to_owned());
        return Some(if facts.is_spent() { by_lists(unread) } else { unread });
    };
    if item.cluster != LOCAL {
        return Some(by_lists(Fate::Deleted));
    }
    Some(match inputs.live(facts, object)? {
        // What takes others along does so from the moment it is marked for deletion.
        Reading::Found(meta) if meta.is_terminating() && !item.kind.takes_others() => Fate::Spared(Spared::Terminating),
        Reading::Found(meta) => match spared_by(inputs, plan, item, &meta) {
            Some(reason @ (Spared::OtherMarker(_) | Spared::NoMarker)) => unless_busy(reason, Some(&meta)),
            Some(always) => Fate::Spared(always),
            None => ambiguous(inputs, plan, item, &meta).map_or(Fate::Deleted, Fate::DeletedAlthough),
        },
        Reading::NotFound if listed_as_synced(inputs, item) => Fate::Absent,
        Reading::NotFound => Fate::Spared(Spared::Gone),
        Reading::Forbidden(reason) => by_lists(unread(&reason)),
        Reading::Unreadable(reason) => unread(&reason),
    })
}

/// Finalizers of an object that was read.
fn finalizers(facts: &mut Facts, item: &Item) -> Vec<String> {
    let object = item.object.as_ref().filter(|object| item.cluster == LOCAL && !object.name.is_empty());
    match object.and_then(|object| facts.metadata(object)) {
        Some(Reading::Found(meta)) => meta.finalizers.clone(),
        _ => Vec::new(),
    }
}

/// Why the cascade would pass a live object by, if it would.
fn spared_by(inputs: Inputs<'_>, plan: &Plan, item: &Item, meta: &ObjectMeta) -> Option<Spared> {
    let by_applications = plan.takers_of(item).all(|taker| taker.app.keeps_objects) && !item.takers.is_empty();
    if is_kept(meta, by_applications) {
        return Some(Spared::Kept);
    }
    if let Some(owner) = meta.owner_references.first() {
        return Some(Spared::Owned(format!("{} {}", owner.kind, owner.name)));
    }
    // An Application of the plan need not list an object to delete it: the marker alone decides. What goes with another
    // delete, such as a sibling that the garbage collector takes, answers for its own when it is deleted itself.
    let inventory = inputs.inventory;
    let ours = |instance: &str| {
        let marks = |app: &App| app.cluster == item.cluster && inventory.ownership(app, meta) == Ownership::Own;
        // The one that the review carries comes first, and need not be in the inventory.
        plan.takers.first().is_some_and(|taker| marks(&taker.app))
            || inventory
                .apps_of_instance(instance)
                .iter()
                .filter(|id| plan.taking.contains(id))
                .any(|id| inventory.app(*id).is_some_and(marks))
    };
    let mut reason = None;
    for taker in plan.takers_of(item) {
        reason = match inventory.ownership(&taker.app, meta) {
            Ownership::Own | Ownership::Unknown => return None,
            Ownership::Other { instance, .. } if ours(instance) => return None,
            // Without settings the usual label may be any chart's: where it is the marker, it counts only if it names a
            // claimant. A tracking id is written by Argo CD alone.
            Ownership::Other { instance, unproven: true } if !claimant_named(inputs, item, instance) => return None,
            Ownership::Other { instance, .. } => Some(Spared::OtherMarker(instance.to_owned())),
            Ownership::Nobody => Some(Spared::NoMarker),
        };
    }
    reason
}

/// Who else may have written the marker by which an Application of the plan takes an object: Argo CDs without an installation
/// id cannot tell Applications of one name apart, and each takes what either made.
fn ambiguous(inputs: Inputs<'_>, plan: &Plan, item: &Item, meta: &ObjectMeta) -> Option<String> {
    let inventory = inputs.inventory;
    let writers = inventory.writers(meta, item.key);
    let others = writers.iter().filter(|id| !plan.leaving.perhaps.contains(id));
    let mut others: Vec<String> = others.filter_map(|id| inventory.app(*id)).map(App::path).collect();
    others.sort();
    (!others.is_empty() && writers.len() > 1)
        .then(|| format!("its marker cannot tell whether it is that of {}", some(&others, 2)))
}

fn claimant_named(inputs: Inputs<'_>, item: &Item, instance: &str) -> bool {
    item.claimants.iter().filter_map(|id| inputs.inventory.app(*id)).any(|app| inputs.inventory.may_be(app, instance))
}

fn listed_as_synced(inputs: Inputs<'_>, item: &Item) -> bool {
    item.takers.iter().any(|(_, synced)| *synced)
        || inputs
            .inventory
            .claims()
            .owners(item.key)
            .iter()
            .any(|id| inputs.inventory.app(*id).and_then(|app| app.claim(item.key)).is_some_and(|claim| claim.synced))
}

/// Whether the lists alone show that a claimant has taken the object over: it lists it as synced, compared after the last
/// operation of every taker ended, and every taker lists it as out of sync.
fn taken_over(inputs: Inputs<'_>, plan: &Plan, item: &Item) -> Option<String> {
    if item.takers.is_empty() || item.takers.iter().any(|(_, synced)| *synced) {
        return None;
    }
    let ended = plan.takers_of(item).map(|taker| taker.app.finished_at).max().flatten();
    let claimant = item.claimants.iter().filter_map(|id| inputs.inventory.app(*id)).find(|app| {
        app.list_valid() && app.claim(item.key).is_some_and(|claim| claim.synced) && is_compared_after(app, ended)
    })?;
    Some(claimant.path())
}

/// Whether the list of an Application was made after an operation ended, if there was one.
fn is_compared_after(app: &App, ended: Option<Timestamp>) -> bool {
    app.reconciled_at.is_some_and(|compared| ended.is_none_or(|ended| compared > ended))
}

/// Whether one more taker of an item leaves it where the lists of the takers before it and of `claimant` have put it: taken
/// over.
pub(super) fn stays_taken_over(inputs: Inputs<'_>, claimant: &str, taker: &App, synced: bool) -> bool {
    let claimant = claimant.split_once('/').and_then(|(namespace, name)| inputs.inventory.app_named(namespace, name));
    !synced
        && busy(taker).is_none()
        && claimant.and_then(|id| inputs.inventory.app(id)).is_some_and(|app| is_compared_after(app, taker.finished_at))
}
