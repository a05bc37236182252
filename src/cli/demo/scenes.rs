//! What happens in the demo: requests, how a person would see the answers, and what they must be.

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::Answer;
use cascade_guard_core::{object::ARGO_GROUP, snapshot::Snapshot};

/// One request as it stands in `requests.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    incident: String,
    #[serde(default)]
    right: String,
    command: String,
    entry: String,
    operation: String,
    user: String,
    resource: Resource,
    /// The stored object, by its place in the snapshot.
    old: Option<ObjectPath>,
    #[serde(default)]
    without_finalizers: bool,
    object: Option<Value>,
    refused: bool,
    #[serde(default)]
    mentions: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    group: String,
    version: String,
    resource: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectPath {
    kind: String,
    namespace: String,
    name: String,
}

/// One request, ready to be sent.
pub struct Scene {
    script: Script,
    uid: String,
    /// Kind and name, as kubectl writes them.
    object: String,
    /// The AdmissionReview.
    pub review: String,
}

/// Every scene, in order.
pub fn read(world: &Snapshot) -> anyhow::Result<Vec<Scene>> {
    let scripts: Vec<Script> = serde_saphyr::from_str(include_str!("requests.yaml"))?;
    scripts.into_iter().enumerate().map(|(index, script)| Scene::new(script, index, world)).collect()
}

impl Scene {
    fn new(script: Script, index: usize, world: &Snapshot) -> anyhow::Result<Self> {
        let uid = format!("de000000-0000-4000-8000-{:012}", index + 1);
        let old = script.old.as_ref().map(|place| stored(place, script.without_finalizers, world)).transpose()?;
        let subject = script.object.as_ref().or(old.as_ref()).context("a request without an object")?;
        let text = |pointer: &str| subject.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Resource { group, version, resource } = &script.resource;
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let suffix = if group.is_empty() { String::new() } else { format!(".{group}") };
        let object = format!("{}{suffix} \"{name}\"", kind.to_lowercase());
        let gvk = json!({"group": group, "version": version, "kind": kind});
        let gvr = json!({"group": group, "version": version, "resource": resource});
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": uid,
                "kind": gvk,
                "resource": gvr,
                "requestKind": gvk,
                "requestResource": gvr,
                "name": name,
                "namespace": text("/metadata/namespace"),
                "operation": script.operation,
                "userInfo": {"username": script.user, "groups": ["system:authenticated"]},
                "object": script.object,
                "oldObject": old,
                "dryRun": false,
                "options": null,
            },
        });
        Ok(Self { uid, object, review: review.to_string(), script })
    }

    /// Where the webhook configuration sends it.
    pub fn path(&self) -> String {
        format!("/validate/{}", self.script.entry)
    }

    /// As a terminal would show it.
    pub fn show(&self, answer: &Answer) -> String {
        let Script { incident, right, command, entry, operation, .. } = &self.script;
        let mut lines = vec![String::new()];
        if incident.is_empty() {
            lines.push(format!("  Right: {right}."));
        } else {
            lines.push("-".repeat(78));
            lines.extend(incident.lines().map(str::to_owned));
            lines.push(String::new());
        }
        lines.push(format!("  $ {command}"));
        lines.extend(answer.warnings.iter().map(|warning| format!("  Warning: {warning}")));
        if answer.allowed {
            let done = if operation == "DELETE" { "deleted" } else { "created" };
            lines.push(format!("  {} {done}", self.object));
        } else {
            let reason = &answer.status.reason;
            let first = format!(
                "Error from server ({reason}): admission webhook \"{entry}.cascade-guard.io\" denied the request: "
            );
            let message = format!("{first}{}", answer.status.message);
            lines.extend(message.lines().map(|line| format!("  {line}")));
        }
        lines.join("\n")
    }

    /// Whether the answer is as it must be.
    pub fn check(&self, answer: &Answer) -> Result<(), String> {
        let word = |refused: bool| if refused { "refused" } else { "allowed" };
        if answer.uid != self.uid {
            return Err(format!("the answer is to {} and not to {}", answer.uid, self.uid));
        }
        if answer.allowed == self.script.refused {
            return Err(format!("it was {} and must be {}", word(!answer.allowed), word(self.script.refused)));
        }
        if !answer.allowed && (answer.status.code, answer.status.reason.as_str()) != (403, "Forbidden") {
            return Err(format!("it was refused with {} {}", answer.status.code, answer.status.reason));
        }
        match self.script.mentions.iter().find(|word| !answer.status.message.contains(*word)) {
            Some(word) => Err(format!("the message does not name {word}")),
            None => Ok(()),
        }
    }
}

/// An object of the snapshot.
fn stored(place: &ObjectPath, without_finalizers: bool, world: &Snapshot) -> anyhow::Result<Value> {
    let group = if place.kind == "Application" { ARGO_GROUP } else { "" };
    let found = world.json_of_kind(group, &place.kind).find_map(|json| {
        let object: Value = serde_json::from_str(json).ok()?;
        let is = |pointer: &str, wanted: &str| object.pointer(pointer).and_then(Value::as_str) == Some(wanted);
        (is("/metadata/namespace", &place.namespace) && is("/metadata/name", &place.name)).then_some(object)
    });
    let mut object = found.with_context(|| format!("the snapshot has no {} {}", place.kind, place.name))?;
    let metadata = object.pointer_mut("/metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata.filter(|_| without_finalizers) {
        metadata.remove("finalizers");
    }
    Ok(object)
}
