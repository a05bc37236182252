//! The answer to a review.

use std::collections::BTreeMap;

use serde::Serialize;

/// An answer. Allowed answers carry no message, denied ones always do.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Response {
    /// Whether the request may go on.
    pub allowed: bool,
    /// Why not, for a person; empty when allowed.
    pub message: String,
    /// Lines for the client, without control characters.
    pub warnings: Vec<String>,
    /// Keys and values for the cluster's own audit log.
    pub audit_annotations: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: WireResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireResponse<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<WireStatus<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct WireStatus<'a> {
    code: u16,
    reason: &'static str,
    message: &'a str,
}

/// Encodes an answer to the call `uid`. Denials are 403 Forbidden: other codes make clients retry (409, 429), believe
/// the object gone (404) or hide the message.
pub fn encode(uid: &str, response: &Response) -> Vec<u8> {
    let status = (!response.allowed).then(|| WireStatus { code: 403, reason: "Forbidden", message: &response.message });
    let wire = Wire {
        api_version: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: WireResponse {
            uid,
            allowed: response.allowed,
            status,
            warnings: &response.warnings,
            audit_annotations: &response.audit_annotations,
        },
    };
    // Strings and maps of strings always serialize.
    serde_json::to_vec(&wire).unwrap_or_default()
}
