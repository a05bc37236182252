//! Code that looks as if it named another module, and does not.

use super::{externals, graph, out_of_below, planted};

/// Code that names nothing outside of its module.
const HARMLESS: &[&str] = &[
    // Prose.
    "// use crate::above::Thing; std::fs::read(\"a\");",
    "/* use crate::above::Thing; /* std::fs */ */",
    "//! [`crate::above::Thing`] and `std::fs`",
    "/// See [`Thing`](crate::above::Thing) and std::fs::read.\nfn f() {}",
    "#[doc = \"crate::above::Thing, std::fs\"] fn f() {}",
    "fn f() { let _ = \"use crate::above::Thing; std::fs::read\"; }",
    "fn f() { let _ = r#\"crate::above::act(); \"std::fs\" \"#; }",
    "fn f() { format!(\"crate::above::Thing std::fs::read {x}\"); }",
    "macro_rules! m { () => { \"crate::above\" /* std::fs */ }; }",
    "#[serde(rename = \"crate::above\")] struct S;",
    "#[error(\"crate::above, std::fs\")] struct S;",
    "#[must_use = \"std::fs::read\"] fn f() {}",
    "#[deprecated(note = \"use crate::above::act\")] fn f() {}",
    // For tests alone.
    "#[cfg(test)] mod tests { use crate::above::Thing; use std::fs; }",
    "#[cfg(test)] mod tests;",
    "#[cfg(all(test, unix))] mod tests { use crate::above::Thing; }",
    "#[cfg(any(test, all(test, unix)))] mod tests { use crate::above::Thing; }",
    "mod tests { #![cfg(test)] use crate::above::Thing; }",
    "#![cfg(test)] use crate::above::Thing; use std::fs;",
    "#[cfg(test)] use crate::above::Thing;",
    "#[cfg(test)] fn f() { crate::above::act(); }",
    "#[cfg(test)] impl crate::above::Acts for u8 {}",
    "#[test] fn f() { std::fs::read(\"a\"); }",
    "#[tokio::test] async fn f() { std::fs::read(\"a\"); }",
    "struct S; impl S { #[cfg(test)] fn f() { crate::above::act(); } }",
    "trait T { #[cfg(test)] fn f() { crate::above::act(); } }",
    "struct S { #[cfg(test)] field: crate::above::Thing }",
    "enum E { #[cfg(test)] One(crate::above::Thing) }",
    "fn f() { #[cfg(test)] let x = crate::above::act(); }",
    "fn f() { #[cfg(test)] crate::above::act(); }",
    "fn f() { #[cfg(test)] { std::fs::read(\"a\"); } }",
    "fn f() { #[cfg(test)] use std::fs; }",
    "fn f() { #[cfg(test)] println!(\"{}\", std::fs::read(\"a\")); }",
    "fn f() { match x { #[cfg(test)] _ if crate::above::act() => {} _ => {} } }",
    "fn f() { S { #[cfg(test)] field: crate::above::act() }; }",
    "fn f() { let S { #[cfg(test)] field: crate::above::Thing, .. } = it; }",
    "#[cfg_attr(test, derive(crate::above::Acts, proptest::Arbitrary))] struct S;",
    // The same words for something else.
    "mod above { pub struct Thing; } use above::Thing; use self::above as up; fn f() { up::act(); }",
    "mod std { pub mod fs { pub fn read() {} } } fn f() { std::fs::read(); }",
    "mod above { pub fn act() {} } fn f() { above::act(); self::above::act(); }",
    "fn above() {} fn f() { above(); }",
    "macro_rules! line { () => {} } pub(crate) use line; mod inner { fn f() { super::line!(); } }",
    "fn line() {} use line as row; fn f() { use line as column; }",
    "struct above; fn f() { above::new(); }",
    "enum fs { read } fn f() { fs::read; }",
    "enum Kind { One } use Kind::*; use Kind::One as Two; fn f() { Kind::One; Self::One; }",
    "fn f() { let above = 1; above.act::<u8>(); fs.read(); }",
    "fn f() { g!(above.act::<u8>(), it.above::<u8>(), 'above: loop {}, Vec::<u8>::new()); }",
    "fn f() { mod above { pub fn act() {} } above::act(); }",
    "fn f() { use inner as above; above::act(); } mod inner { pub fn act() {} }",
    "mod inner { pub mod above { pub fn act() {} } } use inner::*; fn f() { above::act(); }",
    "fn f() { String::new(); u8::MAX; str::len(\"a\"); Vec::<f64>::with_capacity(1); Option::Some(1); }",
    "fn f<T: Default>() { T::default(); <T as Default>::default(); <T>::default(); T::Item::new(); }",
    "fn f() { g!(T::Item::new(), Self::new(), $crate, $x::fs::read, $($p)::fs::read); }",
    "macro_rules! m { ($a:ident, $($p:path),*) => { $a::new($($p::fs::read),*) }; }",
    "macro_rules! m { ($it:ident) => { crate::$it::new(); super::$it::new() }; }",
    "fn f() { g!(<S>::fs::read(\"a\")); }",
    "fn f() { g!(with = \"std::fs::read\"); }",
    "#[arg(from, \"std::fs::read\")] struct S;",
    "pub(in crate::below) fn f() {}",
    "#[rustfmt::skip] #[allow(clippy::panic, rustdoc::all)] #[cfg_attr(unix, allow(clippy::panic))] fn f() {}",
    "use self::inner::Thing; mod inner { pub struct Thing; } fn f() { crate::below::inner::g(); super::below::f(); }",
    "mod inner { use super::f; use super::super::below::f as g; use crate::below; } fn f() {}",
    "fn f<'above>(it: &'above str) -> impl Sized + use<'above> { it }",
];

#[test]
fn nothing_is_found() {
    let mut found = Vec::new();
    for code in HARMLESS {
        let graph = planted(code);
        let (modules, crates) = (out_of_below(&graph), externals(&graph));
        if !modules.is_empty() || !crates.is_empty() {
            found.push(format!("{code}\n    leads to {modules:?} and {crates:?}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_name_that_holds_elsewhere_is_not_taken_for_one_here() {
    let graph = graph(&[
        ("src/lib.rs", "mod above; mod below; mod other;"),
        ("src/above.rs", ""),
        ("src/other.rs", "use crate::above as name;"),
        ("src/below.rs", "mod inner { fn f() { name::act(); } } fn f() { { use crate::other as name; } name::act(); }"),
    ]);
    assert_eq!(out_of_below(&graph), ["other"].into());
    assert_eq!(externals(&graph), ["name::act"].into());
}
