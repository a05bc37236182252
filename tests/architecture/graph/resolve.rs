//! Finds out which module or crate a path leads to.

use std::iter;

use super::notes::{Binding, ModuleId, Notes, ScopeId, Written};

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Into a module of the crate, and to `rest` in it.
    Module { module: ModuleId, rest: Vec<String> },
    /// Out of the crate.
    External(Vec<String>),
}

/// Names that always stand for a type, and never for a crate.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "f16", "f32", "f64", "f128", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16", "u32",
    "u64", "u128", "usize",
];

/// The first words of attributes and lints that belong to a tool.
const TOOLS: &[&str] = &["clippy", "diagnostic", "miri", "rust_analyzer", "rustdoc", "rustfmt"];

/// Crates that no glob hides.
const STANDARD: &[&str] = &["alloc", "core", "std"];

/// Looks names up.
pub struct Resolver<'n> {
    notes: &'n Notes,
    crate_name: &'n str,
}

/// The names that are being looked up: an import that needs itself leads nowhere.
type Trail = Vec<(ScopeId, String)>;

impl<'n> Resolver<'n> {
    pub fn new(notes: &'n Notes, crate_name: &'n str) -> Self {
        Self { notes, crate_name }
    }

    /// Everywhere that a path in `scope` may lead.
    ///
    /// That is one place, unless another crate's names were brought in by a glob: nobody here knows them, so a name
    /// that is not known otherwise may be one of those, too.
    pub fn targets(&self, scope: ScopeId, written: &Written) -> Vec<Target> {
        let mut found: Vec<Target> = self.resolve(scope, written, &mut Vec::new()).into_iter().collect();
        if let [Target::External(path)] = &found[..]
            && !written.global
            && *path == written.segments
            && !STANDARD.contains(&path[0].as_str())
        {
            found.extend(self.out_of_globs(scope, &written.segments));
        }
        found
    }

    fn resolve(&self, scope: ScopeId, written: &Written, trail: &mut Trail) -> Option<Target> {
        let (first, rest) = written.segments.split_first()?;
        let module = self.notes.scope(scope).module;
        match first.as_str() {
            _ if written.global => self.external(&written.segments),
            "crate" => Some(self.descend(self.notes.module(module).root, rest)),
            "self" | "super" => self.climb(module, &written.segments),
            _ => match self.lookup(scope, first, trail) {
                Some(found) => Some(self.append(found, rest)),
                None if rest.is_empty() && self.is_value(scope, first) => None,
                None => self.external(&written.segments),
            },
        }
    }

    /// Follows `self` and `super`, then the rest.
    fn climb(&self, mut module: ModuleId, mut path: &[String]) -> Option<Target> {
        while let Some((first, rest)) = path.split_first() {
            match first.as_str() {
                "self" => {}
                "super" => module = self.notes.module(module).parent?,
                _ => break,
            }
            path = rest;
        }
        Some(self.descend(module, path))
    }

    /// Follows child modules as far as `path` names any.
    fn descend(&self, mut module: ModuleId, mut path: &[String]) -> Target {
        while let Some((first, rest)) = path.split_first()
            && let Some(child) = self.notes.declared(self.notes.module(module).scope, first)
        {
            (module, path) = (child, rest);
        }
        Target::Module { module, rest: path.to_vec() }
    }

    fn append(&self, found: Target, more: &[String]) -> Target {
        match found {
            Target::Module { module, rest } if rest.is_empty() => self.descend(module, more),
            Target::Module { module, rest } => Target::Module { module, rest: [&rest, more].concat() },
            Target::External(path) => Target::External([&path, more].concat()),
        }
    }

    /// Where a path without a local name at its head leads: out of the crate, or to the library of its own package.
    fn external(&self, path: &[String]) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        if *first == self.crate_name {
            return Some(self.descend(self.notes.first_root()?, rest));
        }
        let is_crate = first.starts_with(|letter: char| letter.is_lowercase() || letter == '_')
            && !PRIMITIVES.contains(&first.as_str())
            && !TOOLS.contains(&first.as_str());
        is_crate.then(|| Target::External(path.to_vec()))
    }

    /// What `name` stands for at the head of a path in `scope`.
    ///
    /// The innermost scope that knows it decides. A function or constant of the name only counts if nothing else does,
    /// because no path goes on behind it: beside `use crate::judge::judge`, `judge::X` is the module's.
    fn lookup(&self, scope: ScopeId, name: &str, trail: &mut Trail) -> Option<Target> {
        let key = (scope, name.to_owned());
        let mut weak = None;
        if !trail.contains(&key) {
            trail.push(key);
            let found = self.in_scope(scope, name, trail).or_else(|| self.in_globs(scope, name, trail));
            trail.pop();
            match found {
                Some(found) if is_path_head(&found) => return Some(found),
                other => weak = other,
            }
        }
        let around = self.notes.scope(scope).outer.and_then(|outer| self.lookup(outer, name, trail));
        around.or(weak)
    }

    /// Tells whether `name` is a function of the module or the like: `use line as row` names no crate then.
    fn is_value(&self, scope: ScopeId, name: &str) -> bool {
        self.around(scope).any(|scope| {
            let mut bindings = self.notes.scope(scope).names.get(name).into_iter().flatten();
            bindings.any(|binding| matches!(binding, Binding::Value))
        })
    }

    /// A scope and all around it, the innermost first.
    fn around(&self, scope: ScopeId) -> impl Iterator<Item = ScopeId> {
        iter::successors(Some(scope), |scope| self.notes.scope(*scope).outer)
    }

    /// What `name` stands for by what `scope` itself declares or imports.
    fn in_scope(&self, scope: ScopeId, name: &str, trail: &mut Trail) -> Option<Target> {
        let bindings = self.notes.scope(scope).names.get(name).map_or(&[][..], Vec::as_slice);
        let mut weak = None;
        for binding in bindings {
            match self.bound(scope, name, binding, trail) {
                Some(found) if is_path_head(&found) => return Some(found),
                other => weak = weak.or(other),
            }
        }
        weak
    }

    fn bound(&self, scope: ScopeId, name: &str, binding: &Binding, trail: &mut Trail) -> Option<Target> {
        match binding {
            Binding::Module(module) => Some(Target::Module { module: *module, rest: Vec::new() }),
            // `use anyhow::anyhow` needs another `anyhow`, so it does not bring in a module or type of the name.
            Binding::Import(path) if !path.global && path.segments.first().is_some_and(|first| first == name) => None,
            Binding::Import(path) => self.resolve(scope, path, trail),
            Binding::Type => {
                Some(Target::Module { module: self.notes.scope(scope).module, rest: vec![name.to_owned()] })
            }
            Binding::Value => None,
        }
    }

    /// What `name` stands for by the globs in `scope`.
    fn in_globs(&self, scope: ScopeId, name: &str, trail: &mut Trail) -> Option<Target> {
        self.notes.scope(scope).globs.iter().find_map(|glob| match self.resolve(scope, glob, trail)? {
            Target::Module { module, rest } if rest.is_empty() => self.member(module, name, trail),
            _ => None,
        })
    }

    /// What a glob of `module` brings in as `name`. An item that the module has from elsewhere counts as the module's.
    fn member(&self, module: ModuleId, name: &str, trail: &mut Trail) -> Option<Target> {
        match self.lookup(self.notes.module(module).scope, name, trail)? {
            Target::Module { rest, .. } if !rest.is_empty() => {
                Some(Target::Module { module, rest: vec![name.to_owned()] })
            }
            found => Some(found),
        }
    }

    /// What the path may be if its head comes out of a glob of another crate.
    fn out_of_globs(&self, scope: ScopeId, path: &[String]) -> Vec<Target> {
        let globs = self.around(scope).flat_map(|id| self.notes.scope(id).globs.iter().map(move |glob| (id, glob)));
        let outside = globs.filter_map(|(id, glob)| match self.resolve(id, glob, &mut Vec::new())? {
            Target::External(outside) if outside[0] != path[0] => Some(Target::External([&outside, path].concat())),
            _ => None,
        });
        outside.collect()
    }
}

/// Tells whether a path can go on behind what was found. In the crate itself, small letters are functions.
fn is_path_head(found: &Target) -> bool {
    match found {
        Target::External(_) => true,
        Target::Module { rest, .. } => rest.last().is_none_or(|last| !last.starts_with(char::is_lowercase)),
    }
}
