//! Following a delete as deep as it goes.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use super::{
    claimants::claimants,
    names::names_of,
    plan::{Fate, Inputs, Item, Leaving, Plan, Spared, Taker, Via},
    sparing::{busy, fate, stays_taken_over},
};
use crate::{
    argo::{Application, Class},
    facts::Facts,
    inventory::{App, AppId, AppSet, ClusterId, Held, Key, LOCAL},
    object::{ARGO_GROUP, GroupKind, ObjectMeta, ObjectRef},
};

/// A plan of more objects is not followed to its end. No honest delete is that large, and the largest there is (a
/// Namespace that holds every Application) would take the memory of a webhook that has to go on answering.
pub const MAX_ITEMS: usize = 200_000;

/// An Application as a review carries it: newer than the inventory, and with the names of what it holds.
pub struct RootApplication<'a> {
    /// The Application.
    pub application: &'a Application<'a>,
}

/// Where a plan begins.
pub enum Root<'a> {
    /// An Application, as its DELETE carries it.
    Application(RootApplication<'a>),
    /// An Application of the inventory.
    Known(AppId),
    /// An ApplicationSet: the Applications it generated, by its UID.
    AppSet {
        /// Its metadata.
        meta: &'a ObjectMeta,
        /// Whether its Applications stay.
        orphans: bool,
    },
    /// A Namespace of the guard's own cluster.
    Namespace(ObjectRef),
    /// A Namespace of another cluster.
    Elsewhere(ClusterId, ObjectRef),
    /// A CustomResourceDefinition and the kind it defines.
    Definition {
        /// The definition.
        object: ObjectRef,
        /// The kind it defines.
        defines: GroupKind,
    },
    /// Any other object: it goes alone.
    Object(ObjectRef),
}

/// Something still to be followed.
enum Work {
    App(AppId),
    Namespace(ClusterId, String),
}

struct Closure<'a> {
    inputs: Inputs<'a>,
    facts: &'a mut Facts,
    plan: Plan,
    queue: VecDeque<Work>,
    namespaces: HashSet<(ClusterId, String)>,
    /// Places of items that take others along and were followed.
    followed: HashSet<usize>,
    /// Places of items that are kept whatever the Applications that take them say: by what stands on themselves.
    kept: HashSet<usize>,
}

/// Follows `root`. What surely goes `with` it is judged when it is deleted itself, and is not followed once more; what only
/// may go with something else may also go with this.
pub(super) fn close(inputs: Inputs<'_>, facts: &mut Facts, root: &Root<'_>, with: &Leaving) -> Plan {
    let leaving = Leaving { perhaps: with.surely.clone(), surely: with.surely.clone() };
    let mut closure = Closure {
        inputs,
        facts,
        plan: Plan { leaving, ..Plan::default() },
        queue: VecDeque::new(),
        namespaces: HashSet::new(),
        followed: HashSet::new(),
        kept: HashSet::new(),
    };
    closure.start(root);
    let limit = if inputs.thorough { usize::MAX } else { MAX_ITEMS };
    while let Some(work) = closure.queue.pop_front() {
        if closure.facts.budget().is_over() {
            break;
        }
        if closure.plan.items.len() > limit {
            closure.plan.too_large = true;
            break;
        }
        match work {
            Work::App(id) => closure.app(id),
            Work::Namespace(cluster, name) => closure.namespace(cluster, &name),
        }
    }
    closure.plan
}

impl Closure<'_> {
    fn start(&mut self, root: &Root<'_>) {
        let inventory = self.inputs.inventory;
        match root {
            Root::Application(root) => {
                let app = inventory.examine(root.application);
                let id = inventory.app_named(&app.namespace, &app.name);
                if let Some(id) = id {
                    self.plan.leaving.insert(id);
                }
                self.root(app.object());
                let held: Vec<_> = inventory.held(root.application, app.cluster).collect();
                self.take(
                    id,
                    app,
                    held.iter().map(|(key, held)| (*key, held.class, held.synced, Coordinates::Held(held))),
                );
            }
            Root::Known(id) => {
                if let Some(app) = inventory.app(*id) {
                    self.root(app.object());
                    self.plan.leaving.insert(*id);
                    self.app(*id);
                }
            }
            Root::AppSet { meta, orphans } => {
                self.root(appset(meta));
                if !orphans {
                    self.generated(meta);
                }
            }
            Root::Namespace(object) => {
                self.root(object.clone());
                self.enter(LOCAL, &object.name);
            }
            Root::Elsewhere(cluster, object) => {
                let (kind, namespace) = (Arc::new(object.kind.clone()), object.namespace.as_str().into());
                let key = inventory.key_of(*cluster, object);
                self.add(key, kind, namespace, *cluster, Some(object.clone()), Via::Root);
                self.enter(*cluster, &object.name);
            }
            Root::Definition { object, defines } => {
                self.root(object.clone());
                self.instances(defines);
            }
            Root::Object(object) => self.root(object.clone()),
        }
    }

    fn root(&mut self, object: ObjectRef) {
        self.local(object, Via::Root);
    }

    /// Adds an object once; of two reasons the one that cannot be spared stays.
    fn add(
        &mut self,
        key: Key,
        kind: Arc<GroupKind>,
        namespace: Arc<str>,
        cluster: ClusterId,
        object: Option<ObjectRef>,
        via: Via,
    ) -> usize {
        self.facts.step();
        if let Some(place) = self.plan.places.get(&key) {
            let item = &mut self.plan.items[*place];
            if item.object.is_none() {
                item.object = object;
            }
            if item.via == Via::Cascade && via != Via::Cascade {
                item.via = via;
                item.fate = Fate::Deleted;
            }
            return *place;
        }
        let place = self.plan.items.len();
        self.plan.places.insert(key, place);
        let (takers, claimants) = (Vec::new(), Vec::new());
        self.plan.items.push(Item {
            key,
            kind,
            namespace,
            cluster,
            object,
            via,
            takers,
            claimants,
            fate: Fate::Deleted,
            finalizers: Vec::new(),
        });
        place
    }

    /// An Application of the inventory that goes.
    fn app(&mut self, id: AppId) {
        let Some(app) = self.inputs.inventory.app(id) else { return };
        self.take(
            Some(id),
            app.without_claims(),
            app.claims.iter().map(|claim| (claim.key, claim.class, claim.synced, Coordinates::Bucket(claim.bucket))),
        );
    }

    /// Adds what the cascade of `app` takes.
    fn take<'h>(
        &mut self,
        id: Option<AppId>,
        app: App,
        held: impl Iterator<Item = (Key, Class, bool, Coordinates<'h>)>,
    ) {
        if !app.cascades {
            return;
        }
        let inventory = self.inputs.inventory;
        let own_key = inventory.key_of(LOCAL, &app.object());
        let (cluster, taker) = (app.cluster, self.plan.takers.len());
        self.plan.taking.extend(id);
        self.plan.takers.push(Taker {
            id,
            distrust: app.distrust.filter(|_| !app.never_compared),
            unknown: false,
            app,
        });
        self.plan.items.reserve(held.size_hint().0);
        self.plan.places.reserve(held.size_hint().0);
        let mut holds_something = false;
        for (key, class, synced, place) in held {
            if self.facts.budget().is_over() {
                break;
            }
            // What a selective, a failed or a dry sync touched says nothing of the rest.
            holds_something |= class != Class::LeftBehind;
            // An Application that manages itself does not delete itself again (section 3.3 of the Argo CD facts).
            if key == own_key {
                continue;
            }
            let (kind, namespace, object) = match place {
                Coordinates::Held(held) => {
                    let object = inventory.normalise(ObjectRef::new(held.group, held.kind, held.namespace, held.name));
                    (Arc::new(object.kind.clone()), object.namespace.as_str().into(), Some(object))
                }
                Coordinates::Bucket(bucket) => {
                    let bucket = inventory.claims().bucket(bucket);
                    (bucket.kind.clone(), bucket.namespace.clone(), None)
                }
            };
            let at = self.add(key, kind, namespace, cluster, object, Via::Cascade);
            self.plan.items[at].takers.push((taker, synced && class == Class::Desired));
            self.follow(at, id);
        }
        if cluster == LOCAL {
            self.take_marked(taker, id, own_key);
        }
        let taker = &mut self.plan.takers[taker];
        // A valid list that is empty takes nothing, whatever the history. One that was never compared has no list at all.
        let has_list = taker.app.list_valid() && !taker.app.never_compared;
        taker.unknown = !holds_something && taker.app.has_history && !has_list;
    }

    /// Adds what a cascade takes because it carries the Application's marker, although its list does not hold it.
    fn take_marked(&mut self, taker: usize, id: Option<AppId>, own_key: Key) {
        let inventory = self.inputs.inventory;
        let marked: Vec<ObjectRef> = inventory.marked_by(&self.plan.takers[taker].app).into_iter().cloned().collect();
        for object in marked {
            let key = inventory.key_of(LOCAL, &object);
            let listed = self.plan.item(key).is_some_and(|item| item.takers.iter().any(|(by, _)| *by == taker));
            if key == own_key || listed {
                continue;
            }
            let (kind, namespace) = (Arc::new(object.kind.clone()), object.namespace.as_str().into());
            let at = self.add(key, kind, namespace, LOCAL, Some(object), Via::Cascade);
            self.plan.items[at].takers.push((taker, false));
            self.follow(at, id);
        }
    }

    /// Follows an object that takes others along, unless the cascade passes it by. Each Application that takes the object
    /// is a new reason to look: another one may have the marker, or be about to write it.
    fn follow(&mut self, place: usize, listed_by: Option<AppId>) {
        let item = &self.plan.items[place];
        if !item.kind.takes_others() || item.via != Via::Cascade || self.followed.contains(&place) {
            return;
        }
        if item.kind.is(DEFINITIONS.0, DEFINITIONS.1) {
            self.plan.items[place].fate = Fate::Spared(Spared::Definition);
            return;
        }
        if item.takers.len() > 1 && !self.changes_fate(place, item) {
            return;
        }
        if self.name(place, listed_by).is_none() && self.plan.pending {
            return;
        }
        self.plan.items[place].claimants = claimants(self.inputs, &self.plan, place, None);
        match fate(self.inputs, self.facts, &self.plan, &self.plan.items[place]) {
            None => self.plan.pending = true,
            Some(fate) => {
                let goes = !fate.is_spared();
                if fate == Fate::Spared(Spared::Kept)
                    && self.plan.takers_of(&self.plan.items[place]).any(|taker| !taker.app.keeps_objects)
                {
                    self.kept.insert(place);
                }
                self.plan.items[place].fate = fate;
                if goes {
                    self.followed.insert(place);
                    self.enter_item(place);
                }
            }
        }
    }

    /// Whether the Application that was the last to take a spared item can change its fate.
    fn changes_fate(&self, place: usize, item: &Item) -> bool {
        let Some((last, synced)) = item.takers.last() else { return false };
        let Some(last) = self.plan.takers.get(*last) else { return false };
        match &item.fate {
            Fate::Spared(Spared::OtherMarker(instance)) => {
                self.inputs.inventory.may_be(&last.app, instance) || busy(&last.app).is_some()
            }
            Fate::Spared(Spared::NoMarker) => busy(&last.app).is_some(),
            Fate::Spared(Spared::Kept) => !last.app.keeps_objects && !self.kept.contains(&place),
            Fate::Spared(Spared::TakenOver(claimant)) => !stays_taken_over(self.inputs, claimant, &last.app, *synced),
            Fate::Spared(Spared::Owned(_) | Spared::Definition | Spared::Terminating | Spared::Gone) => false,
            Fate::Deleted | Fate::DeletedAlthough(_) | Fate::Absent => true,
        }
    }

    /// Follows what goes with an item that goes.
    fn enter_item(&mut self, place: usize) {
        let inventory = self.inputs.inventory;
        let item = &self.plan.items[place];
        let (key, cluster) = (item.key, item.cluster);
        if item.kind.is("", "Namespace") {
            if let Some(object) = item.object.clone() {
                self.enter(cluster, &object.name);
            }
        } else if cluster == LOCAL && item.kind.is(ARGO_GROUP, "Application") {
            if let Some(id) = inventory.app_by_key(key) {
                self.push_app(id);
            }
        } else if cluster == LOCAL
            && let Some(set) = inventory.appset_by_key(key)
            && !set.keeps_applications
        {
            self.generated(&set.meta);
        }
    }

    fn push_app(&mut self, id: AppId) {
        if self.plan.leaving.perhaps.insert(id) {
            self.queue.push_back(Work::App(id));
        }
    }

    fn enter(&mut self, cluster: ClusterId, name: &str) {
        if self.namespaces.insert((cluster, name.to_owned())) {
            self.queue.push_back(Work::Namespace(cluster, name.to_owned()));
        }
    }

    /// Applications an ApplicationSet generated: the garbage collector (or its own controller) deletes them.
    fn generated(&mut self, set: &ObjectMeta) {
        for id in self.inputs.inventory.apps_generated_by(set).to_vec() {
            self.going_app(id, Via::Generated);
        }
    }

    fn going_app(&mut self, id: AppId, via: Via) {
        if let Some(app) = self.inputs.inventory.app(id) {
            self.local(app.object(), via);
            self.push_app(id);
        }
    }

    /// Everything in a Namespace: what anyone claims there and, on the guard's own cluster, the Applications and
    /// ApplicationSets that live there.
    fn namespace(&mut self, cluster: ClusterId, name: &str) {
        let inventory = self.inputs.inventory;
        let via = Via::Namespace(name.into());
        let buckets: Vec<_> = inventory.claims().in_namespace(cluster, name).map(|(id, _)| id).collect();
        for bucket in buckets {
            self.bucket(bucket, &via);
        }
        if cluster != LOCAL {
            return;
        }
        for id in inventory.applications_in(name).to_vec() {
            self.going_app(id, via.clone());
        }
        let sets: Vec<_> = inventory.appsets_in(name).map(|set| set.meta.clone()).collect();
        for set in sets {
            self.local(appset(&set), via.clone());
            self.generated(&set);
        }
    }

    /// Claimed instances of a kind: the API server removes them with their definition, without a review.
    fn instances(&mut self, kind: &GroupKind) {
        let inventory = self.inputs.inventory;
        let buckets: Vec<_> = inventory.claims().of_kind(LOCAL, kind).map(|(id, _)| id).collect();
        for bucket in buckets {
            self.bucket(bucket, &Via::Definition);
        }
        if kind.group != ARGO_GROUP {
            return;
        }
        // Argo CD's own kinds are known whether anybody claims them or not.
        match kind.kind.as_str() {
            "Application" => {
                let apps: Vec<_> = inventory.applications().map(|(id, _)| id).collect();
                for id in apps {
                    self.going_app(id, Via::Definition);
                }
            }
            "ApplicationSet" => {
                let sets: Vec<_> = inventory.appsets().map(|set| set.meta.clone()).collect();
                for set in sets {
                    self.local(appset(&set), Via::Definition);
                    self.generated(&set);
                }
            }
            "AppProject" => {
                let projects: Vec<_> = inventory.projects().map(|project| project.meta.clone()).collect();
                for meta in projects {
                    let object = ObjectRef::new(ARGO_GROUP, "AppProject", &meta.namespace, &meta.name);
                    self.local(object, Via::Definition);
                }
            }
            _ => {}
        }
    }

    /// Adds an object of the guard's own cluster whose name is known.
    fn local(&mut self, object: ObjectRef, via: Via) {
        let key = self.inputs.inventory.key_of(LOCAL, &object);
        let (kind, namespace) = (Arc::new(object.kind.clone()), object.namespace.as_str().into());
        self.add(key, kind, namespace, LOCAL, Some(object), via);
    }

    fn bucket(&mut self, id: crate::inventory::BucketId, via: &Via) {
        let inventory = self.inputs.inventory;
        let bucket = inventory.claims().bucket(id);
        for app in bucket.apps().filter_map(|app| inventory.app(app)) {
            for claim in app.claims.iter().filter(|claim| claim.bucket == id) {
                self.add(claim.key, bucket.kind.clone(), bucket.namespace.clone(), bucket.cluster, None, via.clone());
            }
        }
    }

    /// The name of an Application or ApplicationSet that is watched.
    fn watched_name(&self, key: Key) -> Option<ObjectRef> {
        let inventory = self.inputs.inventory;
        let app = inventory.app_by_key(key).and_then(|id| inventory.app(id)).map(App::object);
        app.or_else(|| inventory.appset_by_key(key).map(AppSet::object))
    }

    /// The name of an item: known, or found in the Application that lists it (one read).
    fn name(&mut self, place: usize, listed_by: Option<AppId>) -> Option<String> {
        if let Some(object) = &self.plan.items[place].object {
            return Some(object.name.clone());
        }
        let (key, cluster) = (self.plan.items[place].key, self.plan.items[place].cluster);
        if cluster == LOCAL
            && let Some(object) = self.watched_name(key)
        {
            let name = object.name.clone();
            self.plan.items[place].object = Some(object);
            return Some(name);
        }
        let object = match self.inputs.inventory.namespace_by_key(key) {
            Some(name) if cluster == LOCAL => Some(ObjectRef::namespace(name)),
            _ => {
                let answer = listed_by.map(|id| names_of(self.inputs, self.facts, id));
                self.plan.pending |= matches!(answer, Some(None));
                let named = answer.flatten().and_then(Result::ok).and_then(|listed| listed.get(&key));
                named.map(|name| self.plan.items[place].called(name))
            }
        }?;
        let name = object.name.clone();
        self.plan.items[place].object = Some(object);
        Some(name)
    }
}

/// The kind that definitions are of.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

fn appset(meta: &ObjectMeta) -> ObjectRef {
    ObjectRef::new(ARGO_GROUP, "ApplicationSet", &meta.namespace, &meta.name)
}

/// Where kind and namespace of a held object are known from.
enum Coordinates<'a> {
    Held(&'a Held<'a>),
    Bucket(crate::inventory::BucketId),
}
