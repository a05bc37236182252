//! One ApplicationSet in the inventory.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    argo::{application::cascades, application_set::wants_applications_of, cluster_generator::ClusterSelector},
    object::{ARGO_GROUP, ObjectMeta, ObjectRef, null_to_default},
};

/// An ApplicationSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppSet {
    /// Metadata.
    pub meta: ObjectMeta,
    /// Whether its own controller lets go of its Applications before it vanishes: with its finalizer, under a policy that
    /// forbids deletes (`applicationset_controller.go`, removal of owner references). Without the finalizer the garbage
    /// collector does not ask for any policy.
    pub keeps_applications: bool,
    /// Whether its own controller deletes none of its Applications, whatever its generators find.
    pub forbids_deletes: bool,
    /// The clusters that its generators look for.
    pub clusters: Box<[ClusterSelector]>,
    /// The ApplicationSet that owns Applications which this one wants, by its own condition.
    pub wants_applications_of: Option<Box<str>>,
}

impl AppSet {
    /// Reads an ApplicationSet whose metadata is `meta`. What of `json` has another shape than Argo CD gives it counts as
    /// absent.
    pub fn new(meta: ObjectMeta, json: &str) -> Self {
        let forbids_deletes = forbids_deletes(json);
        let keeps_applications = cascades(&meta.finalizers) && forbids_deletes;
        let clusters = ClusterSelector::of_set(json);
        let wants_applications_of = wants_applications_of(json).map(String::into_boxed_str);
        Self { meta, keeps_applications, forbids_deletes, clusters, wants_applications_of }
    }

    /// Its identity.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::new(ARGO_GROUP, "ApplicationSet", &self.meta.namespace, &self.meta.name)
    }
}

/// Whether `spec.syncPolicy.applicationsSync` keeps the controller from deleting Applications.
fn forbids_deletes(json: &str) -> bool {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Body<'a> {
        #[serde(borrow)]
        spec: Option<&'a RawValue>,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(deserialize_with = "null_to_default")]
        sync_policy: SyncPolicy,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct SyncPolicy {
        #[serde(deserialize_with = "null_to_default")]
        applications_sync: String,
    }
    let body: Body<'_> = serde_json::from_str(json).unwrap_or_default();
    let spec: Spec = body.spec.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    matches!(spec.sync_policy.applications_sync.as_str(), "create-only" | "create-update")
}
