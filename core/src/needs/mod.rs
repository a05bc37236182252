//! The needs of an object: the Secrets, ConfigMaps, ServiceAccounts and so on that its Pods refer to, and the role and
//! subjects of a binding.

mod pod;
pub mod producers;
pub mod products;
mod shape;
mod workflow;

use std::collections::HashMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use self::pod::{PodSpec, Template, VolumeClaim};
use crate::object::{GroupKind, ObjectRef, RBAC_GROUP, null_to_default};

/// What happens while a need is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Force {
    /// The API server refuses to create the Pod.
    Creation,
    /// The Pod is created but does not start.
    Start,
    /// The sync goes on; the text says what does not work until then.
    Bearable(&'static str),
}

/// One reference of an object to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    /// The object that it refers to.
    pub object: ObjectRef,
    /// What happens without it.
    pub force: Force,
    /// Where it is referred to, such as `envFrom`.
    pub via: &'static str,
    /// Whether the reference says that it may be missing.
    pub optional: bool,
}

/// A Job, as far as its end matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Whether it has an `activeDeadlineSeconds`.
    pub deadline: bool,
    /// Whether failed containers are restarted in place and nothing counts the restarts.
    pub restarts_uncounted: bool,
}

/// So many objects are kept of what one object refers to. No honest Pod refers to a thousand; a made-up one holds tens of
/// thousands of references, and everybody else would wait while each of them is judged.
pub const MAX_NEEDS: usize = 1000;

/// What an object refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Each object once, in order of appearance, the first [`MAX_NEEDS`] of them.
    pub needs: Vec<Need>,
    /// Whether it refers to more objects than that.
    pub more: bool,
    /// For a Job, how it ends.
    pub job: Option<JobLimits>,
}

/// Reads what an object refers to. Kinds without Pods that are no bindings refer to nothing.
///
/// # Errors
/// When the object does not have the shape of its kind; the text says where.
pub fn read(kind: &GroupKind, namespace: &str, raw: &RawValue) -> Result<Work, serde_json::Error> {
    let mut needs = Needs::new(namespace);
    let mut job = None;
    let text = raw.get();
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => needs.pod(&decode::<PodSpec>(text)?),
        ("batch", "Job") => {
            let spec: JobSpec = decode(text)?;
            needs.pod(&spec.template.spec);
            job = Some(JobLimits {
                deadline: spec.active_deadline_seconds.is_some(),
                restarts_uncounted: spec.template.spec.restart_policy == "OnFailure" && spec.backoff_limit.is_none(),
            });
        }
        ("batch", "CronJob") => {
            let spec: CronJobSpec = decode(text)?;
            needs.pod(&spec.job_template.spec.template.spec);
            // Argo CD takes a CronJob for healthy before it was ever scheduled, so a sync does not wait for its Pods.
            needs.weaken("runs before that fail");
        }
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("", "ReplicationController")
        | ("argoproj.io", "Rollout") => {
            let spec: WorkloadSpec = decode(text)?;
            if spec.replicas != Some(Value::from(0)) {
                needs.pod(&spec.template.spec);
                for claim in &spec.volume_claim_templates {
                    needs.claim(claim);
                }
            }
        }
        ("argoproj.io", "Workflow") => workflow::read(&decode(text)?, &mut needs),
        (RBAC_GROUP, "RoleBinding" | "ClusterRoleBinding") => needs.binding(&serde_json::from_str(text)?),
        _ => {}
    }
    Ok(Work { needs: needs.found, more: needs.more, job })
}

fn decode<T: Default + serde::de::DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
    struct Body<T> {
        #[serde(default, deserialize_with = "null_to_default")]
        spec: T,
    }
    serde_json::from_str::<Body<T>>(text).map(|body| body.spec)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSpec {
    #[serde(deserialize_with = "null_to_default")]
    template: Template,
    active_deadline_seconds: Option<IgnoredAny>,
    backoff_limit: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CronJobSpec {
    #[serde(deserialize_with = "null_to_default")]
    job_template: JobTemplate,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobTemplate {
    #[serde(deserialize_with = "null_to_default")]
    spec: JobSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WorkloadSpec {
    replicas: Option<Value>,
    #[serde(deserialize_with = "null_to_default")]
    template: Template,
    #[serde(deserialize_with = "null_to_default")]
    volume_claim_templates: Vec<VolumeClaim>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Binding {
    #[serde(deserialize_with = "null_to_default")]
    role_ref: RoleRef,
    #[serde(deserialize_with = "null_to_default")]
    subjects: Vec<Subject>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    #[serde(deserialize_with = "null_to_default")]
    namespace: String,
}

/// Objects that every cluster or namespace gets by itself.
const GIVEN: [(&str, &str); 5] = [
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("PriorityClass", "system-cluster-critical"),
    ("PriorityClass", "system-node-critical"),
];

/// Collects needs, each object once.
struct Needs<'a> {
    namespace: &'a str,
    found: Vec<Need>,
    /// Where each object stands in `found`.
    places: HashMap<ObjectRef, usize>,
    more: bool,
}

impl<'a> Needs<'a> {
    fn new(namespace: &'a str) -> Self {
        Self { namespace, found: Vec::new(), places: HashMap::new(), more: false }
    }

    /// Adds an object in the same namespace.
    fn add(&mut self, (group, kind): (&str, &str), name: &str, force: Force, via: &'static str, optional: bool) {
        let object = ObjectRef::new(group, kind, self.namespace, name);
        self.push(Need { object, force, via, optional });
    }

    /// Adds an object without a namespace.
    fn add_cluster(&mut self, (group, kind): (&str, &str), name: &str, force: Force, via: &'static str) {
        self.push(Need { object: ObjectRef::new(group, kind, "", name), force, via, optional: false });
    }

    fn push(&mut self, need: Need) {
        let (kind, name) = (need.object.kind.kind.as_str(), need.object.name.as_str());
        if name.is_empty() || GIVEN.contains(&(kind, name)) {
            return;
        }
        if let Some(place) = self.places.get(&need.object) {
            let known = &mut self.found[*place];
            // Of several references to one object the most demanding counts.
            if (need.optional, need.force) < (known.optional, known.force) {
                *known = need;
            }
        } else if self.found.len() == MAX_NEEDS {
            self.more = true;
        } else {
            self.places.insert(need.object.clone(), self.found.len());
            self.found.push(need);
        }
    }

    /// Makes everything found so far something that can be borne.
    fn weaken(&mut self, why: &'static str) {
        for need in &mut self.found {
            if !matches!(need.force, Force::Bearable(_)) {
                need.force = Force::Bearable(why);
            }
        }
    }

    /// A binding is accepted whatever it names; it only has no effect.
    fn binding(&mut self, binding: &Binding) {
        let why = "until then the binding grants nothing";
        let role = &binding.role_ref;
        match role.kind.as_str() {
            "Role" => self.add((RBAC_GROUP, "Role"), &role.name, Force::Bearable(why), "roleRef", false),
            "ClusterRole" => self.add_cluster((RBAC_GROUP, "ClusterRole"), &role.name, Force::Bearable(why), "roleRef"),
            _ => {}
        }
        for subject in binding.subjects.iter().filter(|subject| subject.kind == "ServiceAccount") {
            let namespace = if subject.namespace.is_empty() { self.namespace } else { &subject.namespace };
            let object = ObjectRef::new("", "ServiceAccount", namespace, &subject.name);
            self.push(Need { object, force: Force::Bearable(why), via: "subjects", optional: false });
        }
    }
}

#[cfg(test)]
mod tests;
