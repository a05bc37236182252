//! An `AdmissionReview` as the API server sends it, decoded into typed, mostly borrowed parts.
//!
//! Objects stay raw JSON: only their metadata is decoded at once, and a rule decodes of the rest what it needs. kube's
//! `AdmissionReview<DynamicObject>` buffers every object twice and costs eight to ten times as much.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::object::{GroupKind, ObjectMeta, ObjectRef, null_to_default};

/// What the user is doing. PATCH and apply arrive as `UPDATE` (or `CREATE`); a collection delete as one `DELETE` an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object to be deleted.
    Delete,
    /// A connection to a subresource; never judged.
    Connect,
}

impl Operation {
    /// As it is written in a review and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The user after impersonation; whom an Argo CD user or a Git author really is, the API server does not know.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct UserInfo {
    /// User name.
    #[serde(deserialize_with = "null_to_default")]
    pub username: String,
    /// UID of the user.
    #[serde(deserialize_with = "null_to_default")]
    pub uid: String,
    /// Groups.
    #[serde(deserialize_with = "null_to_default")]
    pub groups: Vec<String>,
    /// Further attributes the authenticator attached.
    #[serde(deserialize_with = "null_to_default")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Group and plural of the resource as sent to us.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural, lower case.
    pub resource: String,
}

/// The `options` that matter, of whichever operation.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteOptions {
    /// `Foreground`, `Background` or `Orphan`.
    #[serde(deserialize_with = "null_to_default")]
    pub propagation_policy: String,
    /// Older spelling of `Orphan`.
    #[serde(deserialize_with = "null_to_default")]
    pub orphan_dependents: bool,
}

impl DeleteOptions {
    /// Whether dependents are left behind.
    pub fn orphans(&self) -> bool {
        self.propagation_policy == "Orphan" || self.orphan_dependents
    }
}

/// An object in a review: its metadata decoded, the rest raw.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// The whole object.
    pub raw: &'a RawValue,
    /// Its metadata.
    pub meta: ObjectMeta,
}

impl<'a> Object<'a> {
    /// Decodes the metadata of `raw`.
    ///
    /// # Errors
    /// When `raw` is no object or its metadata has another shape than Kubernetes gives it.
    pub fn new(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        Ok(Self { raw, meta: ObjectMeta::of(raw.get())? })
    }

    /// Decodes the parts of the object that `T` names.
    ///
    /// # Errors
    /// When the object does not have the shape of `T`.
    pub fn decode<T: Deserialize<'a>>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.raw.get())
    }
}

/// One admission request.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// UID of this call; echoed in the answer.
    pub uid: String,
    /// What is acted on. Name and namespace come from the object where there is one: a collection delete carries no
    /// name, and for a Namespace the request's own `namespace` is the Namespace's name.
    pub target: ObjectRef,
    /// Resource as sent to us.
    pub resource: Resource,
    /// Subresource, empty for the object itself.
    pub sub_resource: String,
    /// What the user is doing.
    pub operation: Operation,
    /// Who does it.
    pub user: UserInfo,
    /// The new object; absent on DELETE.
    pub object: Option<Object<'a>>,
    /// The stored object; absent on CREATE.
    pub old_object: Option<Object<'a>>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Options of the operation.
    pub options: DeleteOptions,
}

impl Request<'_> {
    /// Metadata of the stored object, or of the new one on CREATE.
    pub fn meta(&self) -> Option<&ObjectMeta> {
        self.old_object.as_ref().or(self.object.as_ref()).map(|object| &object.meta)
    }
}

/// Why a body could not be read as a review. The reasons go into the log and quote nothing of the body.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The body is no `AdmissionReview`; there is no uid to answer to.
    #[error("the body is not an admission.k8s.io/v1 AdmissionReview: {0}")]
    NotAReview(String),
    /// The uid is known, the rest does not make sense; answer to that uid.
    #[error("the AdmissionReview cannot be judged: {reason}")]
    Malformed {
        /// UID to answer to.
        uid: String,
        /// Operation as written, where it could be read.
        operation: Option<Operation>,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Deserialize)]
struct Envelope<R> {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    request: R,
}

impl<R> Envelope<R> {
    fn check(self) -> Result<R, DecodeError> {
        if self.kind == "AdmissionReview" && self.api_version == "admission.k8s.io/v1" {
            Ok(self.request)
        } else {
            Err(DecodeError::NotAReview("its kind or apiVersion is another".to_owned()))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    uid: String,
    kind: GroupKindWire,
    #[serde(default)]
    resource: Resource,
    #[serde(default, deserialize_with = "null_to_default")]
    sub_resource: String,
    #[serde(default, deserialize_with = "null_to_default")]
    name: String,
    #[serde(default, deserialize_with = "null_to_default")]
    namespace: String,
    operation: Operation,
    #[serde(default)]
    user_info: UserInfo,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    old_object: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "null_to_default")]
    dry_run: bool,
    #[serde(default, deserialize_with = "null_to_default")]
    options: DeleteOptions,
}

#[derive(Deserialize)]
struct GroupKindWire {
    #[serde(default)]
    group: String,
    kind: String,
}

/// Decodes a body into a request.
///
/// # Errors
/// [`DecodeError::NotAReview`] where no uid can be found, [`DecodeError::Malformed`] where one can.
pub fn decode(body: &[u8]) -> Result<Request<'_>, DecodeError> {
    // The usual review is decoded in one pass; a second one only looks for the uid of a review that is malformed.
    let wire = match serde_json::from_slice::<Envelope<Wire<'_>>>(body) {
        Ok(envelope) => envelope.check()?,
        Err(error) => {
            let envelope: Envelope<&RawValue> =
                serde_json::from_slice(body).map_err(|error| DecodeError::NotAReview(unquoted(&error)))?;
            return Err(salvage(envelope.check()?.get(), &unquoted(&error)));
        }
    };
    if wire.uid.is_empty() {
        return Err(DecodeError::NotAReview("request.uid is empty".to_owned()));
    }
    let malformed = |what: &str, error: &serde_json::Error| DecodeError::Malformed {
        uid: wire.uid.clone(),
        operation: Some(wire.operation),
        reason: format!("{what}: {}", unquoted(error)),
    };
    let object = wire.object.map(Object::new).transpose().map_err(|error| malformed("object", &error))?;
    let old_object = wire.old_object.map(Object::new).transpose().map_err(|error| malformed("oldObject", &error))?;
    // An object without a name is none: one that is to be deleted is then looked up, as if it had not been sent.
    let nameless = |object: &Object<'_>| object.meta.name.is_empty() && !wire.name.is_empty();
    let old_object = old_object.filter(|object| wire.operation != Operation::Delete || !nameless(object));
    let target = target(&wire, object.as_ref().or(old_object.as_ref()).map(|object| &object.meta));
    Ok(Request {
        uid: wire.uid,
        target,
        resource: wire.resource,
        sub_resource: wire.sub_resource,
        operation: wire.operation,
        user: wire.user_info,
        object,
        old_object,
        dry_run: wire.dry_run,
        options: wire.options,
    })
}

/// What is wrong, without what was written there: it may be a piece of a Secret. serde's words for what it expected are
/// those of the types here.
fn unquoted(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!("at line {} column {}", error.line(), error.column());
    if !error.is_data() {
        return format!("{} {place}", if error.is_eof() { "it ends too soon" } else { "it is no JSON" });
    }
    match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None if text.starts_with("missing field") || text.starts_with("duplicate field") => text,
        None => format!("a value does not fit {place}"),
    }
}

fn target(wire: &Wire<'_>, meta: Option<&ObjectMeta>) -> ObjectRef {
    let kind = GroupKind { group: wire.kind.group.clone(), kind: wire.kind.kind.clone() };
    let (namespace, name) = match meta {
        Some(meta) => {
            let or = |own: &String, sent: &String| if own.is_empty() { sent.clone() } else { own.clone() };
            // For a Namespace the request carries the Namespace's own name as its namespace.
            let namespace = if kind.is("", "Namespace") { String::new() } else { or(&meta.namespace, &wire.namespace) };
            (namespace, or(&meta.name, &wire.name))
        }
        None if kind.is("", "Namespace") => (String::new(), wire.name.clone()),
        None => (wire.namespace.clone(), wire.name.clone()),
    };
    ObjectRef { kind, namespace, name }
}

/// Finds the uid in a request that is otherwise unreadable.
fn salvage(request: &str, reason: &str) -> DecodeError {
    #[derive(Deserialize)]
    struct OnlyUid {
        #[serde(default)]
        uid: String,
    }
    match serde_json::from_str::<OnlyUid>(request) {
        Ok(OnlyUid { uid }) if !uid.is_empty() => {
            #[derive(Deserialize)]
            struct OnlyOperation {
                operation: Operation,
            }
            let operation = serde_json::from_str::<OnlyOperation>(request).ok().map(|found| found.operation);
            DecodeError::Malformed { uid, operation, reason: reason.to_owned() }
        }
        _ => DecodeError::NotAReview(reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(request: &str) -> String {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request}}}"#)
    }

    #[test]
    fn name_comes_from_the_object_of_a_collection_delete() {
        let body = review(
            r#"{"uid":"1","kind":{"group":"","version":"v1","kind":"Role"},"operation":"DELETE","namespace":"shop",
                "object":null,"oldObject":{"metadata":{"name":"api","namespace":"shop","labels":null}},"options":null}"#,
        );
        let request = decode(body.as_bytes()).unwrap();
        assert_eq!(request.target, ObjectRef::new("", "Role", "shop", "api"));
    }

    #[test]
    fn what_the_object_does_not_say_of_itself_the_request_says() {
        let of = |object: &str| {
            review(&format!(
                r#"{{"uid":"1","kind":{{"group":"","version":"v1","kind":"Role"}},"operation":"DELETE","name":"api",
                    "namespace":"shop","object":null,"oldObject":{object},"options":null}}"#
            ))
        };
        for (object, sent) in [(r#"{"metadata":{"name":"api"}}"#, true), ("{}", false), (r#"{"metadata":{}}"#, false)] {
            let body = of(object);
            let request = decode(body.as_bytes()).unwrap();
            assert_eq!(request.target, ObjectRef::new("", "Role", "shop", "api"), "{object}");
            assert_eq!(request.old_object.is_some(), sent, "{object}");
        }
    }

    #[test]
    fn namespace_has_no_namespace() {
        let body = review(
            r#"{"uid":"1","kind":{"group":"","version":"v1","kind":"Namespace"},"operation":"DELETE","name":"shop","namespace":"shop"}"#,
        );
        assert_eq!(decode(body.as_bytes()).unwrap().target, ObjectRef::namespace("shop"));
    }

    #[test]
    fn uid_survives_a_malformed_request() {
        let body = review(r#"{"uid":"abc","operation":"DELETE","kind":7}"#);
        match decode(body.as_bytes()) {
            Err(DecodeError::Malformed { uid, operation, .. }) => {
                assert_eq!((uid.as_str(), operation), ("abc", Some(Operation::Delete)));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reasons_quote_nothing_of_the_body() {
        let object = |object: &str| {
            review(&format!(
                r#"{{"uid":"1","kind":{{"kind":"Secret"}},"operation":"DELETE","oldObject":{{"metadata":{object}}}}}"#
            ))
        };
        for (body, reason) in [
            (object(r#""hunter2, expected nothing""#), "oldObject: expected struct"),
            (object(r#"{"labels":"hunter2"}"#), "oldObject: expected"),
            (review(r#"{"uid":"1","operation":"DELETE","kind":"hunter2"}"#), "expected struct"),
            (review(r#"{"uid":"1","operation":"DELETE"}"#), "missing field `kind` at line 1"),
            ("{}".to_owned(), "missing field `apiVersion`"),
            (r#"{"hunter2"#.to_owned(), "it ends too soon at line 1 column 9"),
            ("hunter2".to_owned(), "it is no JSON at line 1"),
            (r#"{"apiVersion":"hunter2","kind":"Pod","request":{}}"#.to_owned(), "its kind or apiVersion is another"),
        ] {
            let said = decode(body.as_bytes()).unwrap_err().to_string();
            assert!(said.contains(reason) && !said.contains("hunter2"), "{body}: {said}");
        }
    }

    #[test]
    fn other_documents_are_no_review() {
        for body in [
            "",
            "{}",
            "[]",
            r#"{"apiVersion":"v1","kind":"Pod","request":{}}"#,
            &review("{}"),
            &review(r#"{"uid":""}"#),
        ] {
            assert!(matches!(decode(body.as_bytes()), Err(DecodeError::NotAReview(_))), "{body}");
        }
    }
}
