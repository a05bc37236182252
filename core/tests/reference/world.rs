//! One small cluster, a policy, and a DELETE that somebody asks for.

use std::fmt;

use serde_json::{Value, json};

use crate::json::text;

/// A cluster, a policy and a request.
#[derive(Clone, Debug)]
pub struct World {
    /// Which random world this is.
    pub seed: u64,
    /// The objects.
    pub objects: Vec<Value>,
    /// The spec of the policy, beside what [`World::policy`] adds.
    pub policy: Value,
    /// The clock.
    pub now: String,
    /// Place of the object that is to be deleted.
    pub target: usize,
    /// Who deletes it.
    pub user: String,
    /// `propagationPolicy`, or nothing.
    pub propagation: String,
}

impl World {
    /// What is to be deleted.
    pub fn root(&self) -> &Value {
        &self.objects[self.target]
    }

    /// The spec of the policy: everything enforces, except that nobody is refused for the sake of Pods that stay.
    pub fn policy(&self) -> Value {
        let keys = ["sharedClaim", "sharedUpdate", "namespaceApproval", "syncWave", "controlPlane"];
        let mut spec = json!({"argocd": {"namespace": "argocd"}, "rules": {"runtimeDependency": {"mode": "warn"}}});
        for key in keys {
            spec["rules"][key] = json!({"mode": "enforce"});
        }
        merge(&mut spec, &self.policy);
        spec
    }

    /// The request as the API server sends it.
    pub fn request(&self) -> Value {
        let root = self.root();
        let kind = text(root, "/kind");
        let group = crate::json::group_of(text(root, "/apiVersion"));
        let mut request = json!({"uid": "1", "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": format!("{}s", kind.to_lowercase())},
            "operation": "DELETE", "name": root["metadata"]["name"],
            "userInfo": {"username": self.user, "groups": ["system:authenticated"]},
            "object": null, "oldObject": root, "dryRun": false,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"}});
        if !self.propagation.is_empty() {
            request["options"]["propagationPolicy"] = json!(self.propagation);
        }
        // For a Namespace the API server sends its own name.
        let namespace = if kind == "Namespace" { &root["metadata"]["name"] } else { &root["metadata"]["namespace"] };
        request["namespace"] = namespace.clone();
        request
    }

    /// The place of an object.
    pub fn place(&self, kind: &str, namespace: &str, name: &str) -> Option<usize> {
        self.objects.iter().position(|object| {
            text(object, "/kind") == kind
                && text(object, "/metadata/namespace") == namespace
                && text(object, "/metadata/name") == name
        })
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// As files for `review --snapshot CLUSTER --policy POLICY --now NOW REVIEW`.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yaml = |value: &Value| serde_saphyr::to_string(value).map_err(|_| fmt::Error);
        let policy = json!({"apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy",
            "metadata": {"name": "default"}, "spec": self.policy()});
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": self.request()});
        writeln!(f, "# world {}, cluster.yaml", self.seed)?;
        write!(f, "{}", yaml(&json!({"apiVersion": "v1", "kind": "List", "items": self.objects}))?)?;
        writeln!(f, "# policy.yaml")?;
        write!(f, "{}", yaml(&policy)?)?;
        writeln!(f, "# review.json")?;
        writeln!(f, "{review}")?;
        write!(f, "# cascade-guard review --snapshot cluster.yaml --policy policy.yaml --now {} review.json", self.now)
    }
}
