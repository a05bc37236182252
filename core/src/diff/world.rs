//! The cluster that a change meets: everything that was rendered before it is there, and every Application lists what it
//! wants after it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Context,
    side::{Piece, Side},
};
use crate::{
    argo::{Destination, application::CASCADE_FINALIZERS, generated_names::Naming, tracking::TRACKING_ID},
    inventory::Inventory,
    object::{ARGO_GROUP, ObjectRef},
    policy::Policy,
    snapshot::{DocumentError, Snapshot},
};

/// An Application of the trees.
#[derive(Debug)]
pub struct Known {
    /// Its identity.
    pub object: ObjectRef,
    /// Whether it removes by itself what left Git; `None` if nobody knows.
    pub prunes: Option<bool>,
    /// Whether nothing of it is known but what it renders, so that it is taken to cascade.
    pub assumed: bool,
    /// Whether its sync options say that it never prunes.
    pub never_prunes: bool,
    /// Where it deploys to.
    destination: Destination,
}

/// The cluster.
#[derive(Debug)]
pub struct World<'a> {
    /// Its objects.
    pub snapshot: Snapshot,
    /// What Applications claim there.
    pub inventory: Inventory,
    /// The policy.
    pub policy: &'a Policy,
    /// The time.
    pub now: Timestamp,
    /// The Applications of the trees, by the names of their folders.
    pub known: BTreeMap<String, Known>,
    /// Applications that an ApplicationSet generates, by its identity.
    pub generated: BTreeMap<ObjectRef, Vec<String>>,
}

impl<'a> World<'a> {
    /// Builds it.
    ///
    /// # Errors
    /// When an object cannot be put into it.
    pub fn new(before: &Side, after: &Side, context: Context<'a>) -> Result<Self, DocumentError> {
        let Context { cluster: mut snapshot, policy, now, .. } = context;
        let argocd = policy.spec.argocd.namespace.clone();
        let generated = generated(before);
        let folders: BTreeSet<&String> = before.applications.keys().chain(after.applications.keys()).collect();
        let mut known = BTreeMap::new();
        let mut applications = Vec::new();
        for folder in folders {
            let set = generated.iter().find(|(_, names)| names.contains(folder)).map(|(set, _)| set);
            let (application, assumed) = application(folder, before, after, &snapshot, (&argocd, set));
            known.insert(folder.clone(), describe(&application, assumed));
            applications.push((folder, application));
        }
        // Whose marker an object carries decides whether it goes: of several the one that gives it up.
        let mut owners: BTreeMap<&ObjectRef, (&str, &Piece)> = BTreeMap::new();
        for (folder, piece) in before.pieces() {
            let gives_up = after.applications.get(folder).is_none_or(|now| !now.contains_key(&piece.object));
            if gives_up || !owners.contains_key(&piece.object) {
                owners.insert(&piece.object, (folder, piece));
            }
        }
        let mut put = |value: &Value| snapshot.put("the trees", value.to_string());
        for (object, (folder, piece)) in &owners {
            if !known.values().any(|known| known.object == **object) && !piece.location.file.is_empty() {
                put(&marked(piece.value.clone(), object, &known[*folder]))?;
            }
        }
        for (folder, mut application) in applications {
            let object = &known[folder].object;
            if let Some((parent, _)) = owners.get(object).filter(|(parent, _)| *parent != folder.as_str()) {
                application = marked(application, object, &known[*parent]);
            }
            application["metadata"]["uid"] = uid(object).into();
            application["status"] = status(before.applications.get(folder), after.applications.get(folder));
            put(&application)?;
        }
        let scoped: HashSet<_> = before.cluster_scoped().union(after.cluster_scoped()).cloned().collect();
        snapshot.set_cluster_scoped(scoped);
        let inventory = snapshot.inventory(policy, (0, 0));
        Ok(Self { snapshot, inventory, policy, now, known, generated })
    }

    /// Whether two Applications of the trees may deploy to one cluster.
    pub fn share_a_cluster(&self, one: &str, other: &str) -> bool {
        let cluster = |folder: &str| {
            let known = self.known.get(folder).filter(|known| !known.assumed)?;
            Some(Destination { namespace: String::new(), ..known.destination.clone() })
        };
        match (cluster(one), cluster(other)) {
            (Some(one), Some(other)) => one.same_as(&other),
            _ => true,
        }
    }

    /// The path of an Application of the trees.
    pub fn path(&self, folder: &str) -> String {
        self.known.get(folder).map_or_else(|| folder.to_owned(), |known| known.object.path())
    }
}

/// The UID of an object that only the trees know.
pub(super) fn uid(object: &ObjectRef) -> String {
    format!("uid-{}-{}", object.kind.kind, object.path())
}

/// The manifest with the marker of an Application, as the object stands in the cluster.
pub(super) fn marked(mut value: Value, object: &ObjectRef, application: &Known) -> Value {
    let ObjectRef { kind, namespace, name } = object;
    let id = format!("{}:{}/{}:{namespace}/{name}", application.object.name, kind.group, kind.kind);
    if !value["metadata"]["annotations"].is_object() {
        value["metadata"]["annotations"] = json!({});
    }
    value["metadata"]["annotations"][TRACKING_ID] = id.into();
    value["metadata"]["uid"] = uid(object).into();
    value
}

/// The Application behind a folder: as the cluster has it, as one of the trees has it, or made up.
fn application(
    folder: &str,
    before: &Side,
    after: &Side,
    cluster: &Snapshot,
    (argocd, set): (&str, Option<&ObjectRef>),
) -> (Value, bool) {
    let written = before.application(folder).or_else(|| after.application(folder));
    let in_cluster = || {
        let found = cluster
            .objects()
            .map(|(object, _)| object)
            .find(|object| object.is_application() && object.name == folder)?;
        serde_json::from_str(&cluster.json_of(found)?).ok()
    };
    if let Some(mut value) = in_cluster().or_else(|| written.map(|piece| piece.value.clone())) {
        if value["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
            value["metadata"]["namespace"] = argocd.into();
        }
        return (value, false);
    }
    let namespace = set.map_or(argocd, |set| &set.namespace);
    let mut value = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": folder, "namespace": namespace, "finalizers": [CASCADE_FINALIZERS[0]]},
        "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
    });
    if let Some(set) = set {
        value["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "argoproj.io/v1alpha1", "kind": set.kind.kind, "name": set.name, "uid": uid(set), "controller": true,
        }]);
    }
    (value, true)
}

fn describe(application: &Value, assumed: bool) -> Known {
    let text = |pointer: &str| application.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let object = ObjectRef::new(ARGO_GROUP, "Application", text("/metadata/namespace"), text("/metadata/name"));
    let policy = &application["spec"]["syncPolicy"];
    let automated = &policy["automated"];
    let prunes = automated.is_object() && automated["enabled"] != false && automated["prune"] == true;
    let options = policy["syncOptions"].as_array().into_iter().flatten();
    let never_prunes = options.clone().any(|option| option == "Prune=false");
    let destination = Destination::deserialize(&application["spec"]["destination"]).unwrap_or_default();
    Known { object, prunes: (!assumed).then_some(prunes), assumed, never_prunes, destination }
}

/// What an Application lists once the change is merged. One that is not rendered any more still lists what it rendered.
fn status(before: Option<&BTreeMap<ObjectRef, Piece>>, after: Option<&BTreeMap<ObjectRef, Piece>>) -> Value {
    let entry = |object: &ObjectRef, status: &str, prune: bool| {
        json!({"group": object.kind.group, "kind": object.kind.kind, "namespace": object.namespace, "name": object.name,
            "version": "v1", "status": status, "requiresPruning": prune})
    };
    let (old, new) = (before.into_iter().flatten(), after.into_iter().flatten());
    let is_new = |object: &ObjectRef| before.is_none_or(|before| !before.contains_key(object));
    let mut resources: Vec<Value> =
        new.map(|(object, _)| entry(object, if is_new(object) { "OutOfSync" } else { "Synced" }, false)).collect();
    for (object, _) in old {
        match after {
            Some(after) if !after.contains_key(object) => resources.push(entry(object, "OutOfSync", true)),
            Some(_) => {}
            None => resources.push(entry(object, "Synced", false)),
        }
    }
    json!({"reconciledAt": "2000-01-01T00:00:00Z", "sync": {"status": "OutOfSync"}, "resources": resources})
}

/// Folders that an ApplicationSet generated the Applications of, going by the template of their name.
fn generated(before: &Side) -> BTreeMap<ObjectRef, Vec<String>> {
    let sets = before.pieces().filter(|(_, piece)| piece.object.kind.is(ARGO_GROUP, "ApplicationSet"));
    sets.map(|(_, piece)| {
        let naming = Naming::of(&piece.value.to_string()).unwrap_or_default();
        let folders = before.applications.keys().filter(|folder| before.application(folder).is_none());
        (piece.object.clone(), folders.filter(|folder| naming.may_name(folder)).cloned().collect())
    })
    .collect()
}
