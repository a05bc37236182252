//! Faults planted in small crates, to see that the reader finds each and takes nothing harmless for one.
//!
//! Every piece of code is the module `below` of a crate that looks like this:
//!
//! ```text
//! crate       AT_ROOT
//! ├── above   Thing, Kind, Acts, act, LIMIT
//! │   └── deep    Deeper
//! └── below   the planted code
//! ```

mod arrows;
mod circles;
mod externals;
mod harmless;
mod modules;
mod order;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::graph::{Graph, Place, ROOT, child};

/// A comment in planted code, on the line where the fault is to be found. Without it that is the first line.
const HERE: &str = "// here";

/// What is around the planted code.
const AROUND: &[(&str, &str)] = &[
    ("src/lib.rs", "pub mod above;\nmod below;\npub const AT_ROOT: u8 = 0;\npub fn at_root() {}\n"),
    (
        "src/above/mod.rs",
        "pub mod deep;\npub struct Thing;\npub enum Kind { One, Two }\npub trait Acts {}\npub fn act() {}\n\
         pub const LIMIT: u8 = 1;\npub fn above() {}\n",
    ),
    ("src/above/deep.rs", "pub struct Deeper;\n"),
];

/// Reads a crate from texts.
fn try_graph(files: &[(&str, &str)]) -> Result<Graph, String> {
    let files: BTreeMap<&Path, &str> = files.iter().map(|(path, text)| (Path::new(*path), *text)).collect();
    Graph::from_files(&|path| files.get(path).map(|text| (*text).to_owned()), Path::new("src"), "planted-crate")
}

fn graph(files: &[(&str, &str)]) -> Graph {
    try_graph(files).unwrap()
}

/// Reads the crate around `code`.
fn planted(code: &str) -> Graph {
    graph(&[AROUND, &[("src/below.rs", code)]].concat())
}

/// Where the fault is in `code`.
fn here(code: &str) -> Place {
    let line = code.lines().position(|line| line.contains(HERE)).unwrap_or(0) + 1;
    Place { file: "src/below.rs".into(), line }
}

/// The top modules, and the root, that lead out of `below`.
fn out_of_below(graph: &Graph) -> BTreeSet<&str> {
    let from_below = graph.arrows().iter().filter(|arrow| child(ROOT, &arrow.from) == Some("below"));
    from_below.map(|arrow| child(ROOT, &arrow.to).unwrap_or(ROOT)).filter(|to| *to != "below").collect()
}

/// Everything of other crates that is named.
fn externals(graph: &Graph) -> BTreeSet<&str> {
    graph.externals().iter().map(|external| external.item.as_str()).collect()
}
