//! Rendered manifests (`helm template`, `kustomize build`), compared before they ever meet in a cluster.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use json_patch::PatchOperation;
use serde_json::Value;

use super::{Report, Row, asking, live, read_set, whole};
use crate::judge::{Source, View};
use cascade_guard_core::{
    argo::Application,
    deletion::Inputs,
    facts::{Facts, Reading},
    inventory::{AppId, LOCAL},
    object::{Definition, GroupKind, ObjectRef, is_builtin_cluster_scoped},
    policy::Policy,
    snapshot::Snapshot,
};

/// What one Application would be made of.
pub(super) struct Set {
    name: String,
    objects: BTreeMap<ObjectRef, Value>,
    cluster_scoped: HashSet<GroupKind>,
    twice: Vec<ObjectRef>,
}

/// Which of the two is the Application.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The Application gives up, the manifests take over.
    FromApplication,
    /// The manifests give up, the Application takes over.
    ToApplication,
}

impl Set {
    /// Reads a file or folder. Objects whose manifest names no namespace are taken to be in `namespace`.
    pub(super) fn read(path: &Path, namespace: &str) -> anyhow::Result<Self> {
        Self::new(path.display().to_string(), &read_set(path)?, namespace)
    }

    fn new(name: String, snapshot: &Snapshot, namespace: &str) -> anyhow::Result<Self> {
        let definitions = snapshot.json_of_kind("apiextensions.k8s.io", "CustomResourceDefinition");
        let cluster_scoped = definitions.filter_map(|raw| Definition::read(raw)?.if_cluster_scoped()).collect();
        let mut set = Self { name, objects: BTreeMap::new(), cluster_scoped, twice: Vec::new() };
        for (object, _) in snapshot.objects() {
            // Without a name no two of them are the same object.
            let Some(json) = snapshot.json_of(object).filter(|_| !object.name.is_empty()) else { continue };
            let mut object = object.clone();
            if object.namespace.is_empty() {
                namespace.clone_into(&mut object.namespace);
            }
            let mut value: Value = serde_json::from_str(&json)?;
            // Whether the namespace is written down or comes from the destination makes no difference.
            if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.remove("namespace");
            }
            if set.objects.insert(object.clone(), value).is_some() && !set.twice.contains(&object) {
                set.twice.push(object);
            }
        }
        Ok(set)
    }

    /// The objects by their identity on a cluster, where cluster-scoped ones have no namespace.
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

    fn remark(&self, notes: &mut Vec<String>) {
        notes
            .extend(self.twice.iter().map(|object| format!("{object} is in {} twice; the last one counts", self.name)));
    }
}

/// What two sets hold in common, and what differs.
pub(super) fn compare(a: &Set, b: &Set) -> Report {
    let (ours, theirs) = (a.identities(&b.cluster_scoped), b.identities(&a.cluster_scoped));
    let shared = ours.iter().filter_map(|(object, left)| Some((object, left, theirs.get(object)?)));
    let objects = shared.map(|(object, left, right)| Row {
        object: object.clone(),
        differences: differences(object, left, right),
        ..Row::default()
    });
    let mut report = Report { a: a.name.clone(), b: b.name.clone(), objects: objects.collect(), ..Report::default() };
    a.remark(&mut report.notes);
    b.remark(&mut report.notes);
    if !report.is_clean() {
        report.notes.push(
            "an object belongs to one Application: whichever syncs last owns it and takes it along when it is deleted. \
             Leave it out of one of them, or move it in the order of docs/migration.md"
                .to_owned(),
        );
    }
    report
}

/// What an Application and a set hold in common, and what the manifests would change on the live objects.
pub(super) async fn against(
    view: &impl View,
    source: &impl Source,
    policy: &Policy,
    app: AppId,
    set: &Set,
    direction: Direction,
) -> Report {
    asking(view, source, policy, |inputs, facts| with_application(inputs, facts, app, set, direction)).await
}

fn with_application(inputs: Inputs<'_>, facts: &mut Facts, id: AppId, set: &Set, direction: Direction) -> Report {
    let Some(app) = inputs.inventory.app(id) else { return Report::default() };
    let (a, b) = match direction {
        Direction::FromApplication => (app.path(), set.name.clone()),
        Direction::ToApplication => (set.name.clone(), app.path()),
    };
    let mut report = Report { a, b, ..Report::default() };
    set.remark(&mut report.notes);
    let Some(raw) = whole(facts, app, &mut report.notes) else { return report };
    let Ok(application) = serde_json::from_str::<Application<'_>>(raw.get()) else {
        report.notes.push(format!("{} does not have the shape that Argo CD gives an Application", app.path()));
        return report;
    };
    let listed = live::listed(inputs, &application, app);
    for (object, manifest) in set.identities(&HashSet::new()) {
        let Some((object, said)) = listed.get(&inputs.inventory.key_of(app.cluster, &object)) else { continue };
        let mut row = Row { object: object.clone(), ..Row::default() };
        match direction {
            Direction::FromApplication => row.in_a = Some(said.clone()),
            Direction::ToApplication => row.in_b = Some(said.clone()),
        }
        if app.cluster == LOCAL {
            if let Some(Reading::Found(meta)) = facts.metadata(object) {
                row.held_by = live::holder(inputs, &meta, &[app]);
            }
            if let Some(Reading::Found(live)) = facts.object(object)
                && let Ok(live) = serde_json::from_str::<Value>(live.get())
            {
                row.differences = differences(object, &as_far_as(&live, manifest), manifest);
            }
        }
        report.objects.push(row);
    }
    report.objects.sort_by(|one, other| one.object.cmp(&other.object));
    report
}

/// The parts of `live` that `manifest` speaks of: what others and the API server added is no difference.
fn as_far_as(live: &Value, manifest: &Value) -> Value {
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

/// A JSON diff. What stands in a Secret is never printed, only where it differs.
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

    fn set(name: &str, yaml: &str) -> Set {
        // What begins with a brace is taken for JSON.
        Set::new(name.to_owned(), &Snapshot::parse(name, format!("---\n{yaml}")).unwrap(), "shop").unwrap()
    }

    fn found(a: &str, b: &str) -> Vec<(String, Vec<String>)> {
        let report = compare(&set("a", a), &set("b", b));
        let row = |row: Row| (row.object.to_string(), row.differences.iter().map(ToString::to_string).collect());
        report.objects.into_iter().map(row).collect()
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
        assert!(compare(&set("a", ROLE), &set("b", &ROLE.replace("name: api", "name: other"))).is_clean());
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
        let report = compare(&set("a", &twice), &set("b", "{apiVersion: v1, kind: Secret, metadata: {name: s}}"));
        assert_eq!(report.notes, ["Role shop/api is in a twice; the last one counts"]);
    }

    #[test]
    fn only_what_a_manifest_speaks_of_is_compared_with_the_live_object() {
        let live = serde_json::json!({"metadata": {"name": "x", "uid": "1"}, "spec": {"a": 1, "default": 2, "list": [{"x": 1, "y": 2}]}});
        let manifest = serde_json::json!({"metadata": {"name": "x"}, "spec": {"a": 3, "list": [{"x": 1}]}});
        let patch = json_patch::diff(&as_far_as(&live, &manifest), &manifest);
        assert_eq!(patch.to_string(), r#"[{"op":"replace","path":"/spec/a","value":3}]"#);
    }
}
