//! "The set of objects one DELETE takes with it: itself, what Argo CD cascades, what Kubernetes removes (a namespace's
//! content, an ApplicationSet's Applications, a CRD's instances), followed recursively through child Applications."

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    ARGO, Cluster, Item, Key, Model,
    lists::{cascades, is_running, last_sync, list_valid, owners, self_heals, sync_option},
};
use crate::json::{annotation, list, text};

/// "Two sets: what may go (followed, so that nothing is overlooked) and what surely goes (whose claims are waived)."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    May,
    Sure,
}

/// What goes, each with the sentence that says so.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub items: BTreeMap<Item, &'static str>,
}

/// What becomes of an object under a cascade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Goes(&'static str),
    Maybe(&'static str),
    Stays,
}

impl Plan {
    /// The least set that holds `roots` and, for each of its items, what goes with that.
    pub fn new(model: &Model<'_>, roots: &[Item], extent: Extent, orphan: bool) -> Self {
        Self::beside(model, roots, extent, orphan, &Self::default())
    }

    /// The same; Applications that go with another delete are judged when they are deleted themselves.
    pub fn beside(model: &Model<'_>, roots: &[Item], extent: Extent, orphan: bool, other: &Self) -> Self {
        let mut plan = Self { items: roots.iter().map(|root| (root.clone(), "it is deleted")).collect() };
        loop {
            let mut more = Vec::new();
            let judged_elsewhere = |item: &Item| item.1.is_application() && other.items.contains_key(item);
            for item in plan.items.keys() {
                let is_root = roots.contains(item);
                if !is_root && judged_elsewhere(item) {
                    continue;
                }
                more.extend(model.goes_with(item, &plan, extent, is_root, orphan && is_root));
            }
            let before = plan.items.len();
            for (item, why) in more {
                plan.items.entry(item).or_insert(why);
            }
            if plan.items.len() == before {
                return plan;
            }
        }
    }
}

impl<'w> Model<'w> {
    fn goes_with(
        &self,
        item: &Item,
        plan: &Plan,
        extent: Extent,
        is_root: bool,
        orphan: bool,
    ) -> Vec<(Item, &'static str)> {
        let (cluster, key) = item;
        let Some(live) = self.live(item) else {
            return if key.is_namespace() { self.content(cluster, &key.name) } else { Vec::new() };
        };
        if key.is_application() && cascades(live) {
            return self.cascade(live, plan, extent);
        }
        if key.is_set() && !orphan {
            return self.generated_by(live);
        }
        if key.is_namespace() {
            return self.content(cluster, &key.name);
        }
        // The instances of a definition that only stands in a list stay: CRDs are never cascaded.
        if key.is_definition() && is_root { self.instances(live) } else { Vec::new() }
    }

    fn cascade(&self, app: &Value, plan: &Plan, extent: Extent) -> Vec<(Item, &'static str)> {
        let cluster = self.cluster_of(app);
        let fate = |key: Key| match (self.fate(app, &key, plan), extent) {
            (Fate::Goes(why), _) | (Fate::Maybe(why), Extent::May) => Some(((cluster.clone(), key), why)),
            _ => None,
        };
        self.candidates(app).into_iter().filter_map(fate).collect()
    }

    /// "Its set owns it, and it goes with the set". What keeps it is "a create-only or create-update policy of a set that
    /// carries its finalizer". "An ApplicationSet deleted with `--cascade=orphan` leaves its Applications."
    pub(super) fn generated_by(&self, set: &Value) -> Vec<(Item, &'static str)> {
        let keeps = ["create-only", "create-update"].contains(&text(set, "/spec/syncPolicy/applicationsSync"));
        let finalizer = |one: &Value| one == "resources-finalizer.argocd.argoproj.io";
        if keeps && list(set, "/metadata/finalizers").iter().any(finalizer) {
            return Vec::new();
        }
        let owned = self.apps().filter(|app| self.is_owned_by(app, set));
        owned.map(|app| (self.item_of(app), "a set that goes generated it")).collect()
    }

    /// What lies in a Namespace, and what is listed there.
    fn content(&self, cluster: &Cluster, name: &str) -> Vec<(Item, &'static str)> {
        self.all_where(cluster, |key| key.namespace == name, "it lies in a Namespace that goes")
    }

    fn instances(&self, definition: &Value) -> Vec<(Item, &'static str)> {
        let (group, kind) = (text(definition, "/spec/group"), text(definition, "/spec/names/kind"));
        self.all_where(&Cluster::This, |key| key.is(group, kind), "its definition goes")
    }

    fn all_where(
        &self,
        cluster: &Cluster,
        wanted: impl Fn(&Key) -> bool,
        why: &'static str,
    ) -> Vec<(Item, &'static str)> {
        let live = self.objects.keys().filter(|_| *cluster == Cluster::This).cloned();
        let listed = self.apps().filter(|app| self.cluster_of(app) == *cluster).flat_map(|app| self.listed(app));
        live.chain(listed).filter(|key| wanted(key)).map(|key| ((cluster.clone(), key), why)).collect()
    }

    /// What the cascade of an Application looks at. "A valid list that is empty takes nothing, whatever the history", except
    /// what carries its marker.
    pub(super) fn candidates(&self, app: &Value) -> BTreeSet<Key> {
        let (cluster, valid) = (self.cluster_of(app), list_valid(app));
        let mut keys: BTreeSet<Key> = self.listed(app).into_iter().collect();
        // "The deleted Application's own list is not valid: the plan is its last list and
        // `operationState.syncResult.resources` together". "Hooks and copies outside the list go too: planned from
        // `syncResult`, and from markers where a whole snapshot is at hand."
        for row in last_sync(app) {
            let Some(key) = self.entry_key(row) else { continue };
            if (!valid || !text(row, "/hookType").is_empty()) && self.exists(&(cluster.clone(), key.clone())) {
                keys.insert(key);
            }
        }
        if cluster == Cluster::This {
            let marked = self.objects.iter().filter(|(_, object)| self.is_marked_by(object, app));
            keys.extend(marked.filter(|(_, object)| owners(object).is_empty()).map(|(key, _)| key.clone()));
        }
        keys.remove(&self.key_of(app));
        keys
    }

    /// "The live object decides what is spared."
    fn fate(&self, app: &Value, key: &Key, plan: &Plan) -> Fate {
        let cluster = self.cluster_of(app);
        if key.is_definition() {
            return Fate::Stays;
        }
        if cluster != Cluster::This {
            return Fate::Maybe("nobody can read it on its cluster");
        }
        let Some(live) = self.live(&(cluster.clone(), key.clone())) else {
            // "Not found: nothing to take, unless an Application lists it as Synced; then list and read contradict"
            let contradicted = self.is_listed_synced(&(cluster, key.clone()));
            return if contradicted { Fate::Maybe("not found, and listed as Synced") } else { Fate::Stays };
        };
        let kept = annotation(live, "helm.sh/resource-policy") == "keep";
        if kept || sync_option("Delete", live, Some(app)) == "false" {
            return Fate::Stays;
        }
        // "An object with an ownerReference is left to the garbage collector."
        // An owner that is not found is none that goes: the collector follows its end, whatever becomes of this delete.
        let child = key.is_application() || key.is_set();
        let goes_too = |owner: &(&str, &str, &str, &str)| {
            let same = |item: &&Item| item.0 == Cluster::This && item.1.is(owner.0, owner.1) && item.1.name == owner.2;
            child && plan.items.keys().any(|item| same(&item) && self.live(item).is_some())
        };
        if !owners(live).iter().all(goes_too) {
            return Fate::Stays;
        }
        let tracking = self.tracking(app);
        let marker = Self::marker(live, tracking.as_ref());
        if !marker.is_empty() && self.names(app, marker) {
            return Fate::Goes("it carries the Application's own marker");
        }
        // "Both only while the deleted Application runs no operation and does not self-heal."
        if is_running(app) || self_heals(app) {
            return Fate::Maybe("whose marker it carries changes");
        }
        // "Any other marker spares the object [...]; so does no marker at all where the tracking method is known."
        if !marker.is_empty() || tracking.is_some() {
            Fate::Stays
        } else {
            Fate::Maybe("how it is marked is not known")
        }
    }

    /// Applications among these items.
    pub(super) fn apps_of(&self, plan: &Plan) -> Vec<&'w Value> {
        self.apps().filter(|app| plan.items.contains_key(&self.item_of(app))).collect()
    }
}

/// Whether a key is of Argo CD's own group.
pub(super) fn is_project(key: &Key) -> bool {
    key.is(ARGO, "AppProject")
}
