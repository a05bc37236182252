//! The review that the API server would send for the DELETE of a stored object.

use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::UserInfo;
use crate::object::ObjectRef;

/// A request whose `oldObject` is kept as it was read: a large object is not decoded twice.
#[derive(Serialize)]
struct DeleteRequest<'a> {
    #[serde(flatten)]
    rest: serde_json::Value,
    #[serde(rename = "oldObject")]
    old_object: &'a RawValue,
}

/// The AdmissionReview of a dry-run DELETE of `object` by `user`. `raw` is the JSON of the object.
///
/// # Errors
/// When `raw` is not valid JSON.
pub fn delete_review(object: &ObjectRef, raw: &str, user: &UserInfo) -> serde_json::Result<Vec<u8>> {
    let old_object: &RawValue = serde_json::from_str(raw)?;
    let kind = json!({"group": object.kind.group, "version": "v1", "kind": object.kind.kind});
    let rest = json!({
        "uid": "plan", "kind": kind, "operation": "DELETE", "name": object.name, "namespace": object.namespace,
        "userInfo": user, "object": null, "dryRun": true,
    });
    let request = serde_json::value::to_raw_value(&DeleteRequest { rest, old_object })?;
    serde_json::to_vec(&json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}))
}
