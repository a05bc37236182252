//! Deletes that the API server let through while the guard did not answer (`failurePolicy: Ignore`), judged after the fact.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Refusal, deletion, refusals};
use crate::judge::{Source, View, judge};
use cascade_guard_core::judge::Case;
use cascade_guard_core::{
    admission::{Object, Request},
    kinds::singular,
    object::ObjectRef,
    policy::Policy,
    replay::Event,
};

/// A delete that nobody judged when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedOpen {
    /// What was deleted.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Who deleted it.
    pub user: String,
    /// Identity of the call in the audit log.
    pub audit_id: String,
    /// The webhooks that did not answer.
    pub webhooks: Vec<String>,
    /// Whether the object is known well enough to judge: it is in the snapshot, or the event holds it.
    pub known: bool,
    /// Why it would have been refused; nothing if it would have passed.
    pub refusals: Vec<Refusal>,
}

impl FailedOpen {
    /// Who deleted what, when.
    pub fn sentence(&self) -> String {
        let at = self.at.map(|at| format!(" at {at}")).unwrap_or_default();
        format!("{} deleted {}{at}, while {} did not answer", self.user, self.object, self.webhooks.join(", "))
    }
}

/// Finds every such delete among `events`, judged against the cluster as the snapshot has it.
pub async fn find<V: View, S: Source>(
    events: &[Event],
    view: &V,
    source: &S,
    policy: &Policy,
    now: Timestamp,
) -> Vec<FailedOpen> {
    let mut found = Vec::new();
    let passed = events.iter().filter(|event| {
        matches!(event.verb.as_str(), "delete" | "deletecollection")
            && event.stage == "ResponseComplete"
            && event.succeeded()
            && !event.failed_open().is_empty()
            && !event.request_uri.contains("dryRun=All")
    });
    for event in passed {
        for (object, body) in deleted(event) {
            found.push(judged(event, object, body, view, source, policy, now).await);
        }
    }
    found
}

/// What an event deleted: by name, with the object where the event holds it.
fn deleted(event: &Event) -> Vec<(ObjectRef, Option<Object<'_>>)> {
    let Some(reference) = &event.object_ref else { return Vec::new() };
    let kind = singular(&reference.api_group, &reference.resource);
    let named = |namespace: &str, name: &str| {
        let namespace = if kind.is("", "Namespace") { "" } else { namespace };
        ObjectRef { kind: kind.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
    };
    let bodies: Vec<Object<'_>> = event.deleted().into_iter().filter_map(|raw| Object::new(raw).ok()).collect();
    if bodies.is_empty() {
        return vec![(named(&reference.namespace, &reference.name), None)];
    }
    bodies.into_iter().map(|body| (named(&body.meta.namespace, &body.meta.name), Some(body))).collect()
}

async fn judged<V: View, S: Source>(
    event: &Event,
    object: ObjectRef,
    body: Option<Object<'_>>,
    view: &V,
    source: &S,
    policy: &Policy,
    now: Timestamp,
) -> FailedOpen {
    // What comes back from a delete already carries the time of its deletion; it is judged as it was before.
    let body = body.map(|mut body| {
        body.meta.deletion_timestamp = None;
        body
    });
    let known = body.is_some() || is_known(source, &object).await;
    let mut refusals = Vec::new();
    if known {
        let request =
            Request { old_object: body, user: event.caller().clone(), ..deletion(&object, &event.caller().username) };
        let at = event.request_received_timestamp.unwrap_or(now);
        let decision = judge(Case::new(&request, policy, at), view, source, || Duration::from_secs(60)).await;
        refusals::collect(&object, &decision, &mut refusals);
    }
    FailedOpen {
        object,
        at: event.request_received_timestamp,
        user: event.caller().username.clone(),
        audit_id: event.audit_id.clone(),
        webhooks: event.failed_open().into_iter().map(str::to_owned).collect(),
        known,
        refusals,
    }
}

async fn is_known<S: Source>(source: &S, object: &ObjectRef) -> bool {
    !super::metadata_of(source, [object.clone()]).await.is_empty()
}
