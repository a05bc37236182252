//! What an object tells of its own end, beside its metadata: the finalizers of a Namespace's spec, and conditions.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::object::null_to_default;

/// The parts of an object's spec and status by which its deletion is understood. What an object has not, is empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Nested")]
pub struct Body {
    /// `spec.finalizers`; only Namespaces have them.
    pub finalizers: Vec<String>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// A condition of a status.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Type.
    #[serde(rename = "type", deserialize_with = "null_to_default")]
    pub kind: String,
    /// `True`, `False` or `Unknown`; Argo CD's conditions have none.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// One word.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence.
    #[serde(deserialize_with = "null_to_default")]
    pub message: String,
}

impl Body {
    /// Reads `raw`, the JSON of an object. Empty where spec or status have another shape, as those of a custom resource may.
    pub fn of(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_default()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Nested {
    #[serde(deserialize_with = "null_to_default")]
    spec: Spec,
    #[serde(deserialize_with = "null_to_default")]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "null_to_default")]
    finalizers: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "null_to_default")]
    conditions: Vec<Condition>,
}

impl From<Nested> for Body {
    fn from(nested: Nested) -> Self {
        Self { finalizers: nested.spec.finalizers, conditions: nested.status.conditions }
    }
}
