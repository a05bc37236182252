//! Changes to annotations that mend a finding, as patches of the object.

use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, jsonptr::PointerBuf};
use serde_json::{Map, Value};

use crate::{
    argo::hook::{DELETE_POLICY, HELM_DELETE_POLICY, HELM_HOOK, HOOK},
    decision::Fix,
    object::ObjectMeta,
};

fn path<'a>(tokens: impl IntoIterator<Item = &'a str>) -> PointerBuf {
    PointerBuf::from_tokens(tokens)
}

/// Writes annotations, whether they were there or not.
pub fn annotate(meta: &ObjectMeta, values: &[(&str, String)], description: impl Into<String>) -> Fix {
    let add = |path, value| PatchOperation::Add(AddOperation { path, value });
    let operations = if meta.annotations.is_empty() {
        // An `add` below something that is not there would fail.
        let all: Map<String, Value> =
            values.iter().map(|(key, value)| ((*key).to_owned(), value.as_str().into())).collect();
        vec![add(path(["metadata", "annotations"]), all.into())]
    } else {
        values.iter().map(|(key, value)| add(path(["metadata", "annotations", key]), value.as_str().into())).collect()
    };
    Fix { description: description.into(), patch: Patch(operations) }
}

/// The whole number that someone who wrote a fraction, or spaces around a number, most likely meant.
pub fn rounded(text: &str) -> Option<String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && number.abs() < 1e9)?;
    // Without the sign of a zero.
    Some(format!("{:.0}", number.ceil() + 0.0))
}

/// Writes one field below the object's spec.
pub fn set(field: &[&str], value: impl Into<Value>, description: impl Into<String>) -> Fix {
    let path = path(field.iter().copied());
    let operation = PatchOperation::Add(AddOperation { path, value: value.into() });
    Fix { description: description.into(), patch: Patch(vec![operation]) }
}

/// Removes annotations that are there.
pub fn without(meta: &ObjectMeta, keys: &[&str], description: impl Into<String>) -> Fix {
    let there = keys.iter().filter(|key| meta.annotation(key).is_some());
    let operations =
        there.map(|key| PatchOperation::Remove(RemoveOperation { path: path(["metadata", "annotations", key]) }));
    Fix { description: description.into(), patch: Patch(operations.collect()) }
}

/// Makes a hook an ordinary object.
pub fn no_hook(meta: &ObjectMeta) -> Fix {
    without(meta, &[HOOK, HELM_HOOK, DELETE_POLICY, HELM_DELETE_POLICY], "make it an ordinary object, not a hook")
}
