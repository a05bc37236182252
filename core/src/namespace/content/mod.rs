//! The content of a Namespace: what would be deleted with it, and what would keep it Terminating.
//!
//! Claims and Applications come from the inventory. Everything else is asked for in lists with a limit. What cannot be
//! read is named as not read, because an empty list means that nothing is there.

mod lines;

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::finalizers::{KnownFinalizer, known};
use crate::{
    body::{Body, Condition},
    facts::{Facts, ListQuestion, Listed, Listing, Reading},
    inventory::{App, AppId, BuildKeyHasher, Inventory, Key, LOCAL},
    object::{ARGO_GROUP, GroupKind, ObjectMeta, ObjectRef, null_to_default},
};

/// At most this many objects of a kind are read. Beyond that a count is a lower bound.
const READ_AT_MOST: u32 = 100;
/// At most this many kinds of custom resources are read for a review, because somebody waits for the answer.
const CUSTOM_KINDS: usize = 1;

/// API groups of Kubernetes itself that look like those of custom resources.
const BUILT_IN_GROUPS: &[&str] = &[
    "rbac.authorization.k8s.io",
    "networking.k8s.io",
    "storage.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "resource.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "metrics.k8s.io",
];

/// The number of objects of a kind, as far as they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Count {
    /// How many were counted.
    pub number: usize,
    /// Whether there may be more.
    pub more: bool,
}

/// An object that stays until somebody removes a finalizer from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldObject {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// The finalizer.
    pub finalizer: String,
    /// What is known of that finalizer.
    #[serde(flatten)]
    pub known: Option<&'static KnownFinalizer>,
}

impl HeldObject {
    /// Whether it may hang. An unknown finalizer belongs to some controller that may be gone.
    pub fn hangs(&self) -> bool {
        self.known.is_none_or(|known| known.hangs)
    }
}

/// Objects that were not read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRead {
    /// Which objects, in the plural.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The content of one Namespace.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// Applications that deploy into it or claim something in it.
    pub applications: Vec<String>,
    /// How many objects in it Applications claim.
    pub claimed_objects: usize,
    /// Pods that run; absent if that was not read.
    pub running_pods: Option<Count>,
    /// PersistentVolumeClaims that are bound.
    pub bound_volumes: Option<Count>,
    /// Services of type LoadBalancer.
    pub load_balancers: Option<Count>,
    /// Ingresses.
    pub ingresses: Option<Count>,
    /// Those PersistentVolumeClaims and LoadBalancers: with them go data, and addresses that others know.
    pub precious: Vec<ObjectRef>,
    /// Objects that stay until somebody removes a finalizer.
    pub held: Vec<HeldObject>,
    /// API services that are not available. While one of them is not, nobody can tell whether the Namespace is empty.
    pub unavailable_apis: Vec<String>,
    /// Conditions by which the Namespace itself says why it stays Terminating.
    pub conditions: Vec<String>,
    /// What was not read.
    pub not_read: Vec<NotRead>,
}

#[derive(Deserialize)]
struct ListedObject {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_to_default")]
    spec: ListedSpec,
    #[serde(default, deserialize_with = "null_to_default")]
    status: ListedStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ListedSpec {
    #[serde(rename = "type", deserialize_with = "null_to_default")]
    kind: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ListedStatus {
    #[serde(deserialize_with = "null_to_default")]
    phase: String,
    #[serde(deserialize_with = "null_to_default")]
    conditions: Vec<Condition>,
}

/// Surveys the content of the Namespace with this metadata. `raw` is its whole JSON, where that is known. With `thorough`
/// the survey covers every kind of custom resource that Applications claim there, not only the first. `None` while an
/// answer is out.
pub fn survey(
    inventory: &Inventory,
    facts: &mut Facts,
    meta: &ObjectMeta,
    raw: Option<&RawValue>,
    thorough: bool,
) -> Option<Content> {
    let namespace = meta.name.as_str();
    let mut lists = Lists { facts, namespace };
    let pods = lists.list(Listing::RunningPods);
    let volumes = lists.list(every("", "PersistentVolumeClaim"));
    let services = lists.list(every("", "Service"));
    let ingresses = lists.list(every("networking.k8s.io", "Ingress"));
    let jobs = lists.list(every("batch", "Job"));
    let custom = custom_kinds(inventory, namespace);
    let wanted = if thorough { custom.len() } else { CUSTOM_KINDS };
    let customs: Vec<_> =
        custom.iter().take(wanted).map(|kind| (kind, lists.ask(Listing::Every(kind.clone())))).collect();
    let apis = Lists { facts, namespace: "" }.list(every("apiregistration.k8s.io", "APIService"));

    // All questions are asked at once, so that their answers come in one round.
    let (pods, volumes, services, ingresses, jobs, apis) = (pods?, volumes?, services?, ingresses?, jobs?, apis?);
    let mut content = Content::default();
    add_applications(inventory, namespace, &mut content);
    add_namespace(meta, raw, &mut content);
    let any = |_: &ListedObject| true;
    content.running_pods = pods.counted(&mut content, "Pods", any).map(|(count, _)| count);
    let bound = |listed: &ListedObject| listed.status.phase == "Bound";
    content.bound_volumes = volumes.precious(&mut content, "PersistentVolumeClaims", bound);
    let balances = |listed: &ListedObject| listed.spec.kind == "LoadBalancer";
    content.load_balancers = services.precious(&mut content, "Services", balances);
    content.ingresses = ingresses.counted(&mut content, "Ingresses", any).map(|(count, _)| count);
    jobs.counted(&mut content, "Jobs", any);
    add_unavailable_apis(&apis, &mut content);
    for (kind, reading) in customs {
        add_custom_resources(kind, reading?, &mut content);
    }
    content.not_read.extend(custom.iter().skip(wanted).map(|kind| NotRead {
        what: kind.to_string(),
        why: "not looked at for a review; `approvals status` does".to_owned(),
    }));
    Some(content)
}

/// The same for a Namespace whose JSON still has to be read, and thorough.
pub fn survey_thoroughly(inventory: &Inventory, facts: &mut Facts, meta: &ObjectMeta) -> Option<Content> {
    let whole = facts.object(&ObjectRef::namespace(&meta.name));
    let raw = whole.as_ref().and_then(Reading::found).map(|raw| &**raw);
    let content = survey(inventory, facts, meta, raw, true)?;
    whole.is_some().then_some(content)
}

/// Adds the Applications that claim something in the Namespace or deploy there, and holds those that live there and
/// cascade.
fn add_applications(inventory: &Inventory, namespace: &str, content: &mut Content) {
    let mut apps: BTreeSet<String> = BTreeSet::new();
    // An object that two Applications claim counts once.
    let mut claimed: HashSet<Key, BuildKeyHasher> = HashSet::default();
    for (id, bucket) in inventory.claims().in_namespace(LOCAL, namespace) {
        for app in bucket.apps().filter_map(|app| inventory.app(app)) {
            let claims = app.claims.iter().filter(|claim| claim.bucket == id && app.claims_class(claim.class));
            claimed.extend(claims.map(|claim| claim.key));
            apps.insert(app.path());
        }
    }
    let known = |ids: &[AppId]| ids.iter().filter_map(|id| inventory.app(*id)).collect::<Vec<_>>();
    let deploying = known(inventory.applications_to(namespace));
    apps.extend(deploying.into_iter().filter(|app| app.cluster == LOCAL).map(App::path));
    for app in known(inventory.applications_in(namespace)).into_iter().filter(|app| app.cascades) {
        content.hold(app.object(), "resources-finalizer.argocd.argoproj.io");
    }
    content.claimed_objects = claimed.len();
    content.applications = apps.into_iter().collect();
}

/// Adds what the Namespace itself tells: finalizers other than the one of the namespace controller, and the conditions by
/// which that controller says why it cannot go on (`NamespaceDeletionDiscoveryFailure` and the like).
fn add_namespace(meta: &ObjectMeta, raw: Option<&RawValue>, content: &mut Content) {
    let object = ObjectRef::namespace(&meta.name);
    for finalizer in &meta.finalizers {
        content.hold(object.clone(), finalizer);
    }
    let Some(body) = raw.map(Body::of) else { return };
    for finalizer in body.finalizers.iter().filter(|finalizer| *finalizer != "kubernetes") {
        content.hold(object.clone(), finalizer);
    }
    let held_up = body.conditions.into_iter().filter(|condition| condition.status == "True");
    content.conditions.extend(held_up.map(|condition| format!("{}: {}", condition.kind, condition.message)));
}

/// Adds the aggregated APIs that do not answer (`kube-aggregator`, condition `Available`). While one does not, the
/// discovery fails by which the namespace controller finds out what is left.
fn add_unavailable_apis(listed: &Objects, content: &mut Content) {
    let Some(objects) = listed.objects(content, "APIServices") else { return };
    for listed in objects {
        let down = |condition: &Condition| condition.kind == "Available" && condition.status == "False";
        if listed.status.conditions.iter().any(down) {
            content.unavailable_apis.push(listed.metadata.name);
        }
    }
}

/// Kinds of custom resources that Applications claim in the Namespace. Applications are known from the inventory.
fn custom_kinds(inventory: &Inventory, namespace: &str) -> BTreeSet<GroupKind> {
    let kinds = inventory.claims().in_namespace(LOCAL, namespace).map(|(_, bucket)| &*bucket.kind);
    let custom = |kind: &&GroupKind| {
        kind.group.contains('.')
            && !BUILT_IN_GROUPS.contains(&kind.group.as_str())
            && !kind.is(ARGO_GROUP, "Application")
    };
    kinds.filter(custom).cloned().collect()
}

/// Adds the finalizers of custom resources of one kind.
fn add_custom_resources(kind: &GroupKind, reading: Reading<Listed>, content: &mut Content) {
    let listed = match reading {
        Reading::Found(listed) => listed,
        Reading::NotFound => return,
        Reading::Unreadable(why) | Reading::Forbidden(why) => {
            content.not_read.push(NotRead { what: kind.to_string(), why });
            return;
        }
    };
    // Custom resources have any shape below `spec` and `status`.
    for meta in listed.items.iter().filter_map(|raw| ObjectMeta::of(raw.get()).ok()) {
        let object = ObjectRef::new(&kind.group, &kind.kind, &meta.namespace, &meta.name);
        for finalizer in &meta.finalizers {
            content.hold(object.clone(), finalizer);
        }
    }
}

impl Content {
    fn hold(&mut self, object: ObjectRef, finalizer: &str) {
        self.held.push(HeldObject { object, finalizer: finalizer.to_owned(), known: known(finalizer) });
    }
}

struct Lists<'a> {
    facts: &'a mut Facts,
    namespace: &'a str,
}

impl Lists<'_> {
    fn ask(&mut self, what: Listing) -> Option<Reading<Listed>> {
        self.facts.list_to_inform(ListQuestion { what, namespace: self.namespace.to_owned(), limit: READ_AT_MOST })
    }

    fn list(&mut self, what: Listing) -> Option<Objects> {
        let kind = what.kind();
        let reading = self.ask(what)?;
        Some(Objects { kind, reading })
    }
}

fn every(group: &str, kind: &str) -> Listing {
    Listing::Every(GroupKind::new(group, kind))
}

/// The objects of one kind, as they were read.
struct Objects {
    kind: GroupKind,
    reading: Reading<Listed>,
}

impl Objects {
    /// The objects; `None`, and a note that says so, if they were not read.
    fn objects(&self, content: &mut Content, what: &str) -> Option<Vec<ListedObject>> {
        let (items, why) = match &self.reading {
            Reading::Found(listed) => (&listed.items, "the answer makes no sense"),
            Reading::NotFound => return Some(Vec::new()),
            Reading::Unreadable(why) | Reading::Forbidden(why) => {
                content.not_read.push(NotRead { what: what.to_owned(), why: why.clone() });
                return None;
            }
        };
        let objects: Result<Vec<ListedObject>, _> = items.iter().map(|raw| serde_json::from_str(raw.get())).collect();
        if objects.is_err() {
            content.not_read.push(NotRead { what: what.to_owned(), why: why.to_owned() });
        }
        objects.ok()
    }

    /// Those that `counts`, and their number; notes every finalizer.
    fn counted(
        &self,
        content: &mut Content,
        what: &str,
        counts: impl Fn(&ListedObject) -> bool,
    ) -> Option<(Count, Vec<ObjectRef>)> {
        let mut counted = Vec::new();
        for listed in self.objects(content, what)? {
            let meta = &listed.metadata;
            let object = ObjectRef::new(&self.kind.group, &self.kind.kind, &meta.namespace, &meta.name);
            for finalizer in &meta.finalizers {
                content.hold(object.clone(), finalizer);
            }
            if counts(&listed) {
                counted.push(object);
            }
        }
        let more = matches!(&self.reading, Reading::Found(listed) if !listed.complete);
        Some((Count { number: counted.len(), more }, counted))
    }

    /// The number of those that `counts`; their names are kept.
    fn precious(&self, content: &mut Content, what: &str, counts: impl Fn(&ListedObject) -> bool) -> Option<Count> {
        let (count, objects) = self.counted(content, what, counts)?;
        content.precious.extend(objects);
        Some(count)
    }
}

#[cfg(test)]
mod tests;
