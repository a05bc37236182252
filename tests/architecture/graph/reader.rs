//! Follows a crate's `mod` declarations from file to file.

use std::{
    mem,
    path::{Component, Path, PathBuf},
};

use syn::{File, ItemMod, ext::IdentExt, visit::Visit};

use super::{
    ROOT, attributes,
    notes::{Binding, Notes, Reference, ScopeId, Written},
};

/// Gives the text of a file, or nothing if there is none.
pub type Files<'f> = &'f dyn Fn(&Path) -> Option<String>;

/// Reads a crate, file by file. What stands in the files is noted down in `collect` and `tokens`.
pub struct Reader<'f> {
    files: Files<'f>,
    /// The files that are being read, from the root to the present one.
    open: Vec<PathBuf>,
    problems: Vec<String>,
    at: At,
    pub(super) notes: Notes,
}

/// Where the reader is.
struct At {
    scope: ScopeId,
    file: PathBuf,
    /// The folder in which the files of child modules lie.
    children: PathBuf,
    /// The folder from which `#[path]` leads on.
    paths: PathBuf,
}

/// A file that a `mod` declaration led to.
struct Found {
    file: PathBuf,
    text: String,
    children: PathBuf,
}

/// Reads the crate whose `lib.rs`, `main.rs` or both lie in the folder `root`.
///
/// # Errors
///
/// The sources have no root, name a module without a file, or cannot be parsed.
pub fn read_crate(files: Files<'_>, root: &Path) -> Result<Notes, String> {
    let mut notes = Notes::default();
    let mut problems = Vec::new();
    for name in ["lib.rs", super::BINARY] {
        let file = root.join(name);
        let Some(text) = files(&file) else { continue };
        let scope = notes.add_root(if notes.first_root().is_none() { ROOT } else { name });
        let at = At { scope, file: file.clone(), children: root.to_owned(), paths: root.to_owned() };
        let mut reader = Reader { files, open: vec![file.clone()], problems, at, notes };
        if let Some(parsed) = reader.parse(&file, &text) {
            reader.visit_file(&parsed);
        }
        Reader { notes, problems, .. } = reader;
    }
    if notes.first_root().is_none() {
        problems.push(format!("{} has neither lib.rs nor {}", root.display(), super::BINARY));
    }
    if problems.is_empty() { Ok(notes) } else { Err(problems.join("\n")) }
}

impl Reader<'_> {
    /// Reads a module: its items, or the file that holds them.
    pub(super) fn module(&mut self, item: &ItemMod) {
        let name = item.ident.unraw().to_string();
        let path = attributes::path(&item.attrs);
        match &item.content {
            Some((_, items)) => {
                let folder = match path {
                    Some(path) => clean(&self.at.paths.join(path)),
                    None => self.at.children.join(&name),
                };
                let scope = self.notes.child(self.at.scope, &name);
                let at = At { scope, file: self.at.file.clone(), children: folder.clone(), paths: folder };
                self.within(at, |reader| items.iter().for_each(|item| reader.visit_item(item)));
            }
            None => self.file_of(&name, path),
        }
    }

    /// Reads the file of the module `name`.
    fn file_of(&mut self, name: &str, path: Option<String>) {
        let Some(Found { file, text, children }) = self.find(name, path) else {
            self.problems.push(format!("{}: the module {name} has no file", self.at.file.display()));
            return;
        };
        if self.open.contains(&file) {
            self.problems.push(format!("{}: the module {name} leads back to {0}", self.at.file.display()));
            return;
        }
        let Some(parsed) = self.parse(&file, &text) else { return };
        if attributes::test_only(&parsed.attrs) {
            return;
        }
        let scope = self.notes.child(self.at.scope, name);
        let paths = file.parent().unwrap_or(Path::new("")).to_owned();
        self.open.push(file.clone());
        self.within(At { scope, file, children, paths }, |reader| reader.visit_file(&parsed));
        self.open.pop();
    }

    /// Finds the file of the module `name`: where `path` says, or `name.rs`, or `name/mod.rs`.
    fn find(&self, name: &str, path: Option<String>) -> Option<Found> {
        let folder = self.at.children.join(name);
        let places = match path {
            Some(path) => {
                let file = clean(&self.at.paths.join(path));
                let children = file.parent().unwrap_or(Path::new("")).to_owned();
                vec![(file, children)]
            }
            None => {
                vec![(self.at.children.join(format!("{name}.rs")), folder.clone()), (folder.join("mod.rs"), folder)]
            }
        };
        places.into_iter().find_map(|(file, children)| {
            let text = (self.files)(&file)?;
            Some(Found { file, text, children })
        })
    }

    fn parse(&mut self, file: &Path, text: &str) -> Option<File> {
        let parsed = syn::parse_file(text);
        if let Err(error) = &parsed {
            self.problems.push(format!("{}:{}: {error}", file.display(), error.span().start().line));
        }
        parsed.ok()
    }

    /// Does `work` somewhere else, and comes back.
    fn within(&mut self, at: At, work: impl FnOnce(&mut Self)) {
        let before = mem::replace(&mut self.at, at);
        work(self);
        self.at = before;
    }

    /// Does `work` in a scope of its own inside of the present one.
    pub(super) fn in_block(&mut self, work: impl FnOnce(&mut Self)) {
        let inner = self.notes.add_block(self.at.scope);
        let before = mem::replace(&mut self.at.scope, inner);
        work(self);
        self.at.scope = before;
    }

    /// Notes that the path `written` stands here.
    pub(super) fn note(&mut self, written: Written, glob: bool, line: usize) {
        let At { scope, file, .. } = &self.at;
        self.notes.references.push(Reference { scope: *scope, written, glob, file: file.clone(), line });
    }

    /// Notes what `name` stands for from here on.
    pub(super) fn bind(&mut self, name: &str, binding: Binding) {
        self.notes.bind(self.at.scope, name, binding);
    }

    /// Notes that everything in `written` can be named here.
    pub(super) fn bind_glob(&mut self, written: Written) {
        self.notes.scope_mut(self.at.scope).globs.push(written);
    }
}

/// Takes `.` and `..` out of a path.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(cleaned.components().next_back(), Some(Component::Normal(_))) => {
                cleaned.pop();
            }
            other => cleaned.push(other),
        }
    }
    cleaned
}
