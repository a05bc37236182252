//! A file or folder of Kubernetes objects that stands in for a cluster: it feeds the inventory and answers questions as a
//! live cluster would.

mod access;
mod load;

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::load::{LoadError, files};
use crate::{
    argo::{
        Application, Clusters,
        tracking::{INSTANCE_LABEL, TrackingMethod, TrackingSettings},
    },
    facts::{Answer, ListQuestion, Question, Reading},
    inventory::{Inventory, Project},
    judge::Source,
    object::{ARGO_GROUP, GroupKind, ObjectMeta, ObjectRef, group_of, null_to_default},
    policy::Policy,
};

/// Objects read from files.
#[derive(Debug, Default)]
pub struct Snapshot {
    texts: Vec<String>,
    objects: Vec<Stored>,
    by_identity: HashMap<ObjectRef, usize>,
}

/// One object: its identity and metadata, and where its JSON stands.
#[derive(Debug)]
struct Stored {
    identity: ObjectRef,
    meta: Arc<ObjectMeta>,
    text: usize,
    start: usize,
    end: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    api_version: String,
    kind: String,
    #[serde(default)]
    metadata: ObjectMeta,
}

impl Snapshot {
    /// Reads a file, or every `.yaml`, `.yml` and `.json` file below a folder. Files may hold many documents and Lists.
    ///
    /// # Errors
    /// When a file cannot be read or a document is no Kubernetes object; the message names file and place.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        load::read(path)
    }

    /// Reads one text, YAML or JSON.
    ///
    /// # Errors
    /// When a document is no Kubernetes object.
    pub fn parse(name: &str, text: String) -> Result<Self, LoadError> {
        let mut snapshot = Self::default();
        load::add(&mut snapshot, name, text)?;
        Ok(snapshot)
    }

    fn raw(&self, stored: &Stored) -> &str {
        &self.texts[stored.text][stored.start..stored.end]
    }

    fn of_kind<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Stored> {
        self.objects.iter().filter(move |stored| stored.identity.kind.is(group, kind))
    }

    /// Every object's identity and metadata.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectRef, &ObjectMeta)> {
        self.objects.iter().map(|stored| (&stored.identity, &*stored.meta))
    }

    /// The JSON of every object of a kind.
    pub fn json_of_kind<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.of_kind(group, kind).map(|stored| self.raw(stored))
    }

    /// An inventory of these objects, ready.
    pub fn inventory(&self, policy: &Policy, keys: (u64, u64)) -> Inventory {
        let argocd = &policy.spec.argocd;
        let mut inventory = Inventory::new(keys, &argocd.namespace, self.clusters(policy));
        inventory.set_cluster_scoped(self.cluster_scoped());
        for stored in self.of_kind("", "Namespace") {
            inventory.apply_namespace((*stored.meta).clone());
        }
        for stored in self.of_kind(ARGO_GROUP, "ApplicationSet") {
            inventory.apply_appset((*stored.meta).clone());
        }
        for stored in self.of_kind(ARGO_GROUP, "AppProject") {
            inventory.apply_project(project(&stored.meta, self.raw(stored)));
        }
        for stored in self.of_kind("", "ConfigMap").filter(|stored| stored.identity.name == "argocd-cm") {
            inventory.set_settings(&stored.identity.namespace, settings(self.raw(stored)));
        }
        for stored in self.of_kind(ARGO_GROUP, "Application") {
            // An Application that cannot be decoded was refused when the snapshot was read.
            if let Ok(application) = serde_json::from_str::<Application<'_>>(self.raw(stored))
                && policy.watches_applications_in(&application.metadata.namespace)
            {
                inventory.apply_application(&application);
            }
        }
        inventory.set_ready(true);
        inventory
    }

    fn clusters(&self, policy: &Policy) -> Clusters {
        let secrets: Vec<(String, String)> =
            self.of_kind("", "Secret").filter_map(|stored| cluster_secret(&stored.meta, self.raw(stored))).collect();
        let aliases = policy.spec.argocd.cluster_aliases.iter().map(|group| group.iter().map(String::as_str).collect());
        Clusters::new(aliases.chain(secrets.iter().map(|(name, server)| vec![name.as_str(), server.as_str()])))
    }

    fn cluster_scoped(&self) -> std::collections::HashSet<GroupKind> {
        self.of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
            .filter_map(|stored| cluster_scoped_kind(self.raw(stored)))
            .collect()
    }

    fn reply(&self, question: &Question) -> Answer {
        match question {
            Question::Metadata(object) => Answer::Metadata(
                self.find(object).map_or(Reading::NotFound, |stored| Reading::Found(stored.meta.clone())),
            ),
            Question::Object(object) => Answer::Object(self.find(object).map_or(Reading::NotFound, |stored| {
                RawValue::from_string(self.raw(stored).to_owned())
                    .map_or_else(|error| Reading::Unreadable(error.to_string()), |raw| Reading::Found(raw.into()))
            })),
            Question::List(list) => Answer::List(Reading::Found(self.list(list))),
            Question::Access(question) => Answer::Access(access::access(self, question)),
        }
    }

    /// The JSON of one object.
    pub fn json_of(&self, object: &ObjectRef) -> Option<String> {
        self.find(object).map(|stored| self.raw(stored).to_owned())
    }

    /// The object that a person means by kind, namespace and name. The kind may be a plural, a short name or
    /// `Kind.group`; upper and lower case do not matter.
    pub fn find_by_words(&self, kind: &str, namespace: &str, name: &str) -> Option<ObjectRef> {
        self.objects
            .iter()
            .map(|stored| &stored.identity)
            .find(|object| object.name == name && object.namespace == namespace && object.kind.is_meant_by(kind))
            .cloned()
    }

    fn find(&self, object: &ObjectRef) -> Option<&Stored> {
        self.by_identity.get(object).map(|index| &self.objects[*index])
    }

    fn list(&self, question: &ListQuestion) -> Arc<[Box<RawValue>]> {
        self.of_kind(&question.kind.group, &question.kind.kind)
            .filter(|stored| question.namespace.is_empty() || stored.identity.namespace == question.namespace)
            .map(|stored| self.raw(stored))
            .filter(|raw| field_matches(raw, &question.field_selector))
            .take(question.limit as usize)
            .filter_map(|raw| RawValue::from_string(raw.to_owned()).ok())
            .collect()
    }
}

impl Source for Snapshot {
    async fn answer(&self, questions: &[Question], _: Duration) -> Vec<(Question, Answer)> {
        questions.iter().map(|question| (question.clone(), self.reply(question))).collect()
    }
}

/// Whether the value at a dotted path equals what a field selector asks for.
fn field_matches(raw: &str, selector: &str) -> bool {
    let Some((path, wanted)) = selector.split_once('=') else { return true };
    let Ok(object) = serde_json::from_str::<serde_json::Value>(raw) else { return false };
    object.pointer(&format!("/{}", path.replace('.', "/"))).and_then(|value| value.as_str()) == Some(wanted)
}

/// Reads an AppProject: who syncs for it when impersonation is on (`destinationServiceAccounts`).
pub fn project(meta: &ObjectMeta, raw: &str) -> Project {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Body {
        #[serde(deserialize_with = "null_to_default")]
        spec: Spec,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(deserialize_with = "null_to_default")]
        destination_service_accounts: Vec<Account>,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Account {
        default_service_account: String,
        namespace: String,
    }
    let body: Body = serde_json::from_str(raw).unwrap_or_default();
    let sync_accounts = body.spec.destination_service_accounts.into_iter().map(|account| {
        // `namespace:name`, or a name in the destination's namespace, which the entry gives as a pattern.
        if account.default_service_account.contains(':') {
            account.default_service_account
        } else {
            format!("{}:{}", account.namespace, account.default_service_account)
        }
    });
    Project { meta: meta.clone(), sync_accounts: sync_accounts.collect() }
}

/// Reads `argocd-cm`.
pub fn settings(raw: &str) -> Option<TrackingSettings> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Body {
        #[serde(deserialize_with = "null_to_default")]
        data: HashMap<String, String>,
    }
    let data = serde_json::from_str::<Body>(raw).ok()?.data;
    let get = |key: &str| data.get(key).map(String::as_str).unwrap_or_default();
    Some(TrackingSettings {
        method: TrackingMethod::parse(get("application.resourceTrackingMethod")),
        label_key: match get("application.instanceLabelKey") {
            "" => INSTANCE_LABEL.to_owned(),
            key => key.to_owned(),
        },
        installation_id: get("installationID").to_owned(),
    })
}

/// Name and server of a cluster Secret.
fn cluster_secret(meta: &ObjectMeta, raw: &str) -> Option<(String, String)> {
    use std::str::from_utf8;
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Body {
        #[serde(deserialize_with = "null_to_default")]
        data: HashMap<String, k8s_openapi::ByteString>,
        #[serde(deserialize_with = "null_to_default")]
        string_data: HashMap<String, String>,
    }
    if meta.label("argocd.argoproj.io/secret-type") != Some("cluster") {
        return None;
    }
    let body: Body = serde_json::from_str(raw).ok()?;
    let get = |key: &str| {
        let plain = body.string_data.get(key).cloned();
        plain.or_else(|| Some(from_utf8(&body.data.get(key)?.0).ok()?.to_owned())).filter(|value| !value.is_empty())
    };
    let server = get("server")?;
    Some((get("name").unwrap_or_else(|| server.clone()), server))
}

/// The kind a CustomResourceDefinition defines, if it has no namespace.
pub fn cluster_scoped_kind(raw: &str) -> Option<GroupKind> {
    #[derive(Deserialize)]
    struct Body {
        spec: Spec,
    }
    #[derive(Deserialize)]
    struct Spec {
        group: String,
        scope: String,
        names: Names,
    }
    #[derive(Deserialize)]
    struct Names {
        kind: String,
    }
    let Body { spec } = serde_json::from_str(raw).ok()?;
    (spec.scope == "Cluster").then_some(GroupKind { group: spec.group, kind: spec.names.kind })
}

/// Identity of an object from its head.
fn identity(head: &Head) -> ObjectRef {
    ObjectRef::new(group_of(&head.api_version), &head.kind, &head.metadata.namespace, &head.metadata.name)
}
