//! Answers questions by reads of the live cluster.

use std::{fmt::Write, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::{Api, Client, Error, api::PostParams};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::{Kinds, Served, client::in_words};
use crate::judge::Source;
use crate::telemetry::{Metrics, metrics::Lookup};
use cascade_guard_core::{
    facts::{AccessQuestion, Answer, ListQuestion, Listed, Question, Reading},
    object::{GroupKind, KnownObject, ObjectMeta, ObjectRef, null_to_default},
};

/// So many reads at a time for one decision.
const AT_A_TIME: usize = 8;

/// So many reads at a time for what nobody waits for.
const GENTLY: usize = 2;

/// So many objects a page of a list that is read to its end.
const PAGE: usize = 500;

/// Kinds whose finalizers usually hold a Namespace. Hooks of Argo CD are Jobs more often than not.
const HOLDERS: [(&str, &str); 5] =
    [("batch", "Job"), ("", "Pod"), ("", "PersistentVolumeClaim"), ("", "Service"), ("networking.k8s.io", "Ingress")];

/// Asks for an object's metadata alone.
const ONLY_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Asks for the metadata of each object of a list alone.
const ONLY_METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What may stand in a segment of a path as it is. Names of roles may hold almost anything.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Answers questions from the API server.
#[derive(Clone)]
pub struct LiveSource {
    client: Client,
    kinds: Arc<Kinds>,
    metrics: Arc<Metrics>,
    at_a_time: usize,
}

/// What a list says of itself.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ListMeta {
    /// Where the next page begins; empty on the last.
    #[serde(rename = "continue", deserialize_with = "null_to_default")]
    token: String,
}

/// Why something could not be read: what is counted and what a person is told.
struct Unread {
    outcome: Lookup,
    reason: String,
}

impl LiveSource {
    /// Reads through `client`.
    pub fn new(client: Client, kinds: Arc<Kinds>, metrics: Arc<Metrics>) -> Self {
        Self { client, kinds, metrics, at_a_time: AT_A_TIME }
    }

    /// The same for work that nobody waits for: it must not crowd out the reads of reviews.
    #[must_use]
    pub fn gently(&self) -> Self {
        Self { at_a_time: GENTLY, ..self.clone() }
    }

    /// What is being deleted in a Namespace and may hold it: objects of the kinds that usually do. Kinds that cannot be
    /// listed are passed over; the conditions of the Namespace name them all the same.
    pub async fn held_in(&self, namespace: &str) -> Vec<KnownObject> {
        let mut found = Vec::new();
        for (group, kind) in HOLDERS {
            match self.subjects(&GroupKind::new(group, kind), namespace).await {
                Ok(subjects) => found.extend(subjects.into_iter().filter(|subject| subject.meta.is_terminating())),
                Err(reason) => tracing::debug!(namespace, reason, "not looked at"),
            }
        }
        found
    }

    /// Every object of a kind in a Namespace, or in all of them if it is empty, by name and metadata.
    ///
    /// # Errors
    /// Says in words why they cannot be listed.
    pub async fn subjects(&self, kind: &GroupKind, namespace: &str) -> Result<Vec<KnownObject>, String> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            metadata: ListMeta,
            #[serde(default)]
            items: Vec<Item>,
        }
        #[derive(Deserialize)]
        struct Item {
            metadata: ObjectMeta,
        }
        let served = self.served(kind).await.map_err(|unread| unread.reason)?;
        let mut found = Vec::new();
        let mut token = String::new();
        loop {
            let mut path = collection(&kind.group, &served, namespace);
            let _ = write!(path, "?limit={PAGE}");
            if !token.is_empty() {
                let _ = write!(path, "&continue={}", utf8_percent_encode(&token, SEGMENT));
            }
            let text = self.fetch(path, ONLY_METADATA_LIST).await;
            let text = text.map_err(|error| format!("listing {kind}: {}", in_words(&error)))?;
            let page: List =
                serde_json::from_str(&text).map_err(|_| format!("listing {kind}: the answer makes no sense"))?;
            found.extend(page.items.into_iter().map(|Item { metadata }| KnownObject {
                object: ObjectRef {
                    kind: kind.clone(),
                    namespace: metadata.namespace.clone(),
                    name: metadata.name.clone(),
                },
                meta: Arc::new(metadata),
            }));
            token = page.metadata.token;
            if token.is_empty() {
                return Ok(found);
            }
        }
    }

    async fn reply(&self, question: &Question) -> Answer {
        match question {
            Question::Metadata(object) => Answer::Metadata(self.reading(self.metadata(object).await)),
            Question::Object(object) => Answer::Object(self.reading(self.object(object).await)),
            Question::List(list) => Answer::List(self.reading(self.list(list).await.map(Some))),
            Question::Access(access) => Answer::Access(self.reading(self.access(access).await.map(Some))),
        }
    }

    /// Counts how a read ended and puts it into the words of the core.
    fn reading<T>(&self, result: Result<Option<T>, Unread>) -> Reading<T> {
        let (outcome, reading) = match result {
            Ok(Some(value)) => (Lookup::Found, Reading::Found(value)),
            Ok(None) => (Lookup::NotFound, Reading::NotFound),
            Err(Unread { outcome: outcome @ (Lookup::Forbidden | Lookup::UnknownKind), reason }) => {
                (outcome, Reading::Forbidden(reason))
            }
            Err(Unread { outcome, reason }) => (outcome, Reading::Unreadable(reason)),
        };
        self.metrics.count_lookup(outcome);
        reading
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Arc<ObjectMeta>>, Unread> {
        #[derive(Deserialize)]
        struct Partial {
            #[serde(default)]
            metadata: ObjectMeta,
        }
        let Some(text) = self.get(object, ONLY_METADATA).await? else { return Ok(None) };
        let Partial { metadata } = serde_json::from_str(&text).map_err(|_| Unread::nonsense(object))?;
        Ok(Some(Arc::new(metadata)))
    }

    async fn object(&self, object: &ObjectRef) -> Result<Option<Arc<RawValue>>, Unread> {
        let Some(text) = self.get(object, "application/json").await? else { return Ok(None) };
        let raw = RawValue::from_string(text).map_err(|_| Unread::nonsense(object))?;
        Ok(Some(raw.into()))
    }

    /// One object; `None` if it does not exist.
    async fn get(&self, object: &ObjectRef, accept: &'static str) -> Result<Option<String>, Unread> {
        let served = self.served(&object.kind).await?;
        if object.name.is_empty() || (served.namespaced && object.namespace.is_empty()) {
            let reason = format!("{object} cannot be read: its name or its namespace is not known");
            return Err(Unread { outcome: Lookup::Error, reason });
        }
        let mut path = collection(&object.kind.group, &served, &object.namespace);
        let _ = write!(path, "/{}", utf8_percent_encode(&object.name, SEGMENT));
        match self.fetch(path, accept).await {
            Ok(text) => Ok(Some(text)),
            Err(Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Ok(None),
            Err(error) => Err(Unread::from(&error, &format!("reading {object}"))),
        }
    }

    async fn list(&self, question: &ListQuestion) -> Result<Listed, Unread> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            metadata: ListMeta,
            items: Option<Vec<Box<RawValue>>>,
        }
        let kind = question.what.kind();
        let served = self.served(&kind).await?;
        let mut path = collection(&kind.group, &served, &question.namespace);
        let _ = write!(path, "?limit={}", question.limit.max(1));
        if let Some((field, value)) = question.what.selection() {
            let _ = write!(path, "&fieldSelector={}", utf8_percent_encode(&format!("{field}={value}"), SEGMENT));
        }
        let what = format!("listing {kind}");
        let text = self.fetch(path, "application/json").await.map_err(|error| Unread::from(&error, &what))?;
        let List { metadata, items } = serde_json::from_str(&text)
            .map_err(|_| Unread { outcome: Lookup::Error, reason: format!("{what}: the answer makes no sense") })?;
        Ok(Listed { items: items.unwrap_or_default().into(), complete: metadata.token.is_empty() })
    }

    /// One SubjectAccessReview, with the user exactly as the request carried it.
    async fn access(&self, question: &AccessQuestion) -> Result<bool, Unread> {
        let user = &question.user;
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: some(&user.username),
                uid: some(&user.uid),
                groups: Some(user.groups.clone()),
                extra: Some(user.extra.clone()),
                resource_attributes: Some(ResourceAttributes {
                    verb: some(&question.verb),
                    group: some(&question.group),
                    resource: some(&question.resource),
                    name: some(&question.name),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let what = format!("asking whether {} may {} {}", user.username, question.verb, question.resource);
        let answer = reviews.create(&PostParams::default(), &review).await;
        let status = answer.map_err(|error| Unread::from(&error, &what))?.status.unwrap_or_default();
        match status.evaluation_error {
            // An authorizer that failed may have been the one that allows.
            Some(error) if !status.allowed && !error.is_empty() => {
                Err(Unread { outcome: Lookup::Error, reason: format!("{what} failed: {error}") })
            }
            _ => Ok(status.allowed),
        }
    }

    async fn served(&self, kind: &GroupKind) -> Result<Served, Unread> {
        let found = self.kinds.find(&self.client, kind).await;
        found.map_err(|error| Unread::from(&error, "asking which kinds there are"))?.ok_or_else(|| Unread {
            outcome: Lookup::UnknownKind,
            reason: format!("the API server serves no kind {kind}"),
        })
    }

    async fn fetch(&self, path: String, accept: &'static str) -> Result<String, Error> {
        let request = axum::http::Request::get(path)
            .header(axum::http::header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(Error::HttpError)?;
        self.client.request_text(request).await
    }
}

impl Unread {
    fn from(error: &Error, what: &str) -> Self {
        let outcome = match error {
            Error::Api(status) if status.code == 403 => Lookup::Forbidden,
            _ => Lookup::Error,
        };
        Self { outcome, reason: format!("{what}: {}", in_words(error)) }
    }

    fn nonsense(object: &ObjectRef) -> Self {
        Self { outcome: Lookup::Error, reason: format!("reading {object}: the answer makes no sense") }
    }
}

/// Path of a collection.
fn collection(group: &str, served: &Served, namespace: &str) -> String {
    let mut path =
        if group.is_empty() { format!("/api/{}", served.version) } else { format!("/apis/{group}/{}", served.version) };
    if served.namespaced && !namespace.is_empty() {
        let _ = write!(path, "/namespaces/{}", utf8_percent_encode(namespace, SEGMENT));
    }
    let _ = write!(path, "/{}", served.plural);
    path
}

impl Source for LiveSource {
    async fn answer(&self, questions: &[Question], time_left: Duration) -> Vec<(Question, Answer)> {
        let deadline = Instant::now() + time_left;
        let asked: Vec<Question> = questions.to_vec();
        let total = asked.len();
        let mut replies = stream::iter(asked)
            .map(|question| async move {
                let answer = self.reply(&question).await;
                (question, answer)
            })
            .buffer_unordered(self.at_a_time);
        let mut answers = Vec::with_capacity(total);
        while let Ok(Some(answer)) = timeout_at(deadline, replies.next()).await {
            answers.push(answer);
        }
        for _ in answers.len()..total {
            self.metrics.count_lookup(Lookup::Timeout);
        }
        answers
    }
}
