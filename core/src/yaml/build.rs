//! What is made of the parts of a document.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::{Place, scalar::Scalar};

/// What a mapping holds: keys, where they stand, and values. A key without a place was merged into it.
pub type Entries<N> = Vec<(String, Place, N)>;

/// Makes something of the parts of a document, the innermost first.
pub trait Build {
    /// A part.
    type Node: Clone;

    /// A scalar.
    fn scalar(&self, text: Cow<'_, str>, scalar: Scalar, place: Place) -> Self::Node;

    /// A list.
    fn list(&self, items: Vec<Self::Node>, place: Place) -> Self::Node;

    /// A mapping. Of a key that is there several times the last counts.
    fn mapping(&self, entries: Entries<Self::Node>, place: Place) -> Self::Node;

    /// The part that an alias at `place` stands for.
    fn repeated(&self, node: Self::Node, place: Place) -> Self::Node;

    /// The entries of a mapping, to be merged into another; what it is instead, if it is none.
    ///
    /// # Errors
    /// With the node if it is no mapping.
    fn entries(&self, node: Self::Node) -> Result<Entries<Self::Node>, Self::Node>;

    /// A scalar as a key of JSON; `None` if it is none.
    fn key(&self, node: Self::Node) -> Option<String>;

    /// The items of a list; `None` if it is none.
    fn items(&self, node: Self::Node) -> Option<Vec<Self::Node>>;
}

/// Makes JSON.
#[derive(Clone, Copy, Debug)]
pub struct Values;

impl Build for Values {
    type Node = Value;

    fn scalar(&self, text: Cow<'_, str>, scalar: Scalar, _: Place) -> Value {
        match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => value.into(),
            Scalar::Int(value) => value.into(),
            Scalar::Unsigned(value) => value.into(),
            Scalar::Float(value) => float(value),
            Scalar::Text => text.into_owned().into(),
        }
    }

    fn list(&self, items: Vec<Value>, _: Place) -> Value {
        Value::Array(items)
    }

    fn mapping(&self, entries: Entries<Value>, _: Place) -> Value {
        Value::Object(entries.into_iter().map(|(key, _, value)| (key, value)).collect::<Map<_, _>>())
    }

    fn repeated(&self, node: Value, _: Place) -> Value {
        node
    }

    fn entries(&self, node: Value) -> Result<Entries<Value>, Value> {
        match node {
            Value::Object(entries) => {
                Ok(entries.into_iter().map(|(key, value)| (key, Place::default(), value)).collect())
            }
            other => Err(other),
        }
    }

    fn key(&self, node: Value) -> Option<String> {
        match node {
            Value::String(text) => Some(text),
            Value::Bool(_) | Value::Number(_) => Some(node.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn items(&self, node: Value) -> Option<Vec<Value>> {
        if let Value::Array(items) = node { Some(items) } else { None }
    }
}

/// Go writes 1000.0 as `1000`, and what reads that JSON takes it for a whole number.
fn float(value: f64) -> Value {
    if value.fract() == 0.0
        && let Ok(whole) = format!("{value}").parse::<i64>()
    {
        return whole.into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
