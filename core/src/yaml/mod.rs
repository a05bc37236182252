//! YAML as Argo CD reads it.
//!
//! Argo CD, like kubectl and Helm, reads manifests with `sigs.k8s.io/yaml`: by YAML 1.1, without complaints about keys that
//! are there twice, and made into JSON before anything else looks at them. No setting of the deserializer that reads the
//! other files here makes it read exactly so: it cannot tell `yEs` from `yes`, `1__0` from a text, or a key that was merged
//! over another. So this goes by the events of the parser below that deserializer.

mod build;
mod load;
pub mod scalar;

pub use self::{
    build::{Build, Entries, Values},
    load::{Loaded, load},
};

/// A part of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Its first byte.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
}

/// How much a document may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many nodes may come out of aliases.
    pub from_aliases: usize,
    /// So deep may its parts lie in each other.
    pub depth: usize,
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is no YAML; why, in words.
    Syntax(String),
    /// It is YAML that Argo CD makes no JSON of; why, in words.
    NoJson(String),
    /// It is deeper than [`Limits::depth`], or more than [`Limits::from_aliases`] come out of its aliases.
    TooLarge,
    /// An alias stands inside the part that it repeats.
    Recursive,
}

/// A fault, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub fault: Fault,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// A key that stands in a mapping twice. The last of them counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: String,
    /// Where it stands again.
    pub place: Place,
}
