//! Reading objects as they are written.

use serde_json::Value;

/// The text at a JSON pointer; empty where there is none.
pub fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a JSON pointer; empty where there is none.
pub fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether `true` stands at a JSON pointer.
pub fn truth(value: &Value, path: &str) -> bool {
    value.pointer(path).and_then(Value::as_bool).unwrap_or(false)
}

/// What stands at a JSON pointer, where that is something.
pub fn something<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    value.pointer(path).filter(|found| match found {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    })
}

/// An annotation; empty where there is none.
pub fn annotation<'v>(object: &'v Value, key: &str) -> &'v str {
    object["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

/// A label; empty where there is none.
pub fn label<'v>(object: &'v Value, key: &str) -> &'v str {
    object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

/// Whether the deletion of an object has begun.
pub fn terminating(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The group in an `apiVersion`.
pub fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// Whether a pattern with stars matches a text.
pub fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text
            .strip_prefix(head)
            .is_some_and(|rest| (0..=rest.len()).any(|at| rest.is_char_boundary(at) && glob(tail, &rest[at..]))),
    }
}
