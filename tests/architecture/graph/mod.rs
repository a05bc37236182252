//! The modules of a crate, and which of them name which, read from the sources with `syn`.
//!
//! The reader follows `mod` declarations from the root. In every module it notes each path: in `use` of every form, in
//! code, types, patterns, bounds and attributes, and among the arguments of macros. Then it looks the paths up as the
//! compiler does, through imports, renames, globs and blocks. Code that is compiled for tests alone is left out.
//!
//! An arrow leads to the module that the path names. If `rules` says `pub use crate::deletion::Deletion`, then
//! `crate::rules::Deletion` leads to `rules`, and the arrow from `rules` to `deletion` is one of its own.
//!
//! What nobody names is not seen: a method on a value whose type came along. Neither are modules that stand inside of a
//! macro's arguments or that `include!` brings in, nor does `#[cfg(test)]` count among the arguments of a macro.

mod attributes;
pub mod circles;
mod collect;
mod notes;
pub mod reader;
mod resolve;
mod tokens;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::{Path, PathBuf},
};

use self::{
    notes::{Notes, Reference},
    reader::Files,
    resolve::{Resolver, Target},
};

/// What the root module of a crate is called.
pub const ROOT: &str = "crate";

/// What the root module of a binary is called that stands beside a library.
pub const BINARY: &str = "main.rs";

/// A line in the sources.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, beginning with the folder that the graph was read from.
    pub file: PathBuf,
    /// The number of the line. The first is 1.
    pub line: usize,
}

/// A module names something in another module of the crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// The module that has the name in its code, such as `rules::sync_wave`.
    pub from: String,
    /// The module that the name leads to.
    pub to: String,
    /// Where it is.
    pub place: Place,
    /// What is named, from the root of the crate: `deletion::fate::Fate`, or `deletion::fate::*`.
    pub item: String,
}

/// A module names something in another crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct External {
    /// The module that has the name in its code.
    pub from: String,
    /// Where it is.
    pub place: Place,
    /// What is named, from the crate on and whatever it was renamed to: `std::fs::read`, or `std::fs::*`.
    pub item: String,
}

/// The modules of a crate and what they name.
#[derive(Debug)]
pub struct Graph {
    modules: BTreeSet<String>,
    arrows: Vec<Arrow>,
    externals: Vec<External>,
}

impl Graph {
    /// Reads the crate `crate_name` whose `lib.rs`, `main.rs` or both lie in the folder `root`.
    ///
    /// # Panics
    ///
    /// The sources cannot be read.
    pub fn read(root: &Path, crate_name: &str) -> Self {
        let files = |path: &Path| fs::read_to_string(path).ok();
        Self::from_files(&files, root, crate_name).unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// Reads a crate out of `files`, which need not be on a disk.
    ///
    /// # Errors
    ///
    /// The sources have no root, name a module without a file, or cannot be parsed.
    pub fn from_files(files: Files<'_>, root: &Path, crate_name: &str) -> Result<Self, String> {
        let notes = reader::read_crate(files, root)?;
        Ok(Self::of_notes(&notes, &crate_name.replace('-', "_")))
    }

    /// Every module by its path, `crate` for the root, and `main.rs` for a binary beside the library.
    pub fn modules(&self) -> &BTreeSet<String> {
        &self.modules
    }

    /// The modules that the root declares.
    pub fn top_modules(&self) -> BTreeSet<&str> {
        self.modules.iter().filter_map(|module| child(ROOT, module)).filter(|top| *top != BINARY).collect()
    }

    /// Every arrow, in order.
    pub fn arrows(&self) -> &[Arrow] {
        &self.arrows
    }

    /// Everything that is named of other crates, in order.
    pub fn externals(&self) -> &[External] {
        &self.externals
    }

    /// What is named at or below one of `paths`, such as `std::fs` or `tokio`.
    ///
    /// `core` and `alloc` count as `std`, where the same things are. A glob of what is above a path counts, because it
    /// brings the path in: `use std::*` names `std::fs`.
    pub fn naming(&self, paths: &[&str]) -> Vec<&External> {
        self.externals.iter().filter(|external| paths.iter().any(|path| external.names(path))).collect()
    }

    /// The arrows between modules that the root declares, by the two of them.
    pub fn arrows_between_top_modules(&self) -> BTreeMap<(&str, &str), Vec<&Arrow>> {
        self.arrows_between_children(ROOT)
    }

    /// The arrows between the children of `parent`, each with all that is in it, by the two of them.
    pub fn arrows_between_children(&self, parent: &str) -> BTreeMap<(&str, &str), Vec<&Arrow>> {
        let mut between: BTreeMap<(&str, &str), Vec<&Arrow>> = BTreeMap::new();
        for arrow in &self.arrows {
            if let (Some(from), Some(to)) = (child(parent, &arrow.from), child(parent, &arrow.to))
                && from != to
            {
                between.entry((from, to)).or_default().push(arrow);
            }
        }
        between
    }

    /// The arrows from a module to one that it is part of.
    pub fn arrows_to_ancestors(&self) -> Vec<&Arrow> {
        self.arrows.iter().filter(|arrow| child(&arrow.to, &arrow.from).is_some()).collect()
    }

    fn of_notes(notes: &Notes, crate_name: &str) -> Self {
        let resolver = Resolver::new(notes, crate_name);
        let (mut arrows, mut externals) = (BTreeSet::new(), BTreeSet::new());
        for reference in &notes.references {
            let from = &notes.module(notes.scope(reference.scope).module).path;
            for target in resolver.targets(reference.scope, &reference.written) {
                match target {
                    Target::External(path) => {
                        externals.insert(external(from, path, reference));
                    }
                    Target::Module { module, rest } => {
                        let to = &notes.module(module).path;
                        arrows.extend((from != to).then(|| arrow(from, to, &rest, reference)));
                    }
                }
            }
        }
        Self {
            modules: notes.modules().iter().map(|module| module.path.clone()).collect(),
            arrows: arrows.into_iter().collect(),
            externals: externals.into_iter().collect(),
        }
    }
}

impl External {
    /// Tells whether this is at or below `path`, or may bring it in.
    fn names(&self, path: &str) -> bool {
        let (item, path) = (in_std(&self.item), in_std(path));
        match item.strip_suffix("::*") {
            Some(above) if within(above, &path) => true,
            _ => within(&path, &item),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

impl fmt::Display for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {} ({})", self.place, self.from, self.to, self.item)
    }
}

impl fmt::Display for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} names {}", self.place, self.from, self.item)
    }
}

/// The child of `parent` that `module` is, or is part of.
pub fn child<'m>(parent: &str, module: &'m str) -> Option<&'m str> {
    let start = if parent == ROOT {
        0
    } else {
        module.strip_prefix(parent)?.strip_prefix("::")?;
        parent.len() + 2
    };
    let end = module[start..].find("::").map_or(module.len(), |end| start + end);
    (module != ROOT).then(|| &module[..end])
}

/// Tells whether `path` is `above` or goes on from it.
fn within(above: &str, path: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// `std::cell` for `core::cell`.
fn in_std(path: &str) -> String {
    match path.split_once("::") {
        Some(("core" | "alloc", rest)) => format!("std::{rest}"),
        _ => path.to_owned(),
    }
}

fn arrow(from: &str, to: &str, rest: &[String], reference: &Reference) -> Arrow {
    let item = joined([&[to.to_owned()], rest].concat(), reference);
    Arrow { from: from.to_owned(), to: to.to_owned(), item, place: place(reference) }
}

fn external(from: &str, path: Vec<String>, reference: &Reference) -> External {
    External { from: from.to_owned(), place: place(reference), item: joined(path, reference) }
}

fn joined(mut path: Vec<String>, reference: &Reference) -> String {
    if reference.glob {
        path.push("*".to_owned());
    }
    path.join("::")
}

fn place(reference: &Reference) -> Place {
    Place { file: reference.file.clone(), line: reference.line }
}
