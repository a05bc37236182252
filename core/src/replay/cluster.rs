//! A cluster that a stream of admitted requests changes, and the claims in it as a policy counts them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admission::{Object, Operation, Request},
    inventory::Inventory,
    object::ObjectRef,
    policy::Policy,
    snapshot::{DocumentError, Snapshot},
};

/// A cluster that follows a stream of requests.
#[derive(Debug)]
pub struct ReplayedCluster {
    snapshot: Snapshot,
}

impl ReplayedCluster {
    /// A cluster with an Argo CD in `argocd` and nothing else.
    ///
    /// # Errors
    /// Never for a name that a Namespace can have.
    pub fn new(argocd: &str) -> Result<Self, DocumentError> {
        let base = json!({"kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": argocd, "uid": "00000000-0000-4000-8000-000000000001"}},
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default", "namespace": argocd}},
        ]});
        Ok(Self { snapshot: Snapshot::parse("world", base.to_string())? })
    }

    /// A cluster that begins as this snapshot.
    pub fn from(snapshot: Snapshot) -> Self {
        Self { snapshot }
    }

    /// As it is now.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Applies a request that was admitted at `now`; returns the object that changed or went, if one did.
    ///
    /// # Errors
    /// When the request carries an object that a cluster cannot hold.
    pub fn apply(&mut self, request: &Request<'_>, now: Timestamp) -> Result<Option<ObjectRef>, DocumentError> {
        // A subresource such as `scale` or `eviction` carries another kind than what it changes.
        if request.dry_run || !matches!(request.sub_resource.as_str(), "" | "status" | "finalize") {
            return Ok(None);
        }
        let object = match (request.operation, &request.object, &request.old_object) {
            (Operation::Delete, _, old) => return self.delete(request, old.as_ref(), now),
            (Operation::Create | Operation::Update, Some(object), _) => object,
            _ => return Ok(None),
        };
        if object.meta.name.is_empty() {
            return Ok(None);
        }
        let last = object.meta.is_terminating() && object.meta.finalizers.is_empty() && !spec_holds(object.raw.get());
        if last {
            self.snapshot.remove(&request.target);
        } else {
            self.snapshot.put("request", object.raw.get().to_owned())?;
        }
        Ok(Some(request.target.clone()))
    }

    fn delete(
        &mut self,
        request: &Request<'_>,
        old: Option<&Object<'_>>,
        now: Timestamp,
    ) -> Result<Option<ObjectRef>, DocumentError> {
        let target = request.target.clone();
        let raw = old.map(|old| old.raw.get().to_owned()).or_else(|| self.snapshot.json_of(&target));
        let Some(mut object) = raw.and_then(|raw| serde_json::from_str::<Value>(&raw).ok()) else { return Ok(None) };
        let foreground = request.options.propagation_policy == "Foreground";
        let held = foreground
            || target.is_namespace()
            || object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !held {
            self.snapshot.remove(&target);
            return Ok(Some(target));
        }
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.entry("deletionTimestamp").or_insert_with(|| json!(now.to_string()));
        }
        if target.is_namespace() {
            object["status"] = json!({"phase": "Terminating"});
        }
        self.snapshot.put("request", object.to_string())?;
        Ok(Some(target))
    }
}

/// Whether a Namespace's own finalizers still hold it.
fn spec_holds(raw: &str) -> bool {
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Body {
        spec: Spec,
    }
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Spec {
        finalizers: Vec<String>,
    }
    // A spec of any other shape has no finalizers.
    serde_json::from_str::<Body>(raw).is_ok_and(|body| !body.spec.finalizers.is_empty())
}

/// A policy with the claims of the cluster as it counts them.
#[derive(Debug)]
pub struct Judge {
    /// The policy.
    pub policy: Policy,
    /// What Applications claim.
    pub inventory: Inventory,
}

impl Judge {
    /// The claims of the cluster as it is now.
    pub fn new(policy: Policy, cluster: &ReplayedCluster) -> Self {
        let inventory = cluster.snapshot.inventory(&policy, (0, 0));
        Self { policy, inventory }
    }

    /// Takes over what became of one object.
    pub fn follow(&mut self, cluster: &ReplayedCluster, object: &ObjectRef) {
        if !cluster.snapshot.update(&mut self.inventory, &self.policy, object) {
            self.inventory = cluster.snapshot.inventory(&self.policy, (0, 0));
        }
    }
}
