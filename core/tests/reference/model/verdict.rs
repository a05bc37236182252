//! Whether a DELETE may pass.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::Timestamp;
use serde_json::Value;

pub use super::explain::Why;
use super::{
    Cluster, Extent, Item, Model, Plan,
    explain::Why::{Cascade, Collected, Direct, Prune, Replacement, Siblings, Swept, TakesNothing, Terminating},
    lists::{Class, cascades, same_source},
    path,
};
use crate::{
    json::{terminating, text},
    world::World,
};

/// What the model says of a DELETE.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Why something is deleted.
    pub why: Why,
    /// The Applications that explain it.
    pub by: Vec<String>,
    /// What refuses it: rule, object, and what was found.
    pub findings: BTreeSet<(&'static str, Item, String)>,
    /// What may go.
    pub may: BTreeMap<Item, &'static str>,
    /// What surely goes.
    pub sure: BTreeMap<Item, &'static str>,
}

impl Verdict {
    fn new(why: Why) -> Self {
        Self { why, by: Vec::new(), findings: BTreeSet::new(), may: BTreeMap::new(), sure: BTreeMap::new() }
    }

    /// Whether the DELETE may pass.
    pub fn allowed(&self) -> bool {
        self.findings.is_empty()
    }

    /// The rules that refuse it.
    pub fn rules(&self) -> BTreeSet<&'static str> {
        self.findings.iter().map(|(rule, _, _)| *rule).collect()
    }

    fn find(&mut self, rule: &'static str, item: &Item, what: impl Into<String>) {
        self.findings.insert((rule, item.clone(), what.into()));
    }
}

/// What the design says of the DELETE that a world asks for.
pub fn decide(world: &World) -> Verdict {
    let model = Model::new(world);
    let (old, user) = (world.root(), world.user.as_str());
    let key = model.key_of(old);
    // "Already terminating (`oldObject.deletionTimestamp`): allow."
    if terminating(old) {
        return Verdict::new(Terminating);
    }
    // "Content of a Namespace that is really Terminating, removed by the namespace controller: allow." Whoever else removes
    // it takes nothing that does not go anyway.
    if model.lies_in_a_terminating_namespace(&model.item_of(old)) {
        return Verdict::new(Swept);
    }
    // "Garbage collector: allow, except for Namespaces and for Applications that cascade."
    let cascading = key.is_application() && cascades(old);
    if model.is_garbage_collector(user) && !key.is_namespace() && !cascading {
        return Verdict::new(Collected);
    }
    // "A delete of an Application without a cascade finalizer takes nothing; its parent's claim on it does not stop it."
    if key.is_application() && !cascading {
        return Verdict::new(TakesNothing);
    }
    let (why, by) = model.explain(old, user);
    if !matches!(why, Prune | Replacement) || by.len() == 1 {
        return model.judge(world, why, &by);
    }
    // "that an Application other than the explaining one claims": only one of several can be it, the one whose marker the
    // object carries. Where that does not tell, any of them that leaves nobody else's claim.
    let marked: Vec<_> = by.iter().copied().filter(|app| model.is_marked_by(old, app)).collect();
    let able = if marked.is_empty() { by } else { marked };
    let mut verdicts = able.into_iter().map(|app| model.judge(world, why, &[app])).collect::<Vec<_>>();
    let at = verdicts.iter().position(Verdict::allowed).unwrap_or(0);
    verdicts.swap_remove(at)
}

impl Model<'_> {
    fn lies_in_a_terminating_namespace(&self, item: &Item) -> bool {
        let home = self.namespace(&item.1.namespace).filter(|_| !item.1.namespace.is_empty());
        item.0 == Cluster::This && home.is_some_and(terminating)
    }

    /// A claim on what is being deleted already keeps nothing. What lies in a Namespace that goes, or whose definition goes,
    /// is not read one by one.
    fn is_lost_already(&self, item: &Item, may: &Plan) -> bool {
        let key = &item.1;
        let swept = may.items.keys().any(|other| {
            other.0 == item.0 && (other.1.is_definition() || (other.1.is_namespace() && other.1.name == key.namespace))
        });
        let is_read = !key.is_set() && (!swept || key.is_application() || key.is_namespace());
        self.lies_in_a_terminating_namespace(item) || (is_read && self.live(item).is_some_and(terminating))
    }

    fn judge(&self, world: &World, why: Why, by: &[&Value]) -> Verdict {
        let (old, user) = (world.root(), world.user.as_str());
        let root = self.item_of(old);
        let orphan = world.propagation == "Orphan";
        // "Everything inside the explaining cascade's plan goes too, not only the one child, and so do the siblings of a
        // vanished ApplicationSet"
        let mut also: Vec<Item> = Vec::new();
        let mut why = why;
        if why == Cascade {
            also = self.ancestors(by.iter().map(|app| self.item_of(app)).collect());
        } else if why == Direct && !self.siblings(&root, self.is_garbage_collector(user)).is_empty() {
            also = self.ancestors(vec![root.clone()]);
            why = Siblings;
        }
        let others: Vec<Item> = also.iter().filter(|item| **item != root).cloned().collect();
        let above = Plan::new(self, &others, Extent::Sure, false);
        let may = Plan::beside(self, std::slice::from_ref(&root), Extent::May, orphan, &above);
        let mut gone = Plan::new(self, std::slice::from_ref(&root), Extent::Sure, orphan);
        gone.items.extend(Plan::new(self, &also, Extent::Sure, false).items);

        let mut verdict = Verdict::new(why);
        verdict.by = by.iter().map(|app| path(app)).collect();
        self.shared_claim(&mut verdict, world, by, &may, &gone);
        self.namespace_approval(&mut verdict, &root, user, &may, &also);
        self.control_plane(&mut verdict, old, by, &may, &gone);
        (verdict.may, verdict.sure) = (may.items, gone.items);
        verdict
    }

    /// "Deny if an Application outside the plan claims an object in it."
    fn shared_claim(&self, verdict: &mut Verdict, world: &World, by: &[&Value], may: &Plan, gone: &Plan) {
        let old = world.root();
        let root = self.item_of(old);
        let key = &root.1;
        let is_container = key.is_namespace() || key.is_definition();
        // "A replacement of an object with one claimant: allow; with several: allow with a warning". "A replacement covers
        // the object alone: a Namespace, a cascading Application, an ApplicationSet or a CRD is judged with its whole plan."
        if verdict.why == Replacement && !key.is_namespace() && !self.holds_something(may) {
            return;
        }
        // "A child or a prune that an Application other than the explaining one claims: deny". "Direct delete: the
        // Application that manages the object is not 'another'", for the whole content of a Namespace or of a CRD.
        let own = if matches!(verdict.why, Cascade | Prune | Replacement) { by.to_vec() } else { self.managers(old) };
        // A sync that prunes a child still wants what it lists itself.
        let whole = verdict.why == Cascade || is_container;
        let is_own =
            |app: &Value, item: &Item| (whole || *item == root) && own.iter().any(|one| path(one) == path(app));
        for item in may.items.keys().filter(|item| **item == root || !self.is_lost_already(item, may)) {
            for app in self.apps().filter(|app| self.claims(app, item, gone) && !is_own(app, item)) {
                verdict.find("shared-claim", item, format!("claimed by {}", path(app)));
            }
        }
        // An Application that prunes itself while it still wants something.
        if key.is_application() && verdict.why == Prune && by.iter().any(|app| path(app) == path(old)) {
            let wants = |entry| super::lists::class(entry) == Class::Desired;
            if super::lists::entries(old).iter().any(wants) {
                verdict.find("shared-claim", &root, "prunes itself");
            }
        }
        self.unknown(verdict, world, |app| is_own(app, &root), may, gone);
    }

    /// "Unknown is not fine."
    fn unknown(&self, verdict: &mut Verdict, world: &World, is_own: impl Fn(&Value) -> bool, may: &Plan, gone: &Plan) {
        let root = &self.item_of(world.root());
        if text(&self.policy, "/rules/sharedClaim/onUnknown") == "warn" {
            return;
        }
        // "Unknown claimants are looked for at the root only." Neither a prune nor a replacement is one.
        if verdict.why != Direct || self.is_garbage_collector(&world.user) {
            return;
        }
        for unknown in self.apps().filter(|app| self.is_unknown(app) && !self.is_nobodys_business(world, may)) {
            let item = self.item_of(unknown);
            if gone.items.contains_key(&item) || is_own(unknown) {
                continue;
            }
            // "deploys into a namespace the plan touches, or renders the same source"
            let (cluster, target) = (self.cluster_of(unknown), text(unknown, "/spec/destination/namespace"));
            let touches = |item: &Item| item.0 == cluster && self.touches(item, root) == target;
            let into = !target.is_empty() && may.items.keys().any(touches);
            let renders = |app: &Value| self.cluster_of(app) == cluster && same_source(app, unknown);
            let same = self.apps_of(may).into_iter().filter(|app| cascades(app)).any(renders);
            if (into || (same && self.holds_something(may))) && self.is_permitted(unknown, target) {
                verdict.find("shared-claim", &item, format!("{} is an unknown claimant", path(unknown)));
            }
        }
        // "The deleted Application's own list is not valid [...]. Both empty with a sync history: unknown (`onUnknown`)."
        for app in self.apps_of(may).into_iter().filter(|app| cascades(app) && Self::own_list_is_unknown(app)) {
            verdict.find("shared-claim", &self.item_of(app), format!("nobody knows what {} takes", path(app)));
        }
    }

    /// The namespace from which a plan takes an item. The Application that is deleted is no part of what its namespace holds
    /// for others, and what is being deleted already is not taken.
    fn touches<'i>(&self, item: &'i Item, root: &Item) -> &'i str {
        let key = &item.1;
        if key.is_namespace() {
            return &key.name;
        }
        let follows = key.is_application() || key.is_set() || key.is_definition();
        let lost = !follows && self.live(item).is_some_and(terminating);
        if lost || (item == root && key.is_application()) { "" } else { &key.namespace }
    }

    /// Whether the cascade of a plan looks at anything.
    fn holds_something(&self, may: &Plan) -> bool {
        may.items.len() > 1 || self.apps_of(may).into_iter().any(|app| !self.candidates(app).is_empty())
    }

    /// An object that goes alone and that no unknown Application can want: something owns it, so no Argo CD manages it, or
    /// Argo CD deletes it and it carries the marker of an Application that is known.
    fn is_nobodys_business(&self, world: &World, may: &Plan) -> bool {
        let (old, key) = (world.root(), self.key_of(world.root()));
        let owned = !super::lists::owners(old).is_empty();
        let marks = |app: &&Value| self.is_marked_by(old, app);
        let managed = || self.is_argocd(&world.user) && self.managers(old).iter().any(marks);
        !key.is_namespace() && key.group != super::ARGO && may.items.len() == 1 && (owned || managed())
    }

    /// "A Namespace may be deleted, or be part of a deletion plan, only with a valid approval on it."
    fn namespace_approval(&self, verdict: &mut Verdict, root: &Item, user: &str, may: &Plan, also: &[Item]) {
        let below = matches!(verdict.why, Cascade | Siblings);
        let at = self.approvals_are_judged_at(below, also);
        for item in may.items.keys().filter(|item| self.lacks_approval(item, *item == root, below, user, at)) {
            verdict.find("namespace-approval", item, "not approved");
        }
        // "the namespaces Argo CD and its Applications live in": "a valid approval is the way out"
        for item in may.items.keys().filter(|item| item.1.is_namespace() && self.live(item).is_some()) {
            if self.is_lived_in(&item.1.name) && self.lacks_approval(item, item == root, below, user, at) {
                verdict.find("control-plane", item, "Argo CD or Applications live in it");
            }
        }
    }

    /// "Below an admitted cascade an approval is judged at the time the cascade began".
    fn approvals_are_judged_at(&self, below: bool, also: &[Item]) -> Timestamp {
        let began = |item: &Item| text(self.live(item)?, "/metadata/deletionTimestamp").parse().ok();
        let first = also.iter().filter(|_| below).filter_map(began).min();
        first.map_or(self.now, |first: Timestamp| first.min(self.now))
    }

    fn control_plane(&self, verdict: &mut Verdict, old: &Value, by: &[&Value], may: &Plan, gone: &Plan) {
        let root = self.item_of(old);
        if self.holds_the_control_plane(&root.1, old) {
            verdict.find("control-plane", &root, "instances exist");
        }
        if verdict.why == Replacement {
            return;
        }
        for item in may.items.keys() {
            // What goes with its Namespace is judged there.
            let home = (Cluster::This, self.key("", "Namespace", "", &item.1.namespace));
            // A sync that prunes a project may re-point the Applications it lists in the same go.
            let follows = |app: &Value| {
                let lists = |by: &&Value| self.lists(by, &self.key_of(app), |class| class == Class::Desired);
                verdict.why == Prune && by.iter().any(lists)
            };
            let outside = |app: &Value| !gone.items.contains_key(&self.item_of(app)) && !follows(app);
            let users = self.users_of_project(item, outside);
            if !users.is_empty() && !may.items.contains_key(&home) {
                verdict.find("control-plane", item, format!("used by {}", path(users[0])));
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |item: &Item| {
            let (key, elsewhere) = (&item.1, if item.0 == Cluster::This { "" } else { " elsewhere" });
            format!("{} {}/{}{elsewhere}", key.kind, key.namespace, key.name)
        };
        let verdict = if self.allowed() { "allows" } else { "refuses" };
        writeln!(f, "the model {verdict} it: {:?} {}", self.why, self.by.join(" "))?;
        for (rule, item, what) in &self.findings {
            writeln!(f, "  {rule}: {}: {what}", word(item))?;
        }
        for (item, why) in &self.may {
            let how = if self.sure.contains_key(item) { "surely" } else { "may be" };
            writeln!(f, "  {how} {}: {why}", word(item))?;
        }
        Ok(())
    }
}
