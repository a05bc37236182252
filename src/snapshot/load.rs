//! Reading snapshot files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Head, Snapshot, Stored, identity};
use crate::{
    argo::Application,
    object::{ARGO_GROUP, ObjectRef},
};

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A document is not what it should be.
    #[error("{place}: {problem}")]
    Document {
        /// File and document.
        place: String,
        /// What is wrong.
        problem: String,
    },
}

/// Reads files. Applications are not decoded yet: whoever builds an inventory decodes them anyway.
pub(super) fn read(path: &Path) -> Result<Snapshot, LoadError> {
    let mut snapshot = Snapshot::default();
    let files = files(path)?;
    if files.is_empty() {
        // A mistyped path must not pass for a cluster in which nothing is wrong.
        let problem = "there is no .yaml, .yml or .json file in it".to_owned();
        return Err(LoadError::Document { place: path.display().to_string(), problem });
    }
    for file in files {
        let text = fs::read_to_string(&file).map_err(|source| LoadError::Io { path: file.clone(), source })?;
        add(&mut snapshot, &file.display().to_string(), text)?;
    }
    Ok(snapshot)
}

/// Decodes every Application, so that none is left out later because it cannot be read.
pub(super) fn check(snapshot: &Snapshot, place: &str) -> Result<(), LoadError> {
    snapshot.of_kind(ARGO_GROUP, "Application").try_for_each(|stored| {
        decode_application(snapshot.raw(stored), &stored.identity)
            .map(drop)
            .map_err(|problem| LoadError::Document { place: place.to_owned(), problem })
    })
}

/// An Application, or what is wrong with it.
pub(super) fn decode_application<'a>(raw: &'a str, identity: &ObjectRef) -> Result<Application<'a>, String> {
    serde_json::from_str(raw).map_err(|error| format!("{identity} cannot be read: {error}"))
}

/// A file, or every `.yaml`, `.yml` and `.json` file below a folder, in order. Hidden files and folders below it are passed
/// over: they hold what tools keep beside manifests, and a mounted ConfigMap holds its files there a second time.
///
/// # Errors
/// When one of them cannot be read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let mut found = Vec::new();
    walk(path, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// Follows one path. `inside` holds the folders it lies in, so that a link back to one of them does not lead round for ever.
fn walk(path: &Path, inside: &mut Vec<PathBuf>, found: &mut Vec<PathBuf>) -> Result<(), LoadError> {
    let io = |source| LoadError::Io { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(io)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let folder = fs::canonicalize(path).map_err(io)?;
    if inside.contains(&folder) {
        return Ok(());
    }
    inside.push(folder);
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(io)? {
        entries.push(entry.map_err(io)?.path());
    }
    // The order of a directory listing is an accident.
    entries.sort();
    for entry in entries.into_iter().filter(|entry| !is_hidden(entry)) {
        let wanted = |extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known);
        if entry.is_dir() || entry.extension().is_some_and(wanted) {
            walk(&entry, inside, found)?;
        }
    }
    inside.pop();
    Ok(())
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Adds every object of one text.
pub(super) fn add(snapshot: &mut Snapshot, name: &str, text: String) -> Result<(), LoadError> {
    if text.trim_start().starts_with('{') {
        return add_json(snapshot, name, text);
    }
    let read = |strict_booleans| {
        // What is wrong is said in one line, with its place.
        let options = serde_saphyr::options! { budget: None, with_snippet: false, strict_booleans: strict_booleans };
        serde_saphyr::from_multiple_with_options::<serde_json::Value>(&text, options)
            .map_err(|error| LoadError::Document { place: name.to_owned(), problem: error.to_string() })
    };
    let mut documents = read(false)?;
    if !documents.iter().all(is_readable) {
        // Kubernetes takes a bare `n` or `y` for a boolean, and its own tools quote it. Others write a name so.
        documents = read(true)?;
    }
    for (index, document) in documents.into_iter().enumerate() {
        if !document.is_null() {
            add_json(snapshot, &format!("{name} (document {})", index + 1), document.to_string())?;
        }
    }
    Ok(())
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

fn add_json(snapshot: &mut Snapshot, place: &str, text: String) -> Result<(), LoadError> {
    let bad = |problem: String| LoadError::Document { place: place.to_owned(), problem };
    let list: List<'_> =
        serde_json::from_str(&text).map_err(|error| bad(format!("it is no Kubernetes object: {error}")))?;
    let number = snapshot.texts.len();
    let mut found = Vec::new();
    match &list.items {
        Some(items) if list.kind.ends_with("List") => {
            for (index, stored) in all_stored(&text, items, number).into_iter().enumerate() {
                found.push(stored.map_err(|problem| bad(format!("items[{index}]: {problem}")))?);
            }
        }
        _ => found.push(stored(&text, text.trim(), number).map_err(bad)?),
    }
    for object in found {
        snapshot.push(object);
    }
    snapshot.texts.push(text);
    Ok(())
}

/// Adds one object, or replaces the one of the same identity; a text that held nothing else is dropped.
pub(super) fn put(snapshot: &mut Snapshot, place: &str, text: String) -> Result<(), LoadError> {
    let bad = |problem: String| LoadError::Document { place: place.to_owned(), problem };
    let mut object = stored(&text, text.trim(), snapshot.texts.len()).map_err(bad)?;
    if object.identity.is_application() {
        decode_application(text.trim(), &object.identity).map_err(bad)?;
    }
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

/// Fewer objects are not worth a thread.
const MIN_PART: usize = 500;

/// Describes objects that are parts of `text`, on every core there is: a large list is what people wait for.
fn all_stored(text: &str, items: &[&RawValue], number: usize) -> Vec<Result<Stored, String>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part = items.len().div_ceil(cores).max(MIN_PART);
    let describe = |items: &[&RawValue]| items.iter().map(|item| stored(text, item.get(), number)).collect::<Vec<_>>();
    if items.len() <= part {
        return describe(items);
    }
    std::thread::scope(|scope| {
        let parts: Vec<_> = items.chunks(part).map(|items| (items, scope.spawn(move || describe(items)))).collect();
        // A thread that could not do its part leaves it to this one.
        parts.into_iter().flat_map(|(items, part)| part.join().unwrap_or_else(|_| describe(items))).collect()
    })
}

/// Describes the object `raw`, which is a part of `text`.
fn stored(text: &str, raw: &str, number: usize) -> Result<Stored, String> {
    let head: Head = serde_json::from_str(raw).map_err(|error| format!("it is no Kubernetes object: {error}"))?;
    let identity = identity(&head);
    let start = raw.as_ptr() as usize - text.as_ptr() as usize;
    Ok(Stored { identity, meta: Arc::new(head.metadata), text: number, start, end: start + raw.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").unwrap();
        }
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let relative = |path: &PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
        files(folder).unwrap().iter().map(relative).collect()
    }

    #[test]
    fn folder_is_read_in_order_without_what_is_hidden() {
        let folder = folder(&["b.yaml", "a/z.json", "c.txt", ".git/x.yaml", ".hidden.yml", "a/y.yml"]);
        assert_eq!(names(folder.path()), ["a/y.yml", "a/z.json", "b.yaml"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_back_are_followed_once() {
        let folder = folder(&["a/b/one.yaml"]);
        for link in ["back", "again"] {
            std::os::unix::fs::symlink(folder.path(), folder.path().join("a/b").join(link)).unwrap();
        }
        assert_eq!(names(folder.path()), ["a/b/one.yaml"]);
    }

    #[test]
    fn folder_without_manifests_is_no_snapshot() {
        let error = read(folder(&["notes.txt"]).path()).unwrap_err().to_string();
        assert!(error.ends_with("there is no .yaml, .yml or .json file in it"), "{error}");
    }

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
    fn what_is_no_yaml_is_said_in_one_line() {
        let error = Snapshot::parse("test", "a: [1".to_owned()).err().unwrap().to_string();
        assert!(error.contains("line 1") && !error.contains('\n'), "{error}");
    }
}
