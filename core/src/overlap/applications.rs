//! Compares two Applications of one cluster.

use std::collections::{BTreeMap, HashMap};

use super::{Comparison, ListEntry, SharedObject, migration, whole};
use crate::{
    argo::{Application, Class, sync_options::is_kept},
    deletion::{self, Inputs, Item, Leaving, Plan, Root, Via},
    facts::{Facts, Reading},
    inventory::{App, AppId, Held, Key, LOCAL, Ownership},
    object::{ObjectMeta, ObjectRef},
    text,
};

/// Finds the objects that both Applications hold, who holds them now, and the steps of a migration. While an answer is
/// out the result is provisional.
pub fn compare_applications(inputs: Inputs<'_>, facts: &mut Facts, a: AppId, b: AppId) -> Comparison {
    let inventory = inputs.inventory;
    let (Some(from), Some(to)) = (inventory.app(a), inventory.app(b)) else { return Comparison::default() };
    let mut comparison = Comparison { a: from.path(), b: to.path(), ..Comparison::default() };
    // All questions are asked at once, so that their answers come in one round.
    let texts = (whole(facts, from, &mut comparison.notes), whole(facts, to, &mut comparison.notes));
    let plan = deletion::build(inputs, facts, &Root::Known(a), &Leaving::default(), None);
    let (Some(from_text), Some(to_text)) = texts else { return comparison };
    let (Ok(from_whole), Ok(to_whole)) = (
        serde_json::from_str::<Application<'_>>(from_text.get()),
        serde_json::from_str::<Application<'_>>(to_text.get()),
    ) else {
        comparison.notes.push("an Application does not have the shape that Argo CD gives it".to_owned());
        return comparison;
    };
    let (mut ours, theirs) = (listed(inputs, &from_whole, from), listed(inputs, &to_whole, to));
    for (key, (object, in_a)) in unlisted(inputs, &plan, a, &from_whole, from) {
        ours.entry(key).or_insert((object, in_a));
    }
    let fates: HashMap<Key, &Item> = plan.items.iter().map(|item| (item.key, item)).collect();
    for (key, (object, in_a)) in &ours {
        let Some((_, in_b)) = theirs.get(key) else { continue };
        let mut row = SharedObject {
            object: object.clone(),
            in_a: Some(in_a.clone()),
            in_b: Some(in_b.clone()),
            ..SharedObject::default()
        };
        if from.cluster == LOCAL {
            describe_live(inputs, facts, &mut row, from, to);
        } else {
            row.held_by = format!("not known: it is on {}", inventory.cluster_name(from.cluster));
        }
        if let Some(item) = fates.get(key) {
            (row.fate, row.why) = item.outcome();
        }
        comparison.objects.push(row);
    }
    comparison.objects.sort_by(|one, other| one.object.cmp(&other.object));
    comparison.taken_along = taken_along(&plan, b, &ours);
    notes(inputs, &plan, from, to, &to_whole, &mut comparison);
    if !comparison.is_clean() {
        comparison.steps = migration::steps(inputs, &comparison, from, to, &from_whole);
    }
    comparison
}

/// The objects that an Application wants or still holds, by fingerprint.
pub(super) fn listed(inputs: Inputs<'_>, whole: &Application<'_>, app: &App) -> BTreeMap<Key, (ObjectRef, ListEntry)> {
    let matters = |held: &Held<'_>| match held.class {
        Class::Desired | Class::Prune | Class::Unknown | Class::NoStatus => true,
        Class::SyncResult | Class::LeftBehind => !app.list_valid(),
        Class::Hook => false,
    };
    let held = inputs.inventory.held(whole, app.cluster).filter(|(_, held)| matters(held));
    held.map(|(key, held)| {
        let object = inputs.inventory.normalise(ObjectRef::new(held.group, held.kind, held.namespace, held.name));
        let status = match (held.class, held.synced) {
            (Class::Desired, true) => "Synced",
            (Class::Desired, false) => "OutOfSync",
            (Class::Prune, _) => "left Git",
            (Class::Unknown, _) => "Unknown",
            (Class::NoStatus | Class::Hook, _) => "no status",
            (Class::SyncResult | Class::LeftBehind, _) => "last sync",
        };
        (key, (object, ListEntry { status, wave: held.wave }))
    })
    .collect()
}

/// The objects that the cascade of `app` deletes although its list does not hold them: hooks of its last sync, and objects
/// that carry its marker.
fn unlisted(
    inputs: Inputs<'_>,
    plan: &Plan,
    id: AppId,
    whole: &Application<'_>,
    app: &App,
) -> BTreeMap<Key, (ObjectRef, ListEntry)> {
    let takes = |item: &&Item| item.via == Via::Cascade && plan.takers_of(item).any(|taker| taker.id == Some(id));
    let hooks: HashMap<Key, ObjectRef> = inputs
        .inventory
        .held(whole, app.cluster)
        .filter(|(_, held)| held.class == Class::Hook)
        .map(|(key, held)| (key, ObjectRef::new(held.group, held.kind, held.namespace, held.name)))
        .collect();
    let named = plan.items.iter().filter(takes).filter_map(|item| {
        let (object, status) = match (hooks.get(&item.key), &item.object) {
            (Some(object), _) => (inputs.inventory.normalise(object.clone()), "hook"),
            (None, Some(object)) => (object.clone(), "its marker"),
            (None, None) => return None,
        };
        Some((item.key, (object, ListEntry { status, wave: 0 })))
    });
    named.collect()
}

/// Adds what the live object tells: who holds it, and what matters for a migration.
fn describe_live(inputs: Inputs<'_>, facts: &mut Facts, row: &mut SharedObject, from: &App, to: &App) {
    match facts.metadata(&row.object) {
        None => {}
        Some(Reading::Found(meta)) => {
            row.held_by = holder(inputs, &meta, &[from, to]);
            row.remarks = remarks(&meta);
        }
        Some(Reading::NotFound) => "nobody: it does not exist".clone_into(&mut row.held_by),
        Some(Reading::Unreadable(reason) | Reading::Forbidden(reason)) => {
            row.held_by = format!("not known: {reason}");
        }
    }
}

/// Names the Application whose marker an object carries. `apps` are looked at first.
pub(super) fn holder(inputs: Inputs<'_>, meta: &ObjectMeta, apps: &[&App]) -> String {
    let mut stranger = None;
    let mut unknown = false;
    for app in apps {
        match inputs.inventory.ownership(app, meta) {
            Ownership::Own => return app.path(),
            Ownership::Other { instance, .. } => stranger = Some(instance),
            Ownership::Unknown => unknown = true,
            Ownership::Nobody => {}
        }
    }
    match stranger {
        Some(instance) => match &inputs.inventory.apps_of_instance(instance)[..] {
            [only] => inputs.inventory.app(*only).map_or_else(|| instance.to_owned(), App::path),
            _ => format!("another: {instance}"),
        },
        None if unknown => "not known: nothing on it names an Application".to_owned(),
        None => "nobody".to_owned(),
    }
}

/// Lists the properties of a live object that matter for a migration.
fn remarks(meta: &ObjectMeta) -> Vec<String> {
    let mut remarks = Vec::new();
    if meta.is_terminating() {
        remarks.push("it is being deleted".to_owned());
    }
    if is_kept(meta, false) {
        remarks.push("it is marked to be kept through a cascade".to_owned());
    }
    if let Some(owner) = meta.owner_references.first() {
        remarks.push(format!("it belongs to {} {}", owner.kind, owner.name));
    }
    if !meta.finalizers.is_empty() {
        remarks.push(format!("finalizers: {}", meta.finalizers.join(", ")));
    }
    remarks
}

/// Counts the objects that the second Application wants and the first takes along without listing them: the content of its
/// Namespaces, instances of its definitions, children.
fn taken_along(plan: &Plan, b: AppId, ours: &BTreeMap<Key, (ObjectRef, ListEntry)>) -> Vec<String> {
    let mut by_holder: BTreeMap<String, usize> = BTreeMap::new();
    for item in plan.items.iter().filter(|item| item.is_contested() && item.claimants.contains(&b)) {
        if ours.contains_key(&item.key) {
            continue;
        }
        let holder = match &item.via {
            Via::Namespace(name) => format!("with Namespace {name}"),
            Via::Definition => "with its definition".to_owned(),
            Via::Root | Via::Cascade | Via::Generated => {
                let takers: Vec<String> = plan.takers_of(item).map(|taker| taker.app.path()).collect();
                format!("with {}", takers.join(", "))
            }
        };
        *by_holder.entry(holder).or_default() += 1;
    }
    by_holder.into_iter().map(|(holder, count)| format!("{} {holder}", text::count(count, "object"))).collect()
}

/// Adds what a person has to know before doing anything.
fn notes(
    inputs: Inputs<'_>,
    plan: &Plan,
    from: &App,
    to: &App,
    to_whole: &Application<'_>,
    comparison: &mut Comparison,
) {
    let inventory = inputs.inventory;
    let (a, b) = (from.path(), to.path());
    let mut say = |note: String| comparison.notes.push(note);
    for (app, path) in [(from, &a), (to, &b)] {
        if let Some(why) = app.distrust {
            say(format!("{path}: {why}, so what it lists may not be what it wants"));
        }
        if app.terminating.is_some() {
            say(format!("{path} is being deleted"));
        }
    }
    if from.cluster != to.cluster {
        let name = |app: &App| inventory.cluster_name(app.cluster).to_owned();
        say(format!("they deploy to different clusters ({} and {})", name(from), name(to)));
    }
    if inventory.app_named(&to.namespace, &to.name).is_some_and(|id| plan.leaving.perhaps.contains(&id)) {
        say(format!("{b} itself goes when {a} is deleted: take it out of there first"));
    }
    if let Some(set) = inventory.generator_of(from) {
        say(format!(
            "{a} is generated by ApplicationSet {}/{}: change its template, what is set on the Application is undone",
            set.meta.namespace, set.meta.name
        ));
    } else if let Some(parent) = &from.parent {
        say(format!("{a} is an object of Application {parent}: change it in Git, what is set on it may be undone"));
    }
    let shared = to_whole.spec.sync_policy.sync_options.iter().any(|option| option == "FailOnSharedResource=true");
    if shared {
        say(format!("{b} has FailOnSharedResource=true: its sync fails until that option is off"));
    }
}
