//! Reading what was recorded: AdmissionReviews, requests alone, audit events; one JSON document, a list, or one a line.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    admission::{Operation, UserInfo},
    kinds::singular,
    object::{GroupKind, null_to_default},
};

/// One request that was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// File and number, for messages.
    pub place: String,
    /// The AdmissionReview, as the webhook would get it.
    pub review: Vec<u8>,
    /// Whether the request went through, by all that was recorded of it.
    pub admitted: bool,
    /// When it was made, if that was recorded.
    pub at: Option<Timestamp>,
}

/// Something in a file that is no request.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ReadError {
    /// File and number.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What was read from a file.
#[derive(Debug, Default)]
pub struct Recording {
    /// Requests, in their order.
    pub requests: Vec<Recorded>,
    /// Audit events, in their order; those of them that can be judged are among the requests too.
    pub events: Vec<Event>,
    /// Audit events that hold too little to be judged, such as those of a lower level, and why.
    pub left_out: BTreeMap<&'static str, usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Probe<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
    #[serde(default)]
    response: Option<Answer>,
    /// A recording may say of a request that somebody else refused it.
    #[serde(default, alias = "refusedByRig", deserialize_with = "null_to_default")]
    refused: bool,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    allowed: bool,
}

/// An event of the API server's audit log (`audit.k8s.io/v1`), in part.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// Identity of the call.
    #[serde(rename = "auditID")]
    pub audit_id: String,
    /// `RequestReceived`, `ResponseStarted`, `ResponseComplete` or `Panic`.
    pub stage: String,
    /// Verb, in lower case.
    pub verb: String,
    /// Path and query of the call.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// Who called.
    pub user: UserInfo,
    /// For whom, if the caller impersonated somebody.
    pub impersonated_user: Option<UserInfo>,
    /// What it was about.
    pub object_ref: Option<EventObject>,
    /// How it ended.
    pub response_status: Option<EventStatus>,
    /// What was sent, from level Request on.
    pub request_object: Option<Box<RawValue>>,
    /// What came back, at level RequestResponse.
    pub response_object: Option<Box<RawValue>>,
    /// When it was received.
    pub request_received_timestamp: Option<Timestamp>,
    /// What admission and authorization noted.
    #[serde(deserialize_with = "null_to_default")]
    pub annotations: BTreeMap<String, String>,
}

/// What a collection delete brings back.
#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

/// `objectRef` of an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventObject {
    /// Plural, lower case.
    pub resource: String,
    /// API group.
    pub api_group: String,
    /// API version.
    pub api_version: String,
    /// Namespace; for a Namespace its own name.
    pub namespace: String,
    /// Name; empty for collections.
    pub name: String,
    /// Subresource.
    pub subresource: String,
}

/// `responseStatus` of an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EventStatus {
    /// HTTP status.
    pub code: u16,
}

/// Reads one text.
///
/// # Errors
/// When something in it is no JSON, or neither a request nor an audit event.
pub fn read(name: &str, text: &str) -> Result<Recording, ReadError> {
    let mut recording = Recording::default();
    let mut number = 0;
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        number += 1;
        let place = format!("{name}#{number}");
        let raw = value.map_err(|error| ReadError { place: place.clone(), problem: error.to_string() })?;
        add(&mut recording, &place, raw)?;
    }
    if number == 0 {
        return Err(ReadError { place: name.to_owned(), problem: "it is empty".to_owned() });
    }
    Ok(recording)
}

fn add(recording: &mut Recording, place: &str, raw: &RawValue) -> Result<(), ReadError> {
    let bad = |problem: String| ReadError { place: place.to_owned(), problem };
    if raw.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|error| bad(error.to_string()))?;
        return add_all(recording, place, items);
    }
    let probe: Probe<'_> = serde_json::from_str(raw.get()).map_err(|error| bad(error.to_string()))?;
    if let Some(request) = probe.request {
        let admitted = !probe.refused && probe.response.is_none_or(|answer| answer.allowed);
        recording.requests.push(Recorded { place: place.to_owned(), review: wrap(request.get()), admitted, at: None });
        return Ok(());
    }
    match (probe.kind.as_str(), probe.items) {
        (_, Some(items)) => add_all(recording, place, items),
        ("Event", None) if probe.api_version.starts_with("audit.k8s.io/") => {
            let event: Event = serde_json::from_str(raw.get()).map_err(|error| bad(error.to_string()))?;
            match event.requests(place) {
                Ok(requests) => recording.requests.extend(requests),
                Err(why) => *recording.left_out.entry(why).or_default() += 1,
            }
            recording.events.push(event);
            Ok(())
        }
        _ => Err(bad("it is neither an AdmissionReview, nor a request, nor an audit event".to_owned())),
    }
}

fn add_all(recording: &mut Recording, place: &str, items: Vec<&RawValue>) -> Result<(), ReadError> {
    items.into_iter().enumerate().try_for_each(|(index, item)| add(recording, &format!("{place}[{index}]"), item))
}

/// A review around a request.
fn wrap(request: &str) -> Vec<u8> {
    format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request}}}"#).into_bytes()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

impl Event {
    /// Who is behind it.
    pub fn caller(&self) -> &UserInfo {
        self.impersonated_user.as_ref().unwrap_or(&self.user)
    }

    /// The webhooks that did not answer and whose failure policy let this pass. The key is set by the API server
    /// (`admission/plugin/webhook/validating/dispatcher.go`).
    pub fn failed_open(&self) -> Vec<&str> {
        let prefix = "failed-open.validating.webhook.admission.k8s.io/";
        self.annotations.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(_, value)| value.as_str()).collect()
    }

    /// Whether it went through.
    pub fn succeeded(&self) -> bool {
        self.response_status.as_ref().is_some_and(|status| status.code < 400)
    }

    /// What it deleted, where that came back: one object, or those of a list.
    pub fn deleted(&self) -> Vec<&RawValue> {
        let Some(raw) = &self.response_object else { return Vec::new() };
        let Ok(list) = serde_json::from_str::<List<'_>>(raw.get()) else { return Vec::new() };
        match list.items {
            Some(items) => items,
            None if typed(raw).is_some_and(|(_, kind)| kind != "Status") => vec![raw],
            None => Vec::new(),
        }
    }

    /// The reviews that the call gave rise to; why there are none if it cannot be told what it was about.
    fn requests(&self, place: &str) -> Result<Vec<Recorded>, &'static str> {
        let operation = match self.verb.as_str() {
            "create" => Operation::Create,
            "update" | "patch" => Operation::Update,
            "delete" | "deletecollection" => Operation::Delete,
            _ => return Err("calls that change nothing"),
        };
        if !matches!(self.stage.as_str(), "ResponseComplete" | "Panic") {
            return Err("stages before the last");
        }
        let Some(object) = &self.object_ref else { return Err("events without an object") };
        let bodies: Vec<&RawValue> = match operation {
            Operation::Delete => self.deleted(),
            // What came back is complete; what was sent lacks what the API server fills in, or is a patch.
            _ if self.succeeded() => self.response_object.as_deref().into_iter().collect(),
            Operation::Create => self.request_object.as_deref().into_iter().collect(),
            _ => Vec::new(),
        };
        if bodies.is_empty() && operation == Operation::Delete && !object.name.is_empty() {
            // The world may know it by its name.
            return Ok(vec![self.recorded(place, operation, object, None)]);
        }
        if bodies.is_empty() {
            return Err("events without a body: the audit policy must say RequestResponse");
        }
        Ok(bodies.into_iter().map(|body| self.recorded(place, operation, object, Some(body))).collect())
    }

    fn recorded(&self, place: &str, operation: Operation, object: &EventObject, body: Option<&RawValue>) -> Recorded {
        let (group, kind) = body.and_then(typed).unwrap_or_else(|| (object.api_group.clone(), String::new()));
        let GroupKind { group, kind } =
            if kind.is_empty() { singular(&object.api_group, &object.resource) } else { GroupKind { group, kind } };
        let body: Value = body.and_then(|body| serde_json::from_str(body.get()).ok()).unwrap_or(Value::Null);
        let (new, old) = if operation == Operation::Delete { (Value::Null, body) } else { (body, Value::Null) };
        let request = json!({
            "uid": if self.audit_id.is_empty() { "audit-event" } else { &self.audit_id },
            "kind": {"group": group, "version": object.api_version, "kind": kind},
            "resource": {"group": object.api_group, "version": object.api_version, "resource": object.resource},
            "subResource": object.subresource, "operation": operation,
            "name": object.name, "namespace": object.namespace, "userInfo": self.caller(),
            "object": new, "oldObject": old, "dryRun": self.request_uri.contains("dryRun=All"), "options": null,
        });
        Recorded {
            place: place.to_owned(),
            review: wrap(&request.to_string()),
            admitted: self.succeeded(),
            at: self.request_received_timestamp,
        }
    }
}

/// Group and kind of an object.
fn typed(raw: &RawValue) -> Option<(String, String)> {
    let Typed { api_version, kind } = serde_json::from_str(raw.get()).ok()?;
    (!kind.is_empty()).then(|| (crate::object::group_of(&api_version).to_owned(), kind))
}
