//! Small worlds for tests: Applications and objects in a line each, judged through the library.

use std::{cell::RefCell, collections::HashMap};

use cascade_guard_core::{
    admission::Response,
    policy::{Mode, Policy, RuleKey},
};
use serde_json::{Value, json};

use crate::support::{review, review_while_stale, snapshot};

pub const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
pub const SERVER: &str = "system:serviceaccount:argocd:argocd-server";
pub const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
pub const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";
pub const NOW: &str = "2026-11-29T12:00:00Z";
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// A cascading Application `argocd/NAME` that lists these objects, each as `[group/]Kind [namespace/]name [state]`, where
/// the state is `Synced` (the default), `OutOfSync`, `Prune`, `Unknown` or `Hook`.
pub fn app(name: &str, lists: &[&str]) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or(("argocd", name));
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"), "finalizers": [FINALIZER], "annotations": {}},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example.com/deploy.git", "path": name},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "target"}},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"},
            "resources": lists.iter().map(|entry| entry_of(entry)).collect::<Vec<_>>()},
    })
}

fn entry_of(text: &str) -> Value {
    let parts: Vec<&str> = text.split(' ').collect();
    let (group, kind) = parts[0].rsplit_once('/').unwrap_or(("", parts[0]));
    let (namespace, name) = parts[1].split_once('/').unwrap_or(("", parts[1]));
    let mut entry = json!({"group": group, "kind": kind, "namespace": namespace, "name": name, "version": "v1"});
    match parts.get(2).copied().unwrap_or("Synced") {
        "Prune" => (entry["status"], entry["requiresPruning"]) = (json!("OutOfSync"), json!(true)),
        "Hook" => entry["hook"] = json!(true),
        status => entry["status"] = json!(status),
    }
    entry
}

/// A live object, with the marker of an Application where one is named.
pub fn object(text: &str, marker: &str) -> Value {
    let entry = entry_of(text);
    let group = entry["group"].as_str().unwrap();
    let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let mut object = json!({"apiVersion": version, "kind": entry["kind"], "metadata": {
        "name": entry["name"], "namespace": entry["namespace"], "uid": format!("uid-{}", entry["name"].as_str().unwrap()), "annotations": {}}});
    if !marker.is_empty() {
        let id =
            format!("{marker}:{group}/{}:target/{}", entry["kind"].as_str().unwrap(), entry["name"].as_str().unwrap());
        object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!(id);
    }
    object
}

/// The same with one value changed; the path is a JSON pointer, and what it needs is made.
pub fn with(mut object: Value, path: &str, value: impl Into<Value>) -> Value {
    let mut at = &mut object;
    for key in path.trim_start_matches('/').split('/') {
        let key = key.replace("~1", "/");
        if at.is_null() {
            *at = json!({});
        }
        at = &mut at[key];
    }
    *at = value.into();
    object
}

/// An approval that is valid at [`NOW`].
pub fn approved(namespace: &Value) -> Value {
    let uid = namespace["metadata"]["uid"].clone();
    let mut namespace = namespace.clone();
    for (key, value) in [("by", json!("alice")), ("until", json!("2026-11-29T20:00:00Z")), ("uid", uid)] {
        namespace["metadata"]["annotations"][format!("cascade-guard.io/deletion-approved-{key}")] = value;
    }
    namespace
}

/// The settings of an Argo CD, so that its tracking method is known.
pub fn argocd_cm(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": data})
}

/// Everything enforces, except that nobody is refused for the sake of Pods that stay.
pub fn strict() -> Policy {
    Policy::every_rule(Mode::Enforce).with_mode(RuleKey::RuntimeDependency, Mode::Warn)
}

/// Annotation of a child that its parent has not marked.
pub const UNMARKED: &str = "tests/unmarked";

fn mark_children(objects: &mut [Value]) {
    const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
    let mut parents: HashMap<(Value, Value, Value), String> = HashMap::new();
    for parent in objects.iter().filter(|object| object["kind"] == "Application") {
        let listed = parent["status"]["resources"].as_array().cloned().unwrap_or_default();
        for entry in listed.into_iter().filter(|entry| entry["group"] == "argoproj.io") {
            let child = (entry["kind"].clone(), entry["namespace"].clone(), entry["name"].clone());
            parents.entry(child).or_insert_with(|| parent["metadata"]["name"].as_str().unwrap().to_owned());
        }
    }
    for child in objects.iter_mut().filter(|object| object["kind"].as_str().unwrap().starts_with("Application")) {
        let meta = &child["metadata"];
        let Some(parent) = parents.get(&(child["kind"].clone(), meta["namespace"].clone(), meta["name"].clone()))
        else {
            continue;
        };
        let said = |key: &str| !meta["annotations"][key].is_null();
        if !said(TRACKING_ID) && !said(UNMARKED) && meta["ownerReferences"].is_null() {
            let path = format!("{}/{}", meta["namespace"].as_str().unwrap(), meta["name"].as_str().unwrap());
            let id = format!("{parent}:argoproj.io/{}:{path}", child["kind"].as_str().unwrap());
            child["metadata"]["annotations"][TRACKING_ID] = json!(id);
        }
    }
}

/// A cluster.
pub struct World {
    objects: Vec<Value>,
    policy: RefCell<Policy>,
    ready: bool,
    stale: Option<&'static str>,
}

impl World {
    /// A cluster of these objects. Applications and ApplicationSets that an Application lists carry its marker, as Argo CD
    /// writes it, unless they have annotations that say otherwise.
    pub fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        let mut objects: Vec<Value> = objects.into_iter().collect();
        mark_children(&mut objects);
        Self { objects, policy: RefCell::new(strict()), ready: true, stale: None }
    }

    /// The same under another policy.
    pub fn under(self, policy: Policy) -> Self {
        self.policy.replace(policy);
        self
    }

    /// The same before everything was listed.
    pub fn not_ready(self) -> Self {
        Self { ready: false, ..self }
    }

    /// The same while nothing is heard of it, for this reason.
    pub fn stale(self, why: &'static str) -> Self {
        Self { stale: Some(why), ..self }
    }

    /// The stored object that a text names.
    pub fn stored(&self, text: &str) -> Value {
        let wanted = entry_of(text);
        let found = self.objects.iter().find(|object| {
            let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
            object["kind"] == wanted["kind"]
                && text("/metadata/name") == wanted["name"]
                && text("/metadata/namespace") == wanted["namespace"]
        });
        found.unwrap_or_else(|| panic!("there is no {text}")).clone()
    }

    /// Judges the DELETE of an object by a user.
    pub fn delete(&self, text: &str, user: &str) -> Response {
        self.judge(&self.stored(text), user, json!({"propagationPolicy": "Background"}))
    }

    /// Judges the DELETE of an object as it is given.
    pub fn judge(&self, object: &Value, user: &str, options: Value) -> Response {
        let group = object["apiVersion"].as_str().unwrap().split_once('/').map(|(group, _)| group).unwrap_or_default();
        let request = json!({"uid": "1", "kind": {"group": group, "version": "v1", "kind": object["kind"]}, "operation": "DELETE",
            "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
            "userInfo": {"username": user, "groups": ["system:authenticated"]}, "object": null, "oldObject": object, "options": options});
        let world = snapshot(&self.objects);
        let policy = self.policy.borrow();
        let mut inventory = world.inventory(&policy, (11, 12));
        inventory.set_ready(self.ready);
        let now = NOW.parse().unwrap();
        match self.stale {
            None => review(&request, &world, &inventory, &policy, now),
            Some(why) => review_while_stale(&request, &world, &inventory, &policy, now, why),
        }
    }
}

/// Fails unless the answer allows, without a warning.
#[track_caller]
pub fn passes(response: &Response) {
    assert!(response.allowed, "{}", response.message);
    assert!(response.warnings.is_empty(), "{:?}", response.warnings);
}

/// Fails unless the answer refuses and says all of this.
#[track_caller]
pub fn refused(response: &Response, words: &[&str]) {
    assert!(!response.allowed, "it was allowed: {:?}", response.warnings);
    for word in words {
        assert!(response.message.contains(word), "no `{word}` in: {}", response.message);
    }
}

/// Fails unless the answer allows and warns of all of this.
#[track_caller]
pub fn warned(response: &Response, words: &[&str]) {
    assert!(response.allowed, "{}", response.message);
    for word in words {
        assert!(
            response.warnings.iter().any(|warning| warning.contains(word)),
            "no `{word}` in: {:?}",
            response.warnings
        );
    }
}
