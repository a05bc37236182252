//! Every form in which a module can name something of another crate.

use super::{externals, here, out_of_below, planted};

/// Code that names `std::fs` or something in it.
const FILES: &[(&str, &str)] = &[
    ("simple", "use std::fs;"),
    ("item", "use std::fs::read;"),
    ("grouped", "use std::{collections::BTreeMap, fs, net};"),
    ("groups in groups", "use std::{io::{self, Read}, fs::{self, File}};"),
    ("group of all", "use {std::{fs}, std::io};"),
    ("global in a group", "use {::std::fs, std::io};"),
    ("over lines", "use std::{\n    io,\n    fs, // here\n};"),
    ("renamed", "use std::fs as harmless;"),
    ("renamed item", "use std::fs::read as harmless;"),
    ("global", "use ::std::fs;"),
    ("glob", "use std::fs::*;"),
    ("glob above", "use std::*;"),
    ("passed on", "pub use std::fs;"),
    ("in a function", "fn f() {\n    use std::fs; // here\n}"),
    ("inline", "fn f() { std::fs::read(\"a\"); }"),
    ("inline and global", "fn f() { ::std::fs::read(\"a\"); }"),
    ("type", "struct S { file: Option<std::fs::File> }"),
    ("bound", "fn f(it: impl Into<::std::fs::File>) {}"),
    ("of a type", "fn f() { <std::fs::File>::open(\"a\"); }"),
    ("of a type's trait", "fn f() { <std::fs::File as Read>::read(); }"),
    ("through a module", "use std::fs;\nfn f() { fs::read(\"a\"); } // here"),
    ("through a rename", "use std::fs as disk;\nfn f() { disk::read(\"a\"); } // here"),
    ("through a type", "use std::fs::File;\nfn f() { File::open(\"a\"); } // here"),
    ("through a renamed crate", "use std as system;\nfn f() { system::fs::read(\"a\"); } // here"),
    ("through a renamed self", "use std::{self as system};\nfn f() { system::fs::read(\"a\"); } // here"),
    ("through an extern crate", "extern crate std as system;\nfn f() { system::fs::read(\"a\"); } // here"),
    ("through a crate of its name", "use std;\nfn f() { std::fs::read(\"a\"); } // here"),
    ("through a glob of the crate", "use std::*;\nfn f() { fs::read(\"a\"); } // here"),
    ("through a glob around the block", "use std::*;\nfn f() { { fs::read(\"a\"); } } // here"),
    (
        "through a glob of the parent",
        "use std::fs as disk;\nmod inner { use super::*; fn f() { disk::read(); } } // here",
    ),
    ("argument of a macro", "fn f() { assert!(std::fs::exists(\"a\")); }"),
    ("global argument of a macro", "fn f() { assert!(true, ::std::fs::exists(\"a\")); }"),
    ("global behind a word in a macro", "fn f() { g!(return ::std::fs::exists(\"a\")); }"),
    ("global behind a function in a macro", "g! { fn f() {} ::std::fs::read(\"a\"); }"),
    ("global behind a visibility in a macro", "g! { struct S(pub(crate) ::std::fs::File); }"),
    ("global behind an arrow in a macro", "g! { fn f() -> ::std::fs::File {} }"),
    ("use in a macro", "g! { use std::{fs, io}; }"),
    ("through a use in a macro", "g! {\n    use std::fs as disk;\n    fn f() { disk::read() } // here\n}"),
    ("definition of a macro", "macro_rules! m {\n    ($it:expr) => { ::std::fs::read($it) }; // here\n}"),
    ("attribute", "#[serde(with = \"std::fs\")] struct S;"),
    // What `syn` has no tree for.
    ("item as yet unknown", "fn f(it: std::fs::File);"),
    ("item of an impl as yet unknown", "impl S { const FILE: std::fs::File; }"),
    ("item of a trait as yet unknown", "trait T { pub fn f(it: std::fs::File); }"),
    ("item of another language", "unsafe extern \"C\" { safe fn f(it: std::fs::File); }"),
    ("expression as yet unknown", "fn f() { builtin # offset_of(std::fs::File, field) }"),
    ("type as yet unknown", "type A = dyn* Into<std::fs::File>;"),
    ("pattern as yet unknown", "fn f() { let box std::fs::File { .. } = it; }"),
    ("definition for some targets", "#[cfg(unix)] fn f() { std::fs::read(\"a\"); }"),
];

/// What code names, in full.
const NAMED: &[(&str, &[&str])] = &[
    ("#[tokio::main] async fn main() {}", &["tokio::main"]),
    ("#[derive(serde::Serialize, Clone)] struct S;", &["serde::Serialize"]),
    ("fn f() { tokio::select! { _ = g() => {} } }", &["tokio::select"]),
    ("fn f() { tracing::info!(\"{}\", serde_json::Value::Null); }", &["serde_json::Value::Null", "tracing::info"]),
    ("macro_rules! m { ($level:ident) => { tracing::$level!() } }", &["tracing"]),
    ("use anyhow::anyhow; type R = anyhow::Result<()>;", &["anyhow::Result", "anyhow::anyhow"]),
    (
        "use std::sync::{self, Arc}; struct S(sync::Mutex<Arc<u8>>);",
        &["std::sync", "std::sync::Arc", "std::sync::Mutex"],
    ),
    ("use tokio::sync as above; fn f() { above::oneshot(); }", &["tokio::sync", "tokio::sync::oneshot"]),
    ("fn tokio() {} fn f() { tokio::spawn(tokio()); }", &["tokio::spawn"]),
    ("fn f() { { use tokio::fs; } fs::read(); }", &["fs::read", "tokio::fs"]),
    ("fn f() { g!(<S as serde::de::Visitor>::visit::<u8>(), Vec::<u8>::new()); }", &["serde::de::Visitor"]),
    ("mod fs { pub fn read() {} } fn f() { ::fs::read(); }", &["fs::read"]),
    ("fn f() { <std::fs::File>::open(\"a\"); }", &["std::fs::File", "std::fs::File::open"]),
    ("type Item = <serde::Some>::Item;", &["serde::Some", "serde::Some::Item"]),
    ("macro_rules! m { ($it:ident) => { use tokio::{$it}; } }", &["tokio"]),
    ("use serde::*; fn f() { other::g(); }", &["other::g", "serde::*", "serde::other::g"]),
    ("use serde::*; use ::tokio::sync as s; fn f() { s::g(); }", &["serde::*", "tokio::sync", "tokio::sync::g"]),
    ("use serde::*; use serde as other;", &["serde", "serde::*"]),
];

#[test]
fn every_form_is_found() {
    let mut missed = Vec::new();
    for (form, code) in FILES {
        let graph = planted(code);
        if !graph.naming(&["std::fs"]).iter().any(|external| external.place == here(code)) {
            missed.push(format!("{form}: {code}\n    found {:#?}", graph.externals()));
        }
        if !out_of_below(&graph).is_empty() {
            missed.push(format!("{form}: {code}\n    found {:#?}", graph.arrows()));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn names_are_told_in_full_and_nothing_else_is() {
    for (code, expected) in NAMED {
        assert_eq!(externals(&planted(code)), expected.iter().copied().collect(), "{code}");
    }
}

#[test]
fn a_path_covers_what_is_below_it_and_what_brings_it_in() {
    let graph = planted("use std::sync::{Mutex, atomic::AtomicBool}; use std::cell::*; use core::time::Duration;");
    let named = |paths: &[&str]| graph.naming(paths).iter().map(|found| found.item.as_str()).collect::<Vec<_>>();
    assert_eq!(named(&["std::sync::atomic"]), ["std::sync::atomic::AtomicBool"]);
    assert_eq!(named(&["std::sync::Mutex", "std::sync::RwLock"]), ["std::sync::Mutex"]);
    assert_eq!(named(&["std::cell::RefCell"]), ["std::cell::*"]);
    assert_eq!(named(&["std::time"]), ["core::time::Duration"]);
    assert!(named(&["std::s", "std::sync::Mut", "sync", "tokio"]).is_empty());
    assert_eq!(named(&["std"]).len(), 4);
}

#[test]
fn a_name_is_told_with_its_place() {
    let graph = planted("mod inner {\n    use std::fs::read;\n}");
    let told: Vec<String> = graph.externals().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["src/below.rs:2: below::inner names std::fs::read"]);
}
