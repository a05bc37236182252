//! Applications whose lists cannot be trusted, and since when.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{AuditInput, each_object};
use crate::judge::{Source, View};
use cascade_guard_core::{
    facts::Reading,
    object::{ObjectMeta, ObjectRef, null_to_default},
};

/// An Application whose list is not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Untrusted {
    /// The Application.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Why.
    pub why: String,
    /// Since when, as far as that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What Argo CD says about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Body {
    metadata: ObjectMeta,
    #[serde(deserialize_with = "null_to_default")]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    reconciled_at: Option<Timestamp>,
    #[serde(deserialize_with = "null_to_default")]
    conditions: Vec<Condition>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    last_transition_time: Option<Timestamp>,
}

/// Every one of them, the longest first.
pub(super) async fn find<V: View, S: Source>(input: &AuditInput<'_, V, S>) -> Vec<Untrusted> {
    let distrusted: Vec<(ObjectRef, &'static str)> = input.view.with(|inventory| {
        inventory
            .applications()
            .filter(|(_, app)| app.terminating.is_none())
            .filter_map(|(_, app)| Some((app.object(), app.distrust?)))
            .collect()
    });
    let mut found = Vec::with_capacity(distrusted.len());
    let mut reasons = distrusted.iter().map(|(_, why)| *why);
    each_object(input.source, distrusted.iter().map(|(object, _)| object.clone()), |object, reading| {
        found.push(untrusted(object, reasons.next().unwrap_or_default(), &reading));
    })
    .await;
    // Nothing is older than what has no date: it was never known.
    found.sort_by(|a, b| (a.since, &a.object).cmp(&(b.since, &b.object)));
    found
}

fn untrusted(object: &ObjectRef, why: &str, reading: &Reading<Arc<RawValue>>) -> Untrusted {
    let body: Body = reading.found().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    // The condition says when it began; without one the list is as old as the last comparison.
    let error = body.status.conditions.into_iter().find(|condition| condition.kind.ends_with("Error"));
    let (since, message) = match error {
        Some(condition) => (condition.last_transition_time, condition.message),
        None => (None, String::new()),
    };
    let since = since.or(body.status.reconciled_at).or(body.metadata.creation_timestamp);
    Untrusted { object: object.clone(), why: why.to_owned(), since, message }
}
