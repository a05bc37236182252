//! One tree of rendered manifests: which Application renders what.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    argo::{Application, Class, Entry, hook::Hook},
    lint::{self, Input, documents},
    object::{ARGO_GROUP, Definition, GroupKind, ObjectMeta, ObjectRef, group_of, is_builtin_cluster_scoped},
    overlap::as_far_as,
    report::{Location, ReportFinding},
    snapshot::Snapshot,
};

/// A text that an Application renders.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the Application, as the renderer gave it to a folder or a file.
    pub application: String,
    /// The text.
    pub input: Input,
}

/// One object that an Application renders.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its identity.
    pub object: ObjectRef,
    /// Its metadata.
    pub meta: ObjectMeta,
    /// Its manifest.
    pub value: Value,
    /// Where that stands; without a file where it comes from a cluster.
    pub location: Location,
}

/// An object of a cluster.
fn listed(cluster: &Snapshot, object: ObjectRef) -> Piece {
    let value: Value = cluster.json_of(&object).and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
    let meta = ObjectMeta::deserialize(&value["metadata"]).unwrap_or_default();
    Piece { object, meta, value, location: Location { file: String::new(), line: 0, column: 0 } }
}

/// A tree: what each Application renders. Of several manifests of one object the last counts.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Objects by the name of their Application. An Application that renders nothing is here as well.
    pub applications: BTreeMap<String, BTreeMap<ObjectRef, Piece>>,
    /// What cannot be read.
    pub problems: Vec<ReportFinding>,
    /// Kinds without a namespace that it defines.
    cluster_scoped: HashSet<GroupKind>,
}

impl Side {
    /// Reads texts. Hooks are left out: Argo CD prunes none of them.
    pub fn read(sources: &[Source]) -> Self {
        let mut side = Self::default();
        let mut found = Vec::new();
        for Source { application, input } in sources {
            side.applications.entry(application.clone()).or_default();
            for document in documents(&input.text) {
                match document.parse() {
                    Ok(value) => {
                        let line = document.lines_before + 1;
                        let at = Location { file: input.name.clone(), line, column: 0 };
                        side.take(application, value, &at, &mut found);
                    }
                    Err(problem) => side.problems.push(lint::unreadable(&input.name, problem)),
                }
            }
        }
        for (application, piece) in found {
            side.applications.entry(application).or_default().insert(piece.object.clone(), piece);
        }
        side
    }

    fn take(&mut self, application: &str, mut value: Value, at: &Location, found: &mut Vec<(String, Piece)>) {
        let kind = value["kind"].as_str().unwrap_or_default().to_owned();
        if kind.ends_with("List")
            && let Some(Value::Array(items)) = value.get_mut("items")
        {
            for item in std::mem::take(items) {
                self.take(application, item, at, found);
            }
            return;
        }
        if value.is_null() {
            return;
        }
        let meta = ObjectMeta::deserialize(&value["metadata"]).unwrap_or_default();
        let api_version = value["apiVersion"].as_str().unwrap_or_default();
        if kind.is_empty() || api_version.is_empty() || meta.name.is_empty() && meta.generate_name.is_empty() {
            let text = "it is no Kubernetes object; give what helm template or kustomize build prints".to_owned();
            let problem = lint::Problem { check: lint::Fault::NoObject, text, line: at.line, column: 0 };
            return self.problems.push(lint::unreadable(&at.file, problem));
        }
        // What has no name of its own is a new object at every sync.
        if Hook::of(&meta).is_some() || meta.name.is_empty() {
            return;
        }
        let object = ObjectRef::new(group_of(api_version), &kind, &meta.namespace, &meta.name);
        if object.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            self.cluster_scoped.extend(Definition::read(&value.to_string()).and_then(Definition::if_cluster_scoped));
        }
        found.push((application.to_owned(), Piece { object, meta, value, location: at.clone() }));
    }

    /// What the Applications of a cluster list that have the names of these folders. An object that the cluster does not
    /// show is known by its name alone.
    pub fn of_cluster<'f>(cluster: &Snapshot, folders: impl IntoIterator<Item = &'f str>) -> Self {
        let mut side = Self::default();
        for folder in folders {
            for json in cluster.json_of_kind(ARGO_GROUP, "Application") {
                let Ok(application) = serde_json::from_str::<Application<'_>>(json) else { continue };
                if application.metadata.name != folder {
                    continue;
                }
                let wanted =
                    |entry: &&Entry<'_>| matches!(entry.class(), Class::Desired | Class::Prune | Class::Unknown);
                let entries = application.status.resources.iter().filter(wanted).filter(|entry| !entry.name.is_empty());
                let pieces = entries.map(|entry| listed(cluster, entry.object()));
                side.applications
                    .insert(folder.to_owned(), pieces.map(|piece| (piece.object.clone(), piece)).collect());
            }
        }
        side
    }

    /// Leaves of live objects only what the manifests of another tree set: what others and the API server added is no
    /// difference.
    pub(super) fn reduce_live_to(&mut self, after: &Self) {
        for (application, pieces) in &mut self.applications {
            let Some(now) = after.applications.get(application) else { continue };
            for (object, piece) in pieces.iter_mut().filter(|(_, piece)| piece.location.file.is_empty()) {
                match now.get(object) {
                    // Of what was not read nothing is known to differ.
                    Some(new) if piece.value.get("kind").is_none() => piece.value = new.value.clone(),
                    Some(new) => piece.value = as_far_as(&piece.value, &new.value),
                    None => {}
                }
            }
        }
    }

    /// Says of every object in which namespace it is. `of` knows where an Application puts objects that name none.
    pub fn give_namespaces(&mut self, scoped: &HashSet<GroupKind>, of: impl Fn(&str) -> String) {
        for (application, pieces) in &mut self.applications {
            let namespace = of(application);
            *pieces = std::mem::take(pieces)
                .into_values()
                .map(|mut piece| {
                    let kind = &piece.object.kind;
                    if is_builtin_cluster_scoped(&kind.group, &kind.kind) || scoped.contains(kind) {
                        piece.object.namespace.clear();
                    } else if piece.object.namespace.is_empty() {
                        piece.object.namespace.clone_from(&namespace);
                    }
                    piece.meta.namespace.clone_from(&piece.object.namespace);
                    // Of what a cluster did not show there is no manifest.
                    if piece.value.is_object() {
                        piece.value["metadata"]["namespace"] = piece.object.namespace.clone().into();
                    }
                    (piece.object.clone(), piece)
                })
                .collect();
        }
    }

    /// Kinds without a namespace that it defines.
    pub fn cluster_scoped(&self) -> &HashSet<GroupKind> {
        &self.cluster_scoped
    }

    /// Every object, with the Application that renders it.
    pub fn pieces(&self) -> impl Iterator<Item = (&str, &Piece)> {
        self.applications.iter().flat_map(|(name, pieces)| pieces.values().map(|piece| (name.as_str(), piece)))
    }

    /// The manifest of the Application that a folder holds the objects of, if the tree has it.
    pub fn application(&self, folder: &str) -> Option<&Piece> {
        let fits = |piece: &Piece| {
            let ObjectRef { namespace, name, .. } = &piece.object;
            folder == name || ['-', '_', '.'].iter().any(|between| folder == format!("{namespace}{between}{name}"))
        };
        self.pieces().map(|(_, piece)| piece).find(|piece| piece.object.is_application() && fits(piece))
    }
}
