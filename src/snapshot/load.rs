//! Reading snapshot files.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Head, Snapshot, Stored, identity};
use crate::{
    argo::Application,
    lint::RECURSIVE_ALIAS,
    object::{ARGO_GROUP, ObjectRef},
};

/// A file or folder that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {problem}", path.display())]
pub struct Unreadable {
    /// Which one.
    pub path: PathBuf,
    /// Why, in words for a person.
    pub problem: String,
}

impl Unreadable {
    fn new(path: &Path, error: &io::Error) -> Self {
        let link = fs::symlink_metadata(path).is_ok_and(|own| own.is_symlink());
        let problem = match fs::read_link(path) {
            Ok(target) if link && error.kind() == io::ErrorKind::NotFound => {
                format!("it is a symbolic link to {}, which does not exist", target.display())
            }
            Ok(target) if link => {
                format!("it is a symbolic link to {} that cannot be followed: {error}", target.display())
            }
            _ => error.to_string(),
        };
        Self { path: path.to_owned(), problem }
    }
}

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or folder cannot be read.
    #[error(transparent)]
    File(#[from] Unreadable),
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
    // Part of a cluster would be judged wrongly, so that one file that cannot be read spoils it all.
    let files = files(path).into_iter().collect::<Result<Vec<_>, _>>()?;
    if files.is_empty() {
        // A mistyped path must not pass for a cluster in which nothing is wrong.
        let problem = "there is no .yaml, .yml or .json file in it".to_owned();
        return Err(LoadError::Document { place: path.display().to_string(), problem });
    }
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| Unreadable::new(&file, &error))?;
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

/// A file, or every `.yaml`, `.yml` and `.json` file below a folder, in order; what cannot be read stands in the place of
/// the file. Hidden files and folders below it are passed over: they hold what tools keep beside manifests, and a mounted
/// ConfigMap holds its files there a second time.
pub fn files(path: &Path) -> Vec<Result<PathBuf, Unreadable>> {
    let mut found = Vec::new();
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => walk(path, &mut Vec::new(), &mut found),
        // Whoever names a pipe wants it read.
        Ok(_) => found.push(Ok(path.to_owned())),
        Err(error) => found.push(Err(Unreadable::new(path, &error))),
    }
    found
}

/// Looks through one folder. `inside` holds the folders it lies in, so that a link back to one of them does not lead round
/// for ever.
fn walk(path: &Path, inside: &mut Vec<PathBuf>, found: &mut Vec<Result<PathBuf, Unreadable>>) {
    let listed = || -> io::Result<_> {
        let folder = fs::canonicalize(path)?;
        let entries =
            fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
        Ok((folder, entries))
    };
    let (folder, mut entries) = match listed() {
        Ok(listed) => listed,
        Err(error) => return found.push(Err(Unreadable::new(path, &error))),
    };
    if inside.contains(&folder) {
        return;
    }
    inside.push(folder);
    // The order of a directory listing is an accident.
    entries.sort();
    for entry in entries.into_iter().filter(|entry| !is_hidden(entry)) {
        let wanted = |extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known);
        if entry.is_dir() {
            walk(&entry, inside, found);
        } else if entry.extension().is_some_and(wanted) {
            found.push(regular(entry));
        }
    }
    inside.pop();
}

/// A file that ends. Reading a pipe that nobody writes into, or a device, would last for ever.
fn regular(path: PathBuf) -> Result<PathBuf, Unreadable> {
    match fs::metadata(&path) {
        Ok(meta) if meta.is_file() => Ok(path),
        Ok(_) => Err(Unreadable { path, problem: "it is a pipe, a socket or a device, not a file".to_owned() }),
        Err(error) => Err(Unreadable::new(&path, &error)),
    }
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
            .map_err(|error| LoadError::Document { place: name.to_owned(), problem: in_words(&error) })
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
        files(folder).iter().map(|file| relative(file.as_ref().unwrap())).collect()
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

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_read_is_named_beside_the_files() {
        use std::os::unix::{fs::symlink, net::UnixListener};
        let folder = folder(&["a.yaml", "z.yaml"]);
        let at = |name: &str| folder.path().join(name);
        symlink("nowhere", at("dangling.yaml")).unwrap();
        symlink("round.yaml", at("round.yaml")).unwrap();
        symlink("nowhere", at("no-manifest")).unwrap();
        let _socket = UnixListener::bind(at("socket.json")).unwrap();
        let said: Vec<String> = files(folder.path())
            .into_iter()
            .map(|file| match file {
                Ok(path) => path.file_name().unwrap().display().to_string(),
                Err(error) => format!("{}: {}", error.path.file_name().unwrap().display(), error.problem),
            })
            .collect();
        assert_eq!(said[..2], ["a.yaml", "dangling.yaml: it is a symbolic link to nowhere, which does not exist"]);
        assert!(
            said[2].starts_with("round.yaml: it is a symbolic link to round.yaml that cannot be followed: "),
            "{said:?}"
        );
        assert_eq!(said[3..], ["socket.json: it is a pipe, a socket or a device, not a file", "z.yaml"]);
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("cannot read ") && error.contains("dangling.yaml: it is a symbolic link"), "{error}");
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
