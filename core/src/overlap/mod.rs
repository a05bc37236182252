//! What two Applications, or two sets of rendered manifests, have in common, and the safe order of a migration from the
//! first to the second.

mod applications;
mod manifests;
mod migration;

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

pub use self::{
    applications::compare_applications,
    manifests::{Direction, Manifests, as_far_as, compare_manifests, compare_with_manifests},
    migration::MigrationStep,
};
use crate::{
    facts::{Facts, Reading},
    inventory::App,
    object::ObjectRef,
};

/// What two sides have in common.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The side that gives its objects up.
    pub a: String,
    /// The side that takes them over.
    pub b: String,
    /// Every object that both sides hold.
    pub objects: Vec<SharedObject>,
    /// What the second side would lose with the first, although the first does not list it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_along: Vec<String>,
    /// What a person has to know before doing anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The steps of a migration in their safe order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<MigrationStep>,
}

impl Comparison {
    /// Whether the two sides have nothing in common.
    pub fn is_clean(&self) -> bool {
        self.objects.is_empty() && self.taken_along.is_empty()
    }
}

/// One object that both sides hold.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedObject {
    /// Group, kind, namespace and name.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// How the first side lists it; absent for rendered manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_a: Option<ListEntry>,
    /// How the second side lists it; absent for rendered manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_b: Option<ListEntry>,
    /// The Application whose marker the live object carries, `nobody`, or why that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub held_by: String,
    /// What happens to it if the first side is deleted now: `deleted`, `spared`, `contested` or `absent`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub fate: &'static str,
    /// Why it is spared, or why it is deleted although it looks spared.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What differs, from the first side to the second (RFC 6902). Against a live object: what the manifest would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<json_patch::PatchOperation>,
    /// Properties of the live object that matter for a migration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// How an Application lists an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListEntry {
    /// `Synced`, `OutOfSync`, `left Git`, `Unknown`, …
    pub status: &'static str,
    /// Effective sync wave.
    pub wave: i64,
}

/// Reads one Application of the inventory whole. What cannot be read becomes one of the `notes`.
fn whole(facts: &mut Facts, app: &App, notes: &mut Vec<String>) -> Option<Arc<RawValue>> {
    match facts.object(&app.object())? {
        Reading::Found(raw) => Some(raw),
        Reading::NotFound => {
            notes.push(format!("Application {} is gone", app.path()));
            None
        }
        Reading::Unreadable(reason) | Reading::Forbidden(reason) => {
            notes.push(format!("Application {} could not be read: {reason}", app.path()));
            None
        }
    }
}
