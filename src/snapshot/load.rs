//! Reading snapshot files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Head, Snapshot, Stored, identity};
use crate::argo::Application;

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

pub(super) fn read(path: &Path) -> Result<Snapshot, LoadError> {
    let mut snapshot = Snapshot::default();
    for file in files(path)? {
        let text = fs::read_to_string(&file).map_err(|source| LoadError::Io { path: file.clone(), source })?;
        add(&mut snapshot, &file.display().to_string(), text)?;
    }
    Ok(snapshot)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let io = |source| LoadError::Io { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(io)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
        {
            found.push(path);
        }
    }
    // The order of a directory listing is an accident.
    found.sort();
    Ok(found)
}

/// Adds every object of one text.
pub(super) fn add(snapshot: &mut Snapshot, name: &str, text: String) -> Result<(), LoadError> {
    if text.trim_start().starts_with('{') {
        return add_json(snapshot, name, text);
    }
    let options = serde_saphyr::options! { budget: None };
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple_with_options(&text, options)
        .map_err(|error| LoadError::Document { place: name.to_owned(), problem: error.to_string() })?;
    for (index, document) in documents.into_iter().enumerate() {
        if !document.is_null() {
            add_json(snapshot, &format!("{name} (document {})", index + 1), document.to_string())?;
        }
    }
    Ok(())
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
            for (index, item) in items.iter().enumerate() {
                found.push(
                    stored(&text, item.get(), number).map_err(|problem| bad(format!("items[{index}]: {problem}")))?,
                );
            }
        }
        _ => found.push(stored(&text, text.trim(), number).map_err(bad)?),
    }
    for object in found {
        snapshot.by_identity.insert(object.identity.clone(), snapshot.objects.len());
        snapshot.objects.push(object);
    }
    snapshot.texts.push(text);
    Ok(())
}

/// Adds one object, or replaces the one of the same identity; a text that held nothing else is dropped.
pub(super) fn put(snapshot: &mut Snapshot, place: &str, text: String) -> Result<(), LoadError> {
    let bad = |problem: String| LoadError::Document { place: place.to_owned(), problem };
    let mut object = stored(&text, text.trim(), snapshot.texts.len()).map_err(bad)?;
    let Some(at) = snapshot.by_identity.get(&object.identity).copied() else {
        snapshot.by_identity.insert(object.identity.clone(), snapshot.objects.len());
        snapshot.objects.push(object);
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
    let head: Head = serde_json::from_str(raw).map_err(|error| format!("it is no Kubernetes object: {error}"))?;
    let identity = identity(&head);
    if identity.is_application() {
        serde_json::from_str::<Application<'_>>(raw).map_err(|error| format!("{identity} cannot be read: {error}"))?;
    }
    let start = raw.as_ptr() as usize - text.as_ptr() as usize;
    Ok(Stored { identity, meta: Arc::new(head.metadata), text: number, start, end: start + raw.len() })
}
