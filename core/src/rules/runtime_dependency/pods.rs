//! Pods that stay behind, named by what they belong to.

use std::{collections::BTreeSet, fmt};

use serde::Deserialize;

use super::{Going, who::Who};
use crate::{
    facts::{Facts, ListQuestion, Listing, Reading},
    object::{GroupKind, ObjectMeta, ObjectRef, OwnerReference, null_to_default},
};

/// So many Pods of one account are looked at.
const MAX_PODS: u32 = 100;
/// So many different owners of Pods are followed upwards; the Pods of the others are only counted.
const MAX_OWNERS: usize = 20;
/// Owners are followed so far: Pod, ReplicaSet, Deployment, and two operators.
const MAX_HEIGHT: usize = 4;
/// So many workloads are named.
const MAX_NAMED: usize = 2;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Pod {
    #[serde(deserialize_with = "null_to_default")]
    metadata: ObjectMeta,
    #[serde(deserialize_with = "null_to_default")]
    spec: Spec,
    #[serde(deserialize_with = "null_to_default")]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    automount_service_account_token: Option<bool>,
    #[serde(deserialize_with = "null_to_default")]
    volumes: Vec<Volume>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Volume {
    projected: Option<Projected>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Projected {
    #[serde(deserialize_with = "null_to_default")]
    sources: Vec<Projection>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Projection {
    service_account_token: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "null_to_default")]
    phase: String,
}

impl Pod {
    fn is_over(&self) -> bool {
        self.metadata.is_terminating() || self.status.phase == "Succeeded" || self.status.phase == "Failed"
    }

    /// Whether no token of its account was given to it, so that the account's rights mean nothing to it. The API server
    /// mounts the token as a projected volume.
    fn has_no_token(&self) -> bool {
        let projects = |volume: &Volume| {
            volume
                .projected
                .iter()
                .flat_map(|projected| &projected.sources)
                .any(|source| source.service_account_token.is_some())
        };
        self.spec.automount_service_account_token == Some(false) && !self.spec.volumes.iter().any(projects)
    }
}

/// Workloads that stay, as a message names them.
#[derive(Default)]
pub(super) struct Workloads {
    /// What was found, in order.
    pub names: Vec<ObjectRef>,
    /// Owners that were not followed, and Pods that were not listed.
    uncounted: bool,
}

impl Workloads {
    /// How many there are, as far as is known.
    pub(super) fn count(&self) -> usize {
        if self.uncounted { usize::MAX } else { self.names.len() }
    }

    /// Those of which `is_meant` holds, and the others. What was not counted is with the others, if there are any.
    pub(super) fn partition(self, is_meant: impl Fn(&ObjectRef) -> bool) -> (Self, Self) {
        let (meant, others): (Vec<_>, Vec<_>) = self.names.into_iter().partition(is_meant);
        let uncounted = self.uncounted && others.is_empty();
        (Self { names: meant, uncounted }, Self { names: others, uncounted: self.uncounted && !uncounted })
    }

    /// Workloads of `who` that stay behind without rights, or without the ServiceAccount if `account_goes`; `None` while an
    /// answer is out.
    pub(super) fn that_stay(
        going: &Going<'_, '_>,
        facts: &mut Facts,
        who: &Who,
        account_goes: bool,
        unread: &mut Vec<String>,
    ) -> Option<Self> {
        let (namespace, account) = match who {
            Who::Account { namespace, name } => (namespace.as_str(), name.as_str()),
            Who::Namespace(namespace) => (namespace.as_str(), ""),
            Who::Everyone => ("", ""),
        };
        if going.sweeps(namespace) {
            return Some(Self::default());
        }
        let question = ListQuestion {
            what: if account.is_empty() {
                Listing::Every(GroupKind::new("", "Pod"))
            } else {
                Listing::PodsOfAccount(account.to_owned())
            },
            namespace: namespace.to_owned(),
            limit: MAX_PODS,
        };
        let list = match facts.list(question)? {
            Reading::Found(list) => list,
            Reading::NotFound => return Some(Self::default()),
            Reading::Unreadable(reason) | Reading::Forbidden(reason) => {
                let whose = match who {
                    Who::Account { namespace, name } => format!("Pods under ServiceAccount {namespace}/{name}"),
                    Who::Namespace(namespace) => format!("Pods of {namespace}"),
                    Who::Everyone => "Pods of the cluster".to_owned(),
                };
                unread.push(format!("{whose} ({reason})"));
                return Some(Self::default());
            }
        };
        let pods = list.items.iter().filter_map(|raw| serde_json::from_str::<Pod>(raw.get()).ok());
        let pods = pods
            .filter(|pod| !pod.is_over() && !going.sweeps(&pod.metadata.namespace))
            // Without the account no new Pod can start; without its rights a Pod that has no token loses nothing.
            .filter(|pod| account_goes || !pod.has_no_token());
        // Pods of one owner share what is above them.
        let mut owners = BTreeSet::new();
        for pod in pods {
            let itself = ObjectRef::new("", "Pod", &pod.metadata.namespace, &pod.metadata.name);
            if !going.takes(facts, &itself)? {
                owners.insert(owner(&pod.metadata).map_or(itself, |owner| at(owner, &pod.metadata.namespace)));
            }
        }
        let uncounted = !list.complete || owners.len() > MAX_OWNERS;
        let mut workloads = Self { names: Vec::new(), uncounted };
        let mut pending = false;
        for direct in owners.into_iter().take(MAX_OWNERS) {
            match top(going, facts, direct) {
                None => pending = true,
                Some(Top::Goes) => {}
                Some(Top::Stays(workload)) if workloads.names.contains(&workload) => {}
                Some(Top::Stays(workload)) => workloads.names.push(workload),
            }
        }
        (!pending).then_some(workloads)
    }
}

/// The owner that manages an object, or else the first.
fn owner(meta: &ObjectMeta) -> Option<&OwnerReference> {
    // A static Pod is owned by its Node; nobody would look for it there.
    let owners = || meta.owner_references.iter().filter(|owner| owner.kind != "Node");
    owners().find(|owner| owner.controller).or_else(|| owners().next())
}

fn at(owner: &OwnerReference, namespace: &str) -> ObjectRef {
    ObjectRef::new(owner.group(), &owner.kind, namespace, &owner.name)
}

/// What a Pod belongs to.
enum Top {
    /// It goes, or something above it does.
    Goes,
    /// It stays.
    Stays(ObjectRef),
}

/// The topmost owner from `object` upwards; `None` while an answer is out. Where an owner cannot be read, what is known so
/// far is named.
fn top(going: &Going<'_, '_>, facts: &mut Facts, object: ObjectRef) -> Option<Top> {
    let mut object = object;
    for _ in 0..MAX_HEIGHT {
        if going.takes(facts, &object)? {
            return Some(Top::Goes);
        }
        if object.kind.is("", "Pod") {
            break;
        }
        let meta = match facts.metadata(&object)? {
            Reading::Found(meta) => meta,
            Reading::NotFound => break,
            Reading::Unreadable(_) | Reading::Forbidden(_) => {
                // A ReplicaSet and a Job of a CronJob carry their maker's name and a suffix.
                return match by_name(&object) {
                    Some(maker) if going.takes(facts, &maker)? => Some(Top::Goes),
                    _ => Some(Top::Stays(object)),
                };
            }
        };
        let Some(above) = owner(&meta) else { break };
        object = at(above, &object.namespace);
    }
    Some(Top::Stays(object))
}

fn by_name(object: &ObjectRef) -> Option<ObjectRef> {
    let (stem, _) = object.name.rsplit_once('-')?;
    let maker = match object.kind.kind.as_str() {
        "ReplicaSet" => "Deployment",
        "Job" => "CronJob",
        _ => return None,
    };
    Some(ObjectRef::new(&object.kind.group, maker, &object.namespace, stem))
}

impl fmt::Display for Workloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.names.iter().take(MAX_NAMED).map(ToString::to_string).collect();
        f.write_str(&named.join(", "))?;
        match (self.names.len().saturating_sub(MAX_NAMED), self.uncounted) {
            (0, false) => Ok(()),
            (0, true) => f.write_str(" and more"),
            (more, false) => write!(f, " and {more} more"),
            (more, true) => write!(f, " and at least {more} more"),
        }
    }
}
