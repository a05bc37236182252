//! Instances of a definition that goes, which no Application lists: nobody asks about them, and they vanish with it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Plan;
use crate::{
    facts::{Facts, ListQuestion, Listing, Reading},
    inventory::{Inventory, LOCAL},
    object::{ARGO_GROUP, Definition, GroupKind, ObjectMeta, ObjectRef},
};

/// So many instances of a definition are read; beyond that their number is a lower bound.
const MAX_INSTANCES: u32 = 500;

/// Instances outside every list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlisted {
    /// Their identities.
    pub objects: Vec<ObjectRef>,
    /// Whether every instance was looked at.
    pub complete: bool,
}

/// The kind that `object` defines, if it is a definition of somebody's own kind. `json` is the whole object. Argo CD's
/// kinds are left out: what becomes of them `control-plane` tells.
pub fn defined_by(object: &ObjectRef, json: &str) -> Option<GroupKind> {
    if !object.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    Definition::read(json).map(|definition| definition.kind).filter(|kind| kind.group != ARGO_GROUP)
}

/// The instances of `kind` that `plan`, which is that of its definition, does not hold. `None` while the answer is out.
pub fn unlisted_instances(
    inventory: &Inventory,
    facts: &mut Facts,
    plan: &Plan,
    kind: &GroupKind,
) -> Option<Reading<Unlisted>> {
    #[derive(Deserialize)]
    struct Instance {
        #[serde(default)]
        metadata: ObjectMeta,
    }
    let named = |raw: &RawValue| {
        let meta = serde_json::from_str::<Instance>(raw.get()).ok()?.metadata;
        Some(ObjectRef::new(&kind.group, &kind.kind, &meta.namespace, &meta.name))
    };
    let is_unlisted = |instance: &ObjectRef| plan.item(inventory.key_of(LOCAL, instance)).is_none();
    let question = ListQuestion { what: Listing::Every(kind.clone()), namespace: String::new(), limit: MAX_INSTANCES };
    Some(facts.list(question)?.map(|list| Unlisted {
        objects: list.items.iter().filter_map(|raw| named(raw)).filter(is_unlisted).collect(),
        complete: list.complete,
    }))
}
