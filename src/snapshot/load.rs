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
    for file in files(path)? {
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

/// A file, or every `.yaml`, `.yml` and `.json` file below a folder, in order.
///
/// # Errors
/// When one of them cannot be read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
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
            for (index, stored) in all_stored(&text, items, number).into_iter().enumerate() {
                found.push(stored.map_err(|problem| bad(format!("items[{index}]: {problem}")))?);
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
    if object.identity.is_application() {
        decode_application(text.trim(), &object.identity).map_err(bad)?;
    }
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
