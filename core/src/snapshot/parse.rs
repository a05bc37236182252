//! Reading texts of Kubernetes objects.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Head, Snapshot, Stored, Workers, identity};
use crate::{
    argo::{Application, partial},
    lint::RECURSIVE_ALIAS,
    object::{ARGO_GROUP, ObjectRef, group_of},
};

/// A document that is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct DocumentError {
    /// File and document.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

/// An Application, or what is wrong with it.
pub(super) fn decode_application<'a>(raw: &'a str, identity: &ObjectRef) -> Result<Application<'a>, String> {
    serde_json::from_str(raw).map_err(|error| format!("{identity} cannot be read: {error}"))
}

/// Adds every object of one text.
pub(super) fn add(
    snapshot: &mut Snapshot,
    name: &str,
    text: String,
    workers: &impl Workers,
) -> Result<(), DocumentError> {
    if text.trim_start().starts_with('{') {
        return add_json(snapshot, name, text, workers);
    }
    let read = |strict_booleans| {
        // What is wrong is said in one line, with its place.
        let options = serde_saphyr::options! { budget: None, with_snippet: false, strict_booleans: strict_booleans };
        serde_saphyr::from_multiple_with_options::<serde_json::Value>(&text, options)
            .map_err(|error| DocumentError { place: name.to_owned(), problem: in_words(&error) })
    };
    let mut documents = read(false)?;
    let unreadable = |documents: &[serde_json::Value]| documents.iter().filter(|one| !is_readable(one)).count();
    let faults = unreadable(&documents);
    if faults > 0 {
        // Kubernetes takes a bare `n` or `y` for a boolean, and its own tools quote it. Others write a name so.
        let strict = read(true)?;
        if unreadable(&strict) < faults {
            documents = strict;
        }
    }
    for (index, document) in documents.into_iter().enumerate() {
        if !document.is_null() {
            add_json(snapshot, &format!("{name} (document {})", index + 1), document.to_string(), workers)?;
        }
    }
    Ok(())
}

/// What is wrong with a YAML text, in one line.
fn in_words(error: &serde_saphyr::Error) -> String {
    // The parser's own words for it are about Rust.
    error.to_string().replace("recursive references require weak recursion types", RECURSIVE_ALIAS)
}

/// Whether a document that is an object of its own has the shape of its kind, as far as anybody reads it.
fn is_readable(document: &serde_json::Value) -> bool {
    let text = document.to_string();
    document.is_null()
        || document.get("items").is_some()
        || serde_json::from_str::<Head>(&text)
            .is_ok_and(|head| head.kind != "Application" || decode_application(&text, &identity(&head)).is_ok())
}

#[derive(Deserialize)]
struct List<'a> {
    kind: String,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

fn add_json(snapshot: &mut Snapshot, place: &str, text: String, workers: &impl Workers) -> Result<(), DocumentError> {
    let bad = |problem: String| DocumentError { place: place.to_owned(), problem };
    let list: List<'_> =
        serde_json::from_str(&text).map_err(|error| bad(format!("it is no Kubernetes object: {error}")))?;
    let number = snapshot.texts.len();
    let mut found = Vec::new();
    match &list.items {
        Some(items) if list.kind.ends_with("List") => {
            let described = workers.map(items, |item| stored(&text, item.get(), number));
            for (index, stored) in described.into_iter().enumerate() {
                found.push(stored.map_err(|problem| bad(format!("items[{index}]: {problem}")))?);
            }
        }
        // Nothing is listed.
        None if list.kind == "List" => {}
        _ => found.push(stored(&text, text.trim(), number).map_err(bad)?),
    }
    for object in found {
        snapshot.push(object);
    }
    snapshot.texts.push(text);
    Ok(())
}

/// Adds one object, or replaces the one of the same identity; a text that held nothing else is dropped.
pub(super) fn put(snapshot: &mut Snapshot, place: &str, text: String) -> Result<(), DocumentError> {
    let bad = |problem: String| DocumentError { place: place.to_owned(), problem };
    let mut object = stored(&text, text.trim(), snapshot.texts.len()).map_err(bad)?;
    let Some(at) = snapshot.by_identity.get(&object.identity).copied() else {
        snapshot.push(object);
        snapshot.texts.push(text);
        return Ok(());
    };
    let old = &snapshot.objects[at];
    let alone = old.end - old.start == snapshot.texts[old.text].trim().len();
    if alone {
        object.text = old.text;
        snapshot.texts[old.text] = text;
    } else {
        snapshot.texts.push(text);
    }
    snapshot.objects[at] = object;
    Ok(())
}

/// Describes the object `raw`, which is a part of `text`.
fn stored(text: &str, raw: &str, number: usize) -> Result<Stored, String> {
    let head: Head =
        serde_json::from_str(raw).or_else(|error| odd(raw).ok_or(format!("it is no Kubernetes object: {error}")))?;
    let identity = identity(&head);
    let start = raw.as_ptr() as usize - text.as_ptr() as usize;
    Ok(Stored { identity, meta: Arc::new(head.metadata), text: number, start, end: start + raw.len() })
}

/// The head of an Application whose metadata have another shape than Kubernetes gives them: it still claims what it lists.
/// `None` for anything else.
fn odd(raw: &str) -> Option<Head> {
    let value: serde_json::Value = serde_json::from_str(raw).ok()?;
    let text = |pointer: &str| value.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
    let (api_version, kind) = (text("/apiVersion")?, text("/kind")?);
    let name = text("/metadata/name").filter(|_| kind == "Application" && group_of(&api_version) == ARGO_GROUP)?;
    let metadata = partial(&text("/metadata/namespace").unwrap_or_default(), &name, raw).metadata;
    Some(Head { api_version, kind, metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_letter_is_a_name_where_a_name_is_wanted() {
        let application = "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a, namespace: argocd}, \
                           spec: {destination: {namespace: n}}}";
        for text in ["{apiVersion: v1, kind: Namespace, metadata: {name: n}}", application] {
            let snapshot = Snapshot::parse("test", format!("---\n{text}"));
            assert!(snapshot.is_ok(), "{text}: {:?}", snapshot.err());
        }
        // Where nothing else makes sense, `yes` is what it is for Kubernetes.
        let spelt = application.replace("destination", "syncPolicy: {automated: {prune: yes}}, destination");
        assert!(Snapshot::parse("test", format!("---\n{}", spelt.replace("namespace: n}", "namespace: m}"))).is_ok());
    }

    #[test]
    fn application_that_cannot_be_decoded_is_kept_beside_the_others() {
        let good = "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: good, namespace: argocd}, \
                    spec: {syncPolicy: {automated: {prune: yes}}}}";
        for odd in ["spec: {destination: {server: [1]}}", "status: {resources: 7}", "metadata: {name: odd, labels: 5}"]
        {
            let odd =
                if odd.starts_with("metadata") { odd.to_owned() } else { format!("metadata: {{name: odd}}, {odd}") };
            let text = format!("---\n{good}\n---\n{{apiVersion: argoproj.io/v1alpha1, kind: Application, {odd}}}");
            let snapshot = Snapshot::parse("test", text).unwrap();
            let of = |namespace, name| snapshot.fault(&ObjectRef::application(namespace, name));
            assert_eq!(of("argocd", "good"), None, "what is wrong with another does not change how it is read: {odd}");
            assert!(of("", "odd").is_some_and(|fault| fault.contains("Application odd cannot be read")), "{odd}");
        }
        let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: odd, labels: 5}}";
        assert!(Snapshot::parse("test", format!("---\n{role}")).is_err(), "anything else is a mistake in the file");
    }

    #[test]
    fn list_of_nothing_holds_nothing() {
        let snapshot = Snapshot::parse("test", "apiVersion: v1\nkind: List\nitems:\n".to_owned()).unwrap();
        assert_eq!(snapshot.objects().count(), 0);
    }

    #[test]
    fn alias_that_stands_in_itself_is_said_in_plain_words() {
        let error = Snapshot::parse("test", "kind: A\nmetadata: &a\n  x: *a\n".to_owned()).err().unwrap().to_string();
        assert!(error.contains("an alias stands inside the very part that it repeats"), "{error}");
    }

    #[test]
    fn what_is_no_yaml_is_said_in_one_line() {
        let error = Snapshot::parse("test", "a: [1".to_owned()).err().unwrap().to_string();
        assert!(error.contains("line 1") && !error.contains('\n'), "{error}");
    }
}
