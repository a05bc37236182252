//! Objects stuck in deletion, with the finalizers that hold them and the command that helps.

mod holders;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::holders::hold;
use super::{AuditInput, Options, each_object};
use crate::judge::{Source, View};
use cascade_guard_core::{
    body::{Body, Condition},
    facts::Reading,
    inventory::Inventory,
    object::{ARGO_GROUP, KnownObject, ObjectRef},
    remedy::Remedy,
};

/// So many objects that hold a Namespace are named in its own entry.
const MAX_NAMED: usize = 5;

/// An object whose deletion does not end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stuck {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// When its deletion began.
    pub since: Timestamp,
    /// How long ago that was, in seconds.
    pub age_seconds: i64,
    /// Finalizers on it, those of a Namespace's spec included.
    pub finalizers: Vec<String>,
    /// What its own status says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What is left in it or of it, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remaining: BTreeMap<String, usize>,
    /// What holds it, and what to do about that: the first is the one to begin with.
    pub holders: Vec<Holder>,
}

/// One thing that keeps an object from being gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// A finalizer, a condition, or another object.
    pub what: String,
    /// What it waits for.
    pub why: String,
    /// What mends it.
    pub mend: Remedy,
}

/// What the entry of one object is made from.
struct Around<'a> {
    objects: &'a [KnownObject],
    by_namespace: &'a HashMap<&'a str, Vec<usize>>,
    inventory: &'a Inventory,
    now: Timestamp,
}

/// Whether the deletion of something that began at `since` takes too long.
pub fn is_stuck(since: Timestamp, now: Timestamp, after: SignedDuration) -> bool {
    now.duration_since(since) >= after
}

/// Every stuck object, the oldest first.
pub async fn find<V: View, S: Source>(input: &AuditInput<'_, V, S>, options: &Options) -> Vec<Stuck> {
    let stuck: Vec<&KnownObject> = input
        .objects
        .iter()
        .filter(|subject| {
            subject.meta.deletion_timestamp.is_some_and(|since| is_stuck(since, input.now, options.stuck_after))
        })
        .collect();
    if stuck.is_empty() {
        return Vec::new();
    }
    let mut by_namespace: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, subject) in input.objects.iter().enumerate() {
        by_namespace.entry(&subject.object.namespace).or_default().push(place);
    }
    let mut bodies: HashMap<ObjectRef, Arc<RawValue>> = HashMap::new();
    let named: Vec<ObjectRef> = stuck.iter().map(|subject| subject.object.clone()).collect();
    each_object(input.source, named, |object, reading| {
        if let Reading::Found(raw) = reading {
            bodies.insert(object.clone(), raw);
        }
    })
    .await;
    let mut found: Vec<Stuck> = input.view.with(|inventory| {
        let around = Around { objects: input.objects, by_namespace: &by_namespace, inventory, now: input.now };
        stuck.iter().filter_map(|subject| entry(&around, subject, bodies.get(&subject.object))).collect()
    });
    found.sort_by(|a, b| (a.since, &a.object).cmp(&(b.since, &b.object)));
    found
}

fn entry(around: &Around<'_>, subject: &KnownObject, raw: Option<&Arc<RawValue>>) -> Option<Stuck> {
    let since = subject.meta.deletion_timestamp?;
    let body = raw.map(|raw| Body::of(raw)).unwrap_or_default();
    let object = &subject.object;
    let mut finalizers = subject.meta.finalizers.clone();
    if object.is_namespace() {
        finalizers.extend(body.finalizers);
    }
    let conditions: Vec<Condition> = body.conditions.into_iter().filter(|condition| tells(object, condition)).collect();
    let mut holders: Vec<Holder> =
        conditions.iter().filter_map(|condition| holders::condition(object, condition)).collect();
    if object.is_namespace() {
        holders.extend(inside(around, &object.name));
    }
    holders.extend(
        finalizers.iter().enumerate().map(|(place, finalizer)| hold(around.inventory, subject, place, finalizer)),
    );
    Some(Stuck {
        object: object.clone(),
        since,
        age_seconds: around.now.duration_since(since).as_secs(),
        remaining: remaining(around, subject),
        finalizers,
        conditions,
        holders,
    })
}

/// Whether a condition says why the deletion does not end.
fn tells(object: &ObjectRef, condition: &Condition) -> bool {
    if object.is_namespace() {
        condition.status == "True" && condition.kind.starts_with("Namespace")
    } else {
        object.kind.group == ARGO_GROUP && condition.kind.ends_with("Error")
    }
}

/// What is left: in a Namespace everything that lives there, of an Application what it lists, of an ApplicationSet what
/// it generated.
fn remaining(around: &Around<'_>, subject: &KnownObject) -> BTreeMap<String, usize> {
    let object = &subject.object;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    if object.is_namespace() {
        for place in around.by_namespace.get(object.name.as_str()).into_iter().flatten() {
            *kinds.entry(around.objects[*place].object.kind.to_string()).or_default() += 1;
        }
    } else if object.is_application() {
        let app = around.inventory.app_named(&object.namespace, &object.name).and_then(|id| around.inventory.app(id));
        for claim in app.into_iter().flat_map(|app| app.claims.iter()) {
            *kinds.entry(around.inventory.claims().bucket(claim.bucket).kind.to_string()).or_default() += 1;
        }
    } else if object.kind.is(ARGO_GROUP, "ApplicationSet") {
        let generated = around.inventory.apps_generated_by(&subject.meta).len();
        if generated > 0 {
            kinds.insert("Application.argoproj.io".to_owned(), generated);
        }
    }
    kinds
}

/// Objects in a Namespace that are themselves held: the Namespace waits for the first of them.
fn inside(around: &Around<'_>, namespace: &str) -> Vec<Holder> {
    let held = around
        .by_namespace
        .get(namespace)
        .into_iter()
        .flatten()
        .map(|place| &around.objects[*place])
        .filter(|subject| subject.meta.is_terminating() && !subject.meta.finalizers.is_empty());
    held.take(MAX_NAMED)
        .map(|subject| {
            let holder = hold(around.inventory, subject, 0, &subject.meta.finalizers[0]);
            Holder { what: format!("{} ({})", subject.object, holder.what), ..holder }
        })
        .collect()
}
