//! Kubernetes objects in text that stand in for a cluster: they feed the inventory and answer questions as a live cluster
//! would.

mod access;
mod kinds;
mod parse;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use self::kinds::Kinds;
pub use self::parse::DocumentError;
use crate::{
    argo::{
        Application, Clusters, Controller, ProjectSpec,
        config::{PARAMETERS_NAME, SETTINGS_NAME, application_namespaces, cluster_secret, tracking_settings},
        partial,
    },
    facts::{Answer, ListQuestion, Listed, Question, Reading},
    inventory::{AppSet, Inventory, Project},
    judge::AtHand,
    object::{ARGO_GROUP, Definition, GroupKind, KnownObject, ObjectMeta, ObjectRef, group_of},
    policy::Policy,
};

/// So many Applications are decoded before they are indexed: their decoded form is large.
const AT_ONCE: usize = 256;

/// Who works through a list. A shell may have several cores.
pub trait Workers {
    /// Applies `work` to each item, in order.
    fn map<'i, T: Sync, R: Send>(&self, items: &'i [T], work: impl Fn(&'i T) -> R + Sync + Send) -> Vec<R>;
}

/// One item after the other.
#[derive(Clone, Copy, Debug)]
pub struct OneByOne;

impl Workers for OneByOne {
    fn map<'i, T: Sync, R: Send>(&self, items: &'i [T], work: impl Fn(&'i T) -> R + Sync + Send) -> Vec<R> {
        items.iter().map(work).collect()
    }
}

/// Objects read from texts.
#[derive(Debug, Default)]
pub struct Snapshot {
    texts: Vec<String>,
    objects: Vec<Stored>,
    by_identity: HashMap<ObjectRef, usize>,
    kinds: Kinds,
    cluster_scoped: HashSet<GroupKind>,
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
    /// Reads one text, YAML or JSON.
    ///
    /// # Errors
    /// When a document is no Kubernetes object.
    pub fn parse(name: &str, text: String) -> Result<Self, DocumentError> {
        let mut snapshot = Self::default();
        snapshot.add(name, text, &OneByOne)?;
        Ok(snapshot)
    }

    /// Adds every object of one text. Applications are not decoded: an inventory of them is.
    ///
    /// # Errors
    /// When a document is no Kubernetes object.
    pub fn add(&mut self, name: &str, text: String, workers: &impl Workers) -> Result<(), DocumentError> {
        parse::add(self, name, text, workers)
    }

    /// What keeps an Application from being decoded, in words for a person; `None` for one that can be, or is not there. It
    /// is judged by what can be read of it, and its list is not believed.
    pub fn fault(&self, application: &ObjectRef) -> Option<String> {
        let stored = if application.is_application() { self.find(application)? } else { return None };
        parse::decode_application(self.raw(stored), &stored.identity).err()
    }

    fn raw(&self, stored: &Stored) -> &str {
        &self.texts[stored.text][stored.start..stored.end]
    }

    fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = &Stored> {
        self.kinds.of(&GroupKind::new(group, kind), "").map(|place| &self.objects[place])
    }

    /// Adds an object that is not replaced by a later one of the same identity: a file may hold both.
    fn push(&mut self, object: Stored) {
        self.by_identity.insert(object.identity.clone(), self.objects.len());
        self.kinds.add(&object.identity, self.objects.len());
        self.objects.push(object);
    }

    /// Adds an object, or replaces the one of the same identity.
    ///
    /// # Errors
    /// When the text is no Kubernetes object.
    pub fn put(&mut self, name: &str, text: String) -> Result<(), DocumentError> {
        parse::put(self, name, text)
    }

    /// Removes an object. Its text stays until the snapshot goes.
    pub fn remove(&mut self, object: &ObjectRef) {
        let Some(place) = self.by_identity.remove(object) else { return };
        self.objects.swap_remove(place);
        self.kinds.remove(object, place);
        if let Some(moved) = self.objects.get(place) {
            self.by_identity.insert(moved.identity.clone(), place);
            self.kinds.remove(&moved.identity, self.objects.len());
            self.kinds.add(&moved.identity, place);
        }
    }

    /// Every object, for an audit.
    pub fn subjects(&self) -> Vec<KnownObject> {
        let subject = |stored: &Stored| KnownObject { object: stored.identity.clone(), meta: stored.meta.clone() };
        self.objects.iter().map(subject).collect()
    }

    /// Takes over into an inventory of these objects what became of one of them. `false` if it changes how others are
    /// read (definitions, cluster Secrets), so that the inventory has to be built anew.
    pub fn update(&self, inventory: &mut Inventory, policy: &Policy, object: &ObjectRef) -> bool {
        let stored = self.find(object);
        match stored {
            Some(stored) => inventory.mark(object, &stored.meta),
            None => inventory.unmark(object),
        }
        let ObjectRef { kind, namespace, name } = object;
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Namespace") => match stored {
                Some(stored) => inventory.apply_namespace((*stored.meta).clone()),
                None => inventory.remove_namespace(name),
            },
            (ARGO_GROUP, "ApplicationSet") => match stored {
                Some(stored) => inventory.apply_appset(self.appset(stored)),
                None => inventory.remove_appset(namespace, name),
            },
            (ARGO_GROUP, "AppProject") => match stored {
                Some(stored) => inventory.apply_project(self.project(stored)),
                None => inventory.remove_project(namespace, name),
            },
            (ARGO_GROUP, "Application") => match stored {
                Some(stored) => self.apply_application(inventory, policy, stored),
                None => inventory.remove_application(namespace, name),
            },
            ("", "ConfigMap") if name == SETTINGS_NAME => {
                inventory.set_settings(namespace, stored.and_then(|stored| tracking_settings(self.raw(stored))));
            }
            ("", "ConfigMap") if name == PARAMETERS_NAME => {
                inventory.set_parameters(namespace, stored.and_then(|stored| application_namespaces(self.raw(stored))));
            }
            ("apps", "Deployment" | "StatefulSet") => self.apply_controller(inventory, object, stored),
            ("apiextensions.k8s.io", "CustomResourceDefinition") | ("", "Secret") => return false,
            _ => {}
        }
        true
    }

    /// Says which Argo CDs there are and what they serve, as far as the objects show it.
    fn apply_installations(&self, inventory: &mut Inventory) {
        for stored in self.of_kind("", "ConfigMap") {
            let ObjectRef { namespace, name, .. } = &stored.identity;
            match name.as_str() {
                SETTINGS_NAME => inventory.set_settings(namespace, tracking_settings(self.raw(stored))),
                PARAMETERS_NAME => inventory.set_parameters(namespace, application_namespaces(self.raw(stored))),
                _ => {}
            }
        }
        inventory.set_parameters_listed();
        for kind in ["Deployment", "StatefulSet"] {
            for stored in self.of_kind("apps", kind) {
                self.apply_controller(inventory, &stored.identity, Some(stored));
            }
        }
    }

    fn apply_controller(&self, inventory: &mut Inventory, object: &ObjectRef, stored: Option<&Stored>) {
        let controller = stored.and_then(|stored| Controller::read(&stored.meta, self.raw(stored)));
        inventory.set_controller(&object.kind.kind, &object.namespace, &object.name, controller);
    }

    fn apply_application(&self, inventory: &mut Inventory, policy: &Policy, stored: &Stored) {
        let (ObjectRef { namespace, name, .. }, raw) = (&stored.identity, self.raw(stored));
        if policy.watches_applications_in(namespace) {
            match serde_json::from_str::<Application<'_>>(raw) {
                Ok(application) => inventory.apply_application(&application),
                Err(_) => inventory.apply_unreadable(&partial(namespace, name, raw)),
            };
        }
    }

    fn appset(&self, stored: &Stored) -> AppSet {
        AppSet::new((*stored.meta).clone(), self.raw(stored))
    }

    fn project(&self, stored: &Stored) -> Project {
        Project { meta: (*stored.meta).clone(), spec: ProjectSpec::read(self.raw(stored)).into() }
    }

    /// Every object's identity and metadata.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectRef, &ObjectMeta)> {
        self.objects.iter().map(|stored| (&stored.identity, &*stored.meta))
    }

    /// The JSON of every object of a kind.
    pub fn json_of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = &str> {
        self.of_kind(group, kind).map(|stored| self.raw(stored))
    }

    /// An inventory of these objects, ready.
    pub fn inventory(&self, policy: &Policy, keys: (u64, u64)) -> Inventory {
        let mut inventory = self.without_applications(policy, keys);
        for stored in self.of_kind(ARGO_GROUP, "Application") {
            self.apply_application(&mut inventory, policy, stored);
        }
        inventory.set_ready(true);
        inventory
    }

    /// The same with Applications decoded by `workers`.
    pub fn build(&self, policy: &Policy, keys: (u64, u64), workers: &impl Workers) -> Inventory {
        let mut inventory = self.without_applications(policy, keys);
        let watched = |stored: &&Stored| policy.watches_applications_in(&stored.identity.namespace);
        let applications: Vec<&Stored> = self.of_kind(ARGO_GROUP, "Application").filter(watched).collect();
        for some in applications.chunks(AT_ONCE) {
            let decoded = workers.map(some, |stored| serde_json::from_str::<Application<'_>>(self.raw(stored)));
            for (stored, application) in some.iter().zip(decoded) {
                match application {
                    Ok(application) => _ = inventory.apply_application(&application),
                    Err(_) => self.apply_application(&mut inventory, policy, stored),
                }
            }
        }
        inventory.set_ready(true);
        inventory
    }

    fn without_applications(&self, policy: &Policy, keys: (u64, u64)) -> Inventory {
        let argocd = &policy.spec.argocd;
        let mut inventory = Inventory::new(keys, &argocd.namespace, self.clusters(policy));
        inventory.set_cluster_scoped(self.cluster_scoped());
        inventory.set_policy(policy);
        // First, because markers are read by them.
        self.apply_installations(&mut inventory);
        for stored in &self.objects {
            inventory.mark(&stored.identity, &stored.meta);
        }
        for stored in self.of_kind("", "Namespace") {
            inventory.apply_namespace((*stored.meta).clone());
        }
        for stored in self.of_kind(ARGO_GROUP, "ApplicationSet") {
            inventory.apply_appset(self.appset(stored));
        }
        for stored in self.of_kind(ARGO_GROUP, "AppProject") {
            inventory.apply_project(self.project(stored));
        }
        inventory
    }

    fn clusters(&self, policy: &Policy) -> Clusters {
        let secrets: Vec<(String, String)> =
            self.of_kind("", "Secret").filter_map(|stored| cluster_secret(&stored.meta, self.raw(stored))).collect();
        let aliases = policy.spec.argocd.cluster_aliases.iter().map(|group| group.iter().map(String::as_str).collect());
        Clusters::new(aliases.chain(secrets.iter().map(|(name, server)| vec![name.as_str(), server.as_str()])))
    }

    /// Further kinds without a namespace, beside those whose definitions are among the objects.
    pub fn set_cluster_scoped(&mut self, kinds: HashSet<GroupKind>) {
        self.cluster_scoped = kinds;
    }

    fn cluster_scoped(&self) -> HashSet<GroupKind> {
        self.of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
            .filter_map(|stored| Definition::read(self.raw(stored))?.if_cluster_scoped())
            .chain(self.cluster_scoped.iter().cloned())
            .collect()
    }

    /// The JSON of one object.
    pub fn json_of(&self, object: &ObjectRef) -> Option<String> {
        self.find(object).map(|stored| self.raw(stored).to_owned())
    }

    /// Every object of a name and a kind as a person writes it: the kind may be a plural, a short name or `Kind.group`;
    /// upper and lower case do not matter.
    pub fn named<'a>(&'a self, kind: &'a str, name: &'a str) -> impl Iterator<Item = &'a ObjectRef> {
        let all = self.objects.iter().map(|stored| &stored.identity);
        all.filter(move |object| object.name == name && object.kind.is_meant_by(kind))
    }

    fn find(&self, object: &ObjectRef) -> Option<&Stored> {
        self.by_identity.get(object).map(|index| &self.objects[*index])
    }

    fn list(&self, question: &ListQuestion) -> Listed {
        let mut wanted = self
            .kinds
            .of(&question.what.kind(), &question.namespace)
            .map(|place| self.raw(&self.objects[place]))
            .filter(|raw| question.what.selection().is_none_or(|(field, value)| field_is(raw, field, value)))
            .filter_map(|raw| RawValue::from_string(raw.to_owned()).ok());
        let items = wanted.by_ref().take(question.limit as usize).collect();
        Listed { items, complete: wanted.next().is_none() }
    }
}

impl AtHand for Snapshot {
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
}

/// Whether the field at a dotted path has this value.
fn field_is(raw: &str, field: &str, wanted: &str) -> bool {
    let Ok(object) = serde_json::from_str::<serde_json::Value>(raw) else { return false };
    object.pointer(&format!("/{}", field.replace('.', "/"))).and_then(|value| value.as_str()) == Some(wanted)
}

/// Identity of an object from its head.
fn identity(head: &Head) -> ObjectRef {
    ObjectRef::new(group_of(&head.api_version), &head.kind, &head.metadata.namespace, &head.metadata.name)
}
