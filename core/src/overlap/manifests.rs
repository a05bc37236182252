//! Compares rendered manifests (`helm template`, `kustomize build`) with each other or with an Application.

use std::collections::{BTreeMap, HashSet};

use json_patch::PatchOperation;
use serde_json::Value;

use super::{
    Comparison, SharedObject,
    applications::{holder, listed},
    whole,
};
use crate::{
    argo::Application,
    deletion::Inputs,
    facts::{Facts, Reading},
    inventory::{AppId, LOCAL},
    object::{Definition, GroupKind, ObjectRef, is_builtin_cluster_scoped},
    snapshot::Snapshot,
};

/// The rendered manifests of one Application.
pub struct Manifests {
    name: String,
    objects: BTreeMap<ObjectRef, Value>,
    cluster_scoped: HashSet<GroupKind>,
    twice: Vec<ObjectRef>,
}

/// Which side of a comparison is the Application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The Application gives up, the manifests take over.
    FromApplication,
    /// The manifests give up, the Application takes over.
    ToApplication,
}

impl Manifests {
    /// Takes the objects of a snapshot for manifests; `name` is what people call them. An object whose manifest names no
    /// namespace is taken to be in `namespace`.
    ///
    /// # Errors
    /// When a manifest is not valid JSON.
    pub fn new(name: String, snapshot: &Snapshot, namespace: &str) -> serde_json::Result<Self> {
        let definitions = snapshot.json_of_kind("apiextensions.k8s.io", "CustomResourceDefinition");
        let cluster_scoped = definitions.filter_map(|raw| Definition::read(raw)?.if_cluster_scoped()).collect();
        let mut manifests = Self { name, objects: BTreeMap::new(), cluster_scoped, twice: Vec::new() };
        for (object, _) in snapshot.objects() {
            // Two objects without a name are never the same object.
            let Some(json) = snapshot.json_of(object).filter(|_| !object.name.is_empty()) else { continue };
            let mut object = object.clone();
            if object.namespace.is_empty() {
                namespace.clone_into(&mut object.namespace);
            }
            let mut value: Value = serde_json::from_str(&json)?;
            // A manifest may name its namespace or leave it to the destination. That is no difference.
            if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.remove("namespace");
            }
            if manifests.objects.insert(object.clone(), value).is_some() && !manifests.twice.contains(&object) {
                manifests.twice.push(object);
            }
        }
        Ok(manifests)
    }

    /// The objects by their identity on a cluster, where a cluster-scoped object has no namespace. `others` are further
    /// cluster-scoped kinds.
    fn identities<'a>(&'a self, others: &'a HashSet<GroupKind>) -> BTreeMap<ObjectRef, &'a Value> {
        let scoped = |object: &ObjectRef| {
            let ObjectRef { kind, namespace, name } = object;
            let cluster_wide = is_builtin_cluster_scoped(&kind.group, &kind.kind)
                || self.cluster_scoped.contains(kind)
                || others.contains(kind);
            ObjectRef::new(&kind.group, &kind.kind, if cluster_wide { "" } else { namespace }, name)
        };
        self.objects.iter().map(|(object, value)| (scoped(object), value)).collect()
    }

    /// Adds a note for each object that occurs more than once.
    fn remark(&self, notes: &mut Vec<String>) {
        notes
            .extend(self.twice.iter().map(|object| format!("{object} is in {} twice; the last one counts", self.name)));
    }
}

/// Finds the objects that both sets of manifests hold, and what differs.
pub fn compare_manifests(a: &Manifests, b: &Manifests) -> Comparison {
    let (ours, theirs) = (a.identities(&b.cluster_scoped), b.identities(&a.cluster_scoped));
    let shared = ours.iter().filter_map(|(object, left)| Some((object, left, theirs.get(object)?)));
    let objects = shared.map(|(object, left, right)| SharedObject {
        object: object.clone(),
        differences: differences(object, left, right),
        ..SharedObject::default()
    });
    let mut comparison =
        Comparison { a: a.name.clone(), b: b.name.clone(), objects: objects.collect(), ..Comparison::default() };
    a.remark(&mut comparison.notes);
    b.remark(&mut comparison.notes);
    if !comparison.is_clean() {
        comparison.notes.push(
            "an object belongs to one Application: whichever syncs last owns it and takes it along when it is deleted. \
             Leave it out of one of them, or move it in the order of docs/migration.md"
                .to_owned(),
        );
    }
    comparison
}

/// Finds the objects that an Application and a set of manifests hold, and what the manifests would change on the live
/// objects. While an answer is out the result is provisional.
pub fn compare_with_manifests(
    inputs: Inputs<'_>,
    facts: &mut Facts,
    id: AppId,
    manifests: &Manifests,
    direction: Direction,
) -> Comparison {
    let Some(app) = inputs.inventory.app(id) else { return Comparison::default() };
    let (a, b) = match direction {
        Direction::FromApplication => (app.path(), manifests.name.clone()),
        Direction::ToApplication => (manifests.name.clone(), app.path()),
    };
    let mut comparison = Comparison { a, b, ..Comparison::default() };
    manifests.remark(&mut comparison.notes);
    let Some(raw) = whole(facts, app, &mut comparison.notes) else { return comparison };
    let Ok(application) = serde_json::from_str::<Application<'_>>(raw.get()) else {
        comparison.notes.push(format!("{} does not have the shape that Argo CD gives an Application", app.path()));
        return comparison;
    };
    let listed = listed(inputs, &application, app);
    for (object, manifest) in manifests.identities(&HashSet::new()) {
        let Some((object, said)) = listed.get(&inputs.inventory.key_of(app.cluster, &object)) else { continue };
        let mut row = SharedObject { object: object.clone(), ..SharedObject::default() };
        match direction {
            Direction::FromApplication => row.in_a = Some(said.clone()),
            Direction::ToApplication => row.in_b = Some(said.clone()),
        }
        if app.cluster == LOCAL {
            if let Some(Reading::Found(meta)) = facts.metadata(object) {
                row.held_by = holder(inputs, &meta, &[app]);
            }
            if let Some(Reading::Found(live)) = facts.object(object)
                && let Ok(live) = serde_json::from_str::<Value>(live.get())
            {
                row.differences = differences(object, &as_far_as(&live, manifest), manifest);
            }
        }
        comparison.objects.push(row);
    }
    comparison.objects.sort_by(|one, other| one.object.cmp(&other.object));
    comparison
}

/// The parts of `live` that `manifest` sets. What others and the API server added is no difference.
pub fn as_far_as(live: &Value, manifest: &Value) -> Value {
    match (live, manifest) {
        (Value::Object(live), Value::Object(manifest)) => {
            let both = manifest.iter().filter_map(|(key, wanted)| Some((key, live.get(key)?, wanted)));
            both.map(|(key, live, wanted)| (key.clone(), as_far_as(live, wanted))).collect()
        }
        (Value::Array(live), Value::Array(manifest)) if live.len() == manifest.len() => {
            live.iter().zip(manifest).map(|(live, wanted)| as_far_as(live, wanted)).collect()
        }
        _ => live.clone(),
    }
}

/// A JSON diff. The values of a Secret are hidden: the diff only shows which of them differ.
fn differences(object: &ObjectRef, left: &Value, right: &Value) -> Vec<PatchOperation> {
    let mut patch = json_patch::diff(left, right).0;
    if object.kind.is("", "Secret") {
        for operation in &mut patch {
            let hidden = ["/data", "/stringData"].iter().any(|part| operation.path().as_str().starts_with(part));
            match operation {
                PatchOperation::Add(add) if hidden => add.value = "(hidden)".into(),
                PatchOperation::Replace(replace) if hidden => replace.value = "(hidden)".into(),
                _ => {}
            }
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, yaml: &str) -> Manifests {
        // What begins with a brace is taken for JSON.
        Manifests::new(name.to_owned(), &Snapshot::parse(name, format!("---\n{yaml}")).unwrap(), "shop").unwrap()
    }

    fn found(a: &str, b: &str) -> Vec<(String, Vec<String>)> {
        let comparison = compare_manifests(&set("a", a), &set("b", b));
        let row =
            |row: SharedObject| (row.object.to_string(), row.differences.iter().map(ToString::to_string).collect());
        comparison.objects.into_iter().map(row).collect()
    }

    const ROLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: api, namespace: shop}
rules: [{apiGroups: [''], resources: [leases], verbs: [get, update]}]
";

    #[test]
    fn same_object_in_two_sets_is_found_with_what_differs() {
        let narrower = ROLE.replace("[get, update]", "[get]").replace(", namespace: shop", "");
        let found = found(ROLE, &narrower);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "Role shop/api");
        assert_eq!(found[0].1, [r#"{"op":"remove","path":"/rules/0/verbs/1"}"#]);
    }

    #[test]
    fn objects_of_other_names_or_namespaces_are_no_overlap() {
        assert!(found(ROLE, &ROLE.replace("namespace: shop", "namespace: bank")).is_empty());
        assert!(compare_manifests(&set("a", ROLE), &set("b", &ROLE.replace("name: api", "name: other"))).is_clean());
    }

    #[test]
    fn cluster_scoped_objects_have_no_namespace_whatever_a_manifest_says() {
        let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: api}}";
        let elsewhere =
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: api, namespace: bank}}";
        assert_eq!(found(role, elsewhere), [("ClusterRole api".to_owned(), vec![])]);
        // Custom kinds are known by a definition in either set.
        let definition = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: zones.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Zone, plural: zones}}
---
{apiVersion: example.com/v1, kind: Zone, metadata: {name: z, namespace: x}}";
        let zone = "{apiVersion: example.com/v1, kind: Zone, metadata: {name: z}}";
        assert_eq!(found(definition, zone), [("Zone z".to_owned(), vec![])]);
    }

    #[test]
    fn what_stands_in_a_secret_is_never_printed() {
        let secret = |value: &str| {
            format!("{{apiVersion: v1, kind: Secret, metadata: {{name: s}}, data: {{password: {value}}}}}")
        };
        let found = found(&secret("b25l"), &secret("dHdv"));
        assert_eq!(found[0].1, [r#"{"op":"replace","path":"/data/password","value":"(hidden)"}"#]);
    }

    #[test]
    fn object_that_stands_twice_in_a_set_is_told() {
        let twice = format!("{ROLE}---{}", ROLE.replace("get, update", "get"));
        let comparison =
            compare_manifests(&set("a", &twice), &set("b", "{apiVersion: v1, kind: Secret, metadata: {name: s}}"));
        assert_eq!(comparison.notes, ["Role shop/api is in a twice; the last one counts"]);
    }

    #[test]
    fn only_what_a_manifest_speaks_of_is_compared_with_the_live_object() {
        let live = serde_json::json!({"metadata": {"name": "x", "uid": "1"}, "spec": {"a": 1, "default": 2, "list": [{"x": 1, "y": 2}]}});
        let manifest = serde_json::json!({"metadata": {"name": "x"}, "spec": {"a": 3, "list": [{"x": 1}]}});
        let patch = json_patch::diff(&as_far_as(&live, &manifest), &manifest);
        assert_eq!(patch.to_string(), r#"[{"op":"replace","path":"/spec/a","value":3}]"#);
    }
}
