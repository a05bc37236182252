//! "A DELETE that comes from Argo CD is first explained, because the request names no Application."

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    ARGO, Cluster, Extent, Item, Key, Model, Plan,
    lists::{Class, cascades, forces_or_replaces, is_running, list_valid, operation, owners, sync_option},
};
use crate::json::{annotation, terminating, text, truth};

/// Why something is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is being deleted already.
    Terminating,
    /// Its Namespace goes.
    Swept,
    /// The garbage collector takes what nobody holds.
    Collected,
    /// The garbage collector takes the Applications of a set that is gone.
    Siblings,
    /// An Application that leaves its objects behind.
    TakesNothing,
    /// Below an admitted cascade.
    Cascade,
    /// A sync removes what its Application no longer wants.
    Prune,
    /// A sync puts it back at once.
    Replacement,
    /// Somebody wants it gone.
    Direct,
}

/// Whether several Applications explain a delete alike, so that it hangs on which of them is meant: the design does not
/// say.
pub fn is_undecided(world: &crate::world::World) -> bool {
    let model = Model::new(world);
    let (why, by) = model.explain(world.root(), &world.user);
    let marked = by.iter().any(|app| model.is_marked_by(world.root(), app));
    matches!(why, Why::Prune | Why::Replacement) && by.len() > 1 && !marked
}

impl<'w> Model<'w> {
    /// Why Argo CD deletes an object, and the Applications that explain it.
    pub(super) fn explain(&self, old: &Value, user: &str) -> (Why, Vec<&'w Value>) {
        if !self.is_argocd(user) {
            return (Why::Direct, Vec::new());
        }
        let key = self.key_of(old);
        let is_binding = ["RoleBinding", "ClusterRoleBinding"].contains(&key.kind.as_str());
        let all = || self.apps().filter(|app| self.cluster_of(app) == Cluster::This);
        // The living Application that the marker names replaces it: no other cascade or prune takes it any more.
        let puts_back = |app: &&Value| {
            let replaces = forces_or_replaces(app, old) || is_binding;
            !terminating(app) && is_running(app) && self.wants(app, &key) && replaces && self.is_marked_by(old, app)
        };
        let some: Vec<_> = all().filter(puts_back).collect();
        if !some.is_empty() {
            return (Why::Replacement, some);
        }
        // "(1) a terminating cascading Application lists it, or its marker names one: a cascade's child"
        let takes = |app: &&Value| {
            self.key_of(app) != key
                && (self.lists(app, &key, |_| true)
                    || self.is_marked_by(old, app)
                    || self.candidates(app).contains(&key))
        };
        let some: Vec<_> = all().filter(|app| terminating(app) && cascades(app)).filter(takes).collect();
        if !some.is_empty() {
            // A cascade deletes what carries its marker and nothing else: of several, the one named there explains it.
            let named: Vec<_> = some.iter().copied().filter(|app| self.is_marked_by(old, app)).collect();
            return (Why::Cascade, if named.is_empty() { some } else { named });
        }
        // "(2) a valid list holds it as PRUNE: a prune"
        let prunes = |app: &&Value| list_valid(app) && self.lists(app, &key, |class| class == Class::Prune);
        let some: Vec<_> = all().filter(prunes).collect();
        if !some.is_empty() {
            return (Why::Prune, some);
        }
        // "A running sync with prune that neither forces nor replaces counts as a prune by the syncing Application"
        let concerned = |app: &&Value| self.lists(app, &key, |_| true) || self.is_marked_by(old, app);
        let syncing = || all().filter(|app| is_running(app)).filter(concerned);
        let puts_back = |app: &Value| self.wants(app, &key) && (forces_or_replaces(app, old) || is_binding);
        let is_forced = |app: &Value| forces_or_replaces(app, &Value::Null);
        let prunes: Vec<_> =
            syncing().filter(|app| truth(operation(app), "/prune") && !is_forced(app) && !puts_back(app)).collect();
        // "(3) an Application with a running operation lists it DESIRED, and the operation or the object says Replace or
        // Force, or it is a binding (a changed `roleRef`), or prune is off: a replacement, the object comes back at once"
        let replaced: Vec<_> = syncing()
            .filter(|app| puts_back(app) || (self.wants(app, &key) && !truth(operation(app), "/prune")))
            .collect();
        // Of several, one that the marker names; then one that prunes.
        let named = |some: &[&'w Value]| some.iter().any(|app| self.is_marked_by(old, app));
        if !prunes.is_empty() && (named(&prunes) || !named(&replaced)) {
            return (Why::Prune, prunes);
        }
        // "(4) otherwise it is judged as a direct delete"
        if replaced.is_empty() { (Why::Direct, replaced) } else { (Why::Replacement, replaced) }
    }

    /// "the Application that manages the object (its marker, or the only claimant of an object without a living manager)"
    pub(super) fn managers(&self, old: &Value) -> Vec<&'w Value> {
        let key = self.key_of(old);
        let manages =
            |app: &&Value| self.cluster_of(app) == Cluster::This && !terminating(app) && self.is_marked_by(old, app);
        let living: Vec<_> = self.apps().filter(manages).collect();
        if !living.is_empty() {
            return living;
        }
        let item = (Cluster::This, key);
        let claimants: Vec<_> = self.apps().filter(|app| self.claims(app, &item, &Plan::default())).collect();
        if claimants.len() == 1 { claimants } else { Vec::new() }
    }

    /// "A claim counts only if the claimant is not terminating, is not itself in the plan, and targets the same physical
    /// cluster"
    pub(super) fn claims(&self, app: &Value, item: &Item, gone: &Plan) -> bool {
        let own = self.item_of(app);
        !terminating(app)
            && !gone.items.contains_key(&own)
            && own != *item
            && self.cluster_of(app) == item.0
            && self.wants(app, &item.1)
            && self.is_permitted(app, &item.1.namespace)
    }

    /// The Applications that an ApplicationSet made which is going, or for the garbage collector gone, with this one: "the
    /// siblings of a vanished ApplicationSet that the garbage collector removes".
    pub(super) fn siblings(&self, item: &Item, collected: bool) -> Vec<Item> {
        let Some(app) = self.live(item).filter(|_| item.1.is_application()) else { return Vec::new() };
        let namespace = text(app, "/metadata/namespace");
        let mut found = Vec::new();
        for owner in owners(app).into_iter().filter(|owner| (owner.0, owner.1) == (ARGO, "ApplicationSet")) {
            let set = self.live(&(Cluster::This, self.key(ARGO, "ApplicationSet", namespace, owner.2)));
            let goes = match set.filter(|set| self.is_owned_by(app, set)) {
                Some(set) => terminating(set) && !self.generated_by(set).is_empty(),
                None => collected,
            };
            if !goes {
                continue;
            }
            let sibling =
                |other: &&Value| text(other, "/metadata/namespace") == namespace && owners(other).contains(&owner);
            found.extend(self.apps().filter(sibling).map(|other| self.item_of(other)));
        }
        found
    }

    /// Whether the cascade of `above` lists an Application that carries no marker of one that is there: it carried its own,
    /// or it would not be going.
    fn may_have_taken(&self, above: &Item, item: &Item) -> bool {
        let (Some(parent), Some(child)) = (self.live(above), self.live(item)) else { return false };
        let marked = self.apps().any(|app| self.is_marked_by(child, app));
        let listed = !marked && self.lists(parent, &item.1, |_| true);
        let kept = sync_option("Delete", child, Some(parent)) == "false"
            || annotation(child, "helm.sh/resource-policy") == "keep";
        above.1.is_application() && item.1.is_application() && !kept && (listed || self.is_marked_by(child, parent))
    }

    /// The roots of every deletion that is under way and surely takes one of `items` along, siblings included.
    pub(super) fn ancestors(&self, items: Vec<Item>) -> Vec<Item> {
        let takes_others = |key: &Key, object: &Value| {
            terminating(object) && (key.is_namespace() || key.is_set() || (key.is_application() && cascades(object)))
        };
        let under_way: Vec<Item> = (self.objects.iter())
            .filter(|(key, object)| takes_others(key, object))
            .map(|(key, _)| (Cluster::This, key.clone()))
            .collect();
        let mut roots: BTreeSet<Item> = items.into_iter().collect();
        loop {
            let mut more: Vec<Item> = roots.iter().flat_map(|root| self.siblings(root, true)).collect();
            for above in under_way.iter().filter(|above| !roots.contains(above)) {
                let taken = Plan::new(self, std::slice::from_ref(above), Extent::Sure, false);
                if roots.iter().any(|root| taken.items.contains_key(root) || self.may_have_taken(above, root)) {
                    more.push(above.clone());
                }
            }
            let before = roots.len();
            roots.extend(more);
            if roots.len() == before {
                return roots.into_iter().collect();
            }
        }
    }
}
