//! What was noted down of a crate's sources before any name is looked up.

use std::{collections::BTreeMap, path::PathBuf};

/// The number of a module in [`Notes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleId(usize);

/// The number of a scope in [`Notes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopeId(usize);

/// A module, from a file of its own or inline.
#[derive(Debug)]
pub struct Module {
    /// Its name in messages: `deletion::fate`, and `crate` for the root.
    pub path: String,
    /// What `super` means in it.
    pub parent: Option<ModuleId>,
    /// What `crate` means in it.
    pub root: ModuleId,
    /// The names that hold in it.
    pub scope: ScopeId,
}

/// A stretch of code in which a set of names holds: a module, a block, or the body of a macro call.
#[derive(Debug)]
pub struct Scope {
    pub module: ModuleId,
    /// The scope around a block. A module sees nothing of what is around it.
    pub outer: Option<ScopeId>,
    pub names: BTreeMap<String, Vec<Binding>>,
    pub globs: Vec<Written>,
}

/// What a name stands for in a scope.
#[derive(Debug)]
pub enum Binding {
    Module(ModuleId),
    Import(Written),
    /// A type or a trait: a path may go on behind it.
    Type,
    /// A function, a constant, a static or a macro: no path goes on behind it.
    Value,
}

/// A path as the source has it, without generic arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// It begins with `::`, so that its first segment is a crate.
    pub global: bool,
    pub segments: Vec<String>,
}

/// A path that stands somewhere in the code.
#[derive(Debug)]
pub struct Reference {
    pub scope: ScopeId,
    pub written: Written,
    /// A `use` takes everything that is there.
    pub glob: bool,
    pub file: PathBuf,
    pub line: usize,
}

/// All modules, scopes and references of a crate.
#[derive(Debug, Default)]
pub struct Notes {
    modules: Vec<Module>,
    scopes: Vec<Scope>,
    pub references: Vec<Reference>,
}

impl Notes {
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    pub fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0]
    }

    pub fn scope_mut(&mut self, id: ScopeId) -> &mut Scope {
        &mut self.scopes[id.0]
    }

    /// The root of the library, or of the binary where there is no library.
    pub fn first_root(&self) -> Option<ModuleId> {
        (!self.modules.is_empty()).then_some(ModuleId(0))
    }

    /// Adds the root of a crate, which is called `path` in messages.
    pub fn add_root(&mut self, path: &str) -> ScopeId {
        let id = ModuleId(self.modules.len());
        self.add_module(Module { path: path.to_owned(), parent: None, root: id, scope: ScopeId(self.scopes.len()) })
    }

    /// The module `name` that is declared in `scope`. Declared twice, for two targets, it is still one module.
    pub fn child(&mut self, scope: ScopeId, name: &str) -> ScopeId {
        if let Some(known) = self.declared(scope, name) {
            return self.module(known).scope;
        }
        let parent = self.scope(scope).module;
        let Module { path, root, .. } = self.module(parent);
        let path = if *path == super::ROOT { name.to_owned() } else { format!("{path}::{name}") };
        let module = Module { path, parent: Some(parent), root: *root, scope: ScopeId(self.scopes.len()) };
        self.bind(scope, name, Binding::Module(ModuleId(self.modules.len())));
        self.add_module(module)
    }

    /// The module that a `mod` in `scope` itself declares as `name`.
    pub fn declared(&self, scope: ScopeId, name: &str) -> Option<ModuleId> {
        self.scope(scope).names.get(name)?.iter().find_map(|binding| match binding {
            Binding::Module(id) => Some(*id),
            _ => None,
        })
    }

    /// Adds a scope inside of `outer`.
    pub fn add_block(&mut self, outer: ScopeId) -> ScopeId {
        let module = self.scope(outer).module;
        self.add_scope(module, Some(outer))
    }

    pub fn bind(&mut self, scope: ScopeId, name: &str, binding: Binding) {
        self.scope_mut(scope).names.entry(name.to_owned()).or_default().push(binding);
    }

    fn add_module(&mut self, module: Module) -> ScopeId {
        let id = ModuleId(self.modules.len());
        self.modules.push(module);
        self.add_scope(id, None)
    }

    fn add_scope(&mut self, module: ModuleId, outer: Option<ScopeId>) -> ScopeId {
        let id = ScopeId(self.scopes.len());
        self.scopes.push(Scope { module, outer, names: BTreeMap::new(), globs: Vec::new() });
        id
    }
}
