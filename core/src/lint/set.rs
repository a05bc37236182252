//! All manifests together: whose they are, where they go, and what each of them finds around it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{
    application::Application,
    document::{Fault, Problem},
    manifest::{Input, Manifest},
    origin::Origin,
};
use crate::{
    argo::{TrackingId, hook::Stage, sync_options::is_kept, tracking::TRACKING_ID},
    decision::Finding,
    inventory::{AppId, Inventory},
    needs::producers,
    object::{GroupKind, ObjectMeta, ObjectRef, RBAC_GROUP, is_builtin_cluster_scoped},
    rules::sync_wave::{Plan, Presence, Surroundings, elsewhere},
};

/// A finding and the manifest it is about.
pub type Found = (usize, Finding);

/// What exists already.
#[derive(Debug)]
pub struct Existing<'a> {
    /// Every object that was seen.
    pub objects: HashMap<&'a ObjectRef, &'a ObjectMeta>,
    /// What Applications list.
    pub inventory: &'a Inventory,
}

/// What is known beside the manifests.
#[derive(Debug, Default)]
pub struct LintContext<'a> {
    /// The Applications that they belong to; none if nothing is known of one.
    pub applications: Vec<Application>,
    /// Where objects without a namespace go, if no Application says so.
    pub namespace: String,
    /// What exists already; `None` if nobody looked.
    pub existing: Option<Existing<'a>>,
    /// URLs of the repository that the manifests lie in; empty where they are not known.
    pub remotes: Vec<String>,
    /// Further kinds that produce a Secret of their own name, as `Kind.group`.
    pub secret_producers: &'a [String],
}

impl LintContext<'_> {
    /// Whether an object is known to exist; `None` if nobody looked.
    pub fn exists(&self, object: &ObjectRef) -> Option<bool> {
        self.existing.as_ref().map(|existing| existing.objects.contains_key(object))
    }
}

/// Manifests with their places.
#[derive(Debug)]
pub struct Set<'a> {
    /// In the order in which they were read.
    pub manifests: Vec<Manifest>,
    /// Their Applications: those of the context, or a single one of which nothing is known.
    pub applications: Vec<Application>,
    /// What is known beside them.
    pub context: &'a LintContext<'a>,
    by_object: HashMap<ObjectRef, Vec<usize>>,
    by_need: HashMap<ObjectRef, Vec<usize>>,
    by_product: HashMap<ObjectRef, Vec<usize>>,
}

impl<'a> Set<'a> {
    /// Puts manifests into their places. Those that cannot be placed come back as problems of their inputs, one for each
    /// input.
    pub fn new(
        mut manifests: Vec<Manifest>,
        inputs: &[Input],
        context: &'a LintContext<'a>,
    ) -> (Self, Vec<(usize, Problem)>) {
        let (applications, problems) = if context.applications.is_empty() {
            (assign_by_tree(&mut manifests, inputs, &context.remotes), Vec::new())
        } else {
            let problems = assign(&mut manifests, inputs, &context.applications);
            (context.applications.clone(), problems)
        };
        give_namespaces(&mut manifests, &applications, context);
        let mut by_object: HashMap<ObjectRef, Vec<usize>> = HashMap::new();
        let mut by_need: HashMap<ObjectRef, Vec<usize>> = HashMap::new();
        let mut by_product: HashMap<ObjectRef, Vec<usize>> = HashMap::new();
        for (index, manifest) in manifests.iter().enumerate() {
            by_object.entry(manifest.object.clone()).or_default().push(index);
            if let Some(product) = &manifest.product {
                by_product.entry(product.object.clone()).or_default().push(index);
            }
            for need in manifest.work.iter().flat_map(|work| &work.needs) {
                by_need.entry(need.object.clone()).or_default().push(index);
            }
        }
        (Self { manifests, applications, context, by_object, by_need, by_product }, problems)
    }

    /// The manifests of an object, in all Applications.
    pub fn of(&self, object: &ObjectRef) -> impl DoubleEndedIterator<Item = &Manifest> {
        self.by_object.get(object).into_iter().flatten().map(|index| &self.manifests[*index])
    }

    /// The manifests that refer to an object, in all Applications.
    pub fn referrers(&self, object: &ObjectRef) -> impl Iterator<Item = &Manifest> {
        self.by_need.get(object).into_iter().flatten().map(|index| &self.manifests[*index])
    }

    /// The manifest by which an Application creates an object: of several the last counts (`controller/state.go`,
    /// `DeduplicateTargetObjects`).
    pub fn own(&self, application: usize, object: &ObjectRef) -> Option<&Manifest> {
        self.of(object).rev().find(|manifest| manifest.application == application)
    }

    /// Another of the Applications that creates an object.
    pub fn other(&self, application: usize, object: &ObjectRef) -> Option<&Application> {
        let found = self.of(object).find(|manifest| {
            // What belongs to no known Application may as well belong to this one.
            let is_known = !self.applications[manifest.application].path.is_empty();
            manifest.application != application && manifest.stage.is_some() && is_known
        })?;
        self.applications.get(found.application)
    }

    /// Every group of manifests of one object in one Application, where there is more than one.
    pub fn repeated(&self) -> impl Iterator<Item = Vec<usize>> {
        let mut groups: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        // Two generated names are never the same.
        let is_named = |all: &[usize]| all.iter().all(|index| !self.manifests[*index].meta.name.is_empty());
        for (object, indices) in self.by_object.iter().filter(|(_, all)| all.len() > 1 && is_named(all)) {
            for index in indices {
                let application = self.manifests[*index].application;
                let first =
                    self.by_object[object].iter().find(|other| self.manifests[**other].application == application);
                groups.entry((*first.unwrap_or(index), application)).or_default().push(*index);
            }
        }
        groups.into_values().filter(|group| group.len() > 1)
    }

    /// What one Application's manifests find around them.
    pub fn around(&self, application: usize) -> Around<'_> {
        let known = &self.applications[application];
        let id = self.context.existing.as_ref().and_then(|existing| {
            let (namespace, name) = known.path.split_once('/')?;
            existing.inventory.app_named(namespace, name)
        });
        Around { set: self, number: application, application: known, id }
    }
}

/// Finds the Applications of a tree among its own manifests: each has the files of its source's folder. What none of them
/// reads belongs together, as it would without them.
fn assign_by_tree(manifests: &mut [Manifest], inputs: &[Input], remotes: &[String]) -> Vec<Application> {
    let mut applications = vec![Application::default()];
    applications.extend(manifests.iter().filter_map(|manifest| manifest.describes.clone()));
    if applications.len() == 1 {
        return applications;
    }
    let rendered: BTreeSet<&str> = inputs
        .iter()
        .filter(|input| !matches!(Origin::of(&input.name), Origin::Other | Origin::Template(_)))
        .map(|input| input.name.rsplit_once('/').map_or("", |(folder, _)| folder))
        .collect();
    let of: Vec<usize> = inputs
        .iter()
        .map(|input| {
            let reads = |number: &usize| applications[*number].reads(&input.name, remotes, &rendered);
            (1..applications.len()).filter(|number| reads(number).is_some()).max_by_key(reads).unwrap_or_default()
        })
        .collect();
    for manifest in manifests {
        manifest.application = of[manifest.written.input];
    }
    applications
}

/// Says of each manifest whose it is: the only Application there is, the one that the object itself names, or the one that
/// the file's path names.
fn assign(manifests: &mut Vec<Manifest>, inputs: &[Input], applications: &[Application]) -> Vec<(usize, Problem)> {
    if applications.len() < 2 {
        return Vec::new();
    }
    let by_path: Vec<Vec<usize>> = inputs
        .iter()
        .map(|input| (0..applications.len()).filter(|number| applications[*number].is_meant_by(&input.name)).collect())
        .collect();
    let mut lost = BTreeSet::new();
    manifests.retain_mut(|manifest| {
        let named = manifest.meta.annotation(TRACKING_ID).and_then(TrackingId::parse);
        let by_object = named.and_then(|id| {
            applications.iter().position(|application| application.instances.iter().any(|name| name == id.instance))
        });
        let only = match by_path[manifest.written.input].as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        let Some(found) = by_object.or(only) else {
            lost.insert(manifest.written.input);
            return false;
        };
        manifest.application = found;
        true
    });
    let names: Vec<&str> = applications.iter().map(|application| application.path.as_str()).collect();
    lost.into_iter()
        .map(|input| {
            let text = format!(
                "which of the Applications {} it belongs to cannot be told; give files or folders their names, or lint \
                 each by itself",
                names.join(", ")
            );
            (input, Problem { check: Fault::NoApplication, text, line: 0, column: 0 })
        })
        .collect()
}

/// Says of each object in which namespace it ends up. Argo CD takes the destination's where a manifest names none.
fn give_namespaces(manifests: &mut [Manifest], applications: &[Application], context: &LintContext<'_>) {
    let defined = manifests.iter().filter_map(|manifest| manifest.defines.as_ref());
    let cluster_scoped: HashSet<GroupKind> =
        defined.filter(|defined| defined.cluster_scoped).map(|defined| defined.kind.clone()).collect();
    for manifest in manifests {
        let destination = &applications[manifest.application].namespace;
        let known_scope = context.existing.as_ref().is_some_and(|existing| {
            let kind = &manifest.object.kind;
            existing.inventory.is_cluster_scoped(&kind.group, &kind.kind)
        });
        let scoped =
            manifest.is_builtin_cluster_scoped() || known_scope || cluster_scoped.contains(&manifest.object.kind);
        let namespace = [destination, &context.namespace].into_iter().find(|name| !name.is_empty());
        manifest.move_into(namespace.map_or("", String::as_str));
        if scoped {
            manifest.object.namespace.clear();
        }
    }
}

/// What the manifests of one Application find around them.
#[derive(Debug)]
pub struct Around<'a> {
    set: &'a Set<'a>,
    number: usize,
    application: &'a Application,
    /// The same Application among what exists.
    id: Option<AppId>,
}

impl Around<'_> {
    fn existing(&self) -> Option<&Existing<'_>> {
        self.set.context.existing.as_ref()
    }

    fn is_synced(&self, object: &ObjectRef) -> bool {
        let claim = self.existing().zip(self.id).and_then(|(existing, id)| {
            let key = existing.inventory.key_of(crate::inventory::LOCAL, object);
            existing.inventory.app(id)?.claim(key)
        });
        claim.is_some_and(|claim| claim.synced)
    }

    fn kept(&self, object: &ObjectRef) -> bool {
        let keeps = self.application.keeps_objects;
        self.set.own(self.number, object).map_or(keeps, |manifest| is_kept(&manifest.meta, keeps))
    }
}

impl Surroundings for Around<'_> {
    fn application(&self) -> String {
        self.application.path.clone()
    }

    fn plan(&self, object: &ObjectRef) -> Plan {
        if let Some(stage) = self.set.own(self.number, object).and_then(|manifest| manifest.stage) {
            return Plan::At { stage, synced: self.is_synced(object), doubt: None };
        }
        if let Some(other) = self.set.other(self.number, object) {
            let synced = self.set.context.exists(object).unwrap_or_default();
            return Plan::Elsewhere { application: other.path.clone(), synced };
        }
        self.existing().map_or(Plan::Nobody, |existing| elsewhere(existing.inventory, self.id, object))
    }

    fn presence(&mut self, object: &ObjectRef) -> Option<Presence> {
        let kept = self.kept(object);
        let Some(existing) = self.existing() else { return Some(Presence::NotLooked { kept }) };
        if object.namespace.is_empty() && !is_builtin_cluster_scoped(&object.kind.group, &object.kind.kind) {
            // Nobody said where it would be.
            return Some(Presence::NotLooked { kept });
        }
        Some(match existing.objects.get(object) {
            None => Presence::Missing,
            Some(meta) if meta.is_terminating() => Presence::Leaving,
            Some(meta) => Presence::There {
                hook: crate::argo::hook::Hook::of(meta).and_then(|_| Stage::of(meta)),
                kept: kept || is_kept(meta, self.application.keeps_objects),
            },
        })
    }

    fn producer(&self, object: &ObjectRef) -> Option<(ObjectRef, Plan)> {
        let own = self.set.by_product.get(object).into_iter().flatten().map(|index| &self.set.manifests[*index]);
        if let Some((producer, stage)) = own
            .filter(|manifest| manifest.application == self.number)
            .find_map(|manifest| Some((manifest.object.clone(), manifest.stage?)))
        {
            return Some((producer, Plan::At { stage, synced: false, doubt: None }));
        }
        producers::candidates(object, self.set.context.secret_producers)
            .into_iter()
            .filter(|candidate| {
                // One that says what it makes was looked for above.
                let product = self.set.own(self.number, candidate).and_then(|own| own.product.as_ref());
                product.is_none_or(|product| product.object == *object)
            })
            .map(|candidate| (self.plan(&candidate), candidate))
            .find(|(plan, _)| *plan != Plan::Nobody)
            .map(|(plan, candidate)| (candidate, plan))
    }

    /// A binding names its accounts and goes on naming them while they are away.
    fn users(&mut self, object: &ObjectRef) -> Vec<ObjectRef> {
        self.set
            .referrers(object)
            .filter(|user| {
                user.application == self.number && user.hook.is_none() && user.object.kind.group != RBAC_GROUP
            })
            .map(|user| user.object.clone())
            .collect()
    }

    fn cascades(&self) -> bool {
        self.application.cascades
    }
}
