//! Files and folders of Kubernetes objects that stand in for a cluster.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use cascade_guard_core::{
    inventory::Inventory,
    policy::Policy,
    snapshot::{DocumentError, Snapshot, Workers},
};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

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
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Every core there is: a large list is what people wait for.
#[derive(Clone, Copy, Debug)]
struct EveryCore;

impl Workers for EveryCore {
    fn map<'i, T: Sync, R: Send>(&self, items: &'i [T], work: impl Fn(&'i T) -> R + Sync + Send) -> Vec<R> {
        items.par_iter().map(work).collect()
    }
}

/// Reads a file, or every `.yaml`, `.yml` and `.json` file below a folder. Files may hold many documents and Lists.
///
/// # Errors
/// When a file cannot be read or a document is no Kubernetes object; the message names file and place.
pub fn load(path: &Path) -> Result<Snapshot, LoadError> {
    let mut snapshot = Snapshot::default();
    // Part of a cluster would be judged wrongly, so that one file that cannot be read spoils it all.
    let files = files(path).into_iter().collect::<Result<Vec<_>, _>>()?;
    if files.is_empty() {
        // A mistyped path must not pass for a cluster in which nothing is wrong.
        let problem = "there is no .yaml, .yml or .json file in it".to_owned();
        return Err(DocumentError { place: path.display().to_string(), problem }.into());
    }
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| Unreadable::new(&file, &error))?;
        snapshot.add(&file.display().to_string(), text, &EveryCore)?;
    }
    Ok(snapshot)
}

/// The same together with the policy that `choose` finds for it, and an inventory, for which every core decodes
/// Applications.
///
/// # Errors
/// As [`load`], and when `choose` fails.
pub fn open<E: From<LoadError>>(
    path: &Path,
    choose: impl FnOnce(&Snapshot) -> Result<Policy, E>,
    keys: (u64, u64),
) -> Result<(Snapshot, Policy, Inventory), E> {
    let snapshot = load(path)?;
    let policy = choose(&snapshot)?;
    let inventory = snapshot.build(&policy, keys, &EveryCore);
    Ok((snapshot, policy, inventory))
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
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("cannot read ") && error.contains("dangling.yaml: it is a symbolic link"), "{error}");
    }

    #[test]
    fn folder_without_manifests_is_no_snapshot() {
        let error = load(folder(&["notes.txt"]).path()).unwrap_err().to_string();
        assert!(error.ends_with("there is no .yaml, .yml or .json file in it"), "{error}");
    }
}
