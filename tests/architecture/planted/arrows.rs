//! Every form in which a module can name another one.

use super::{externals, here, out_of_below, planted};
use crate::graph::{Arrow, ROOT};

/// Code that names `above` and no other module of the crate, nor another crate.
const FAULTS: &[(&str, &str)] = &[
    // `use`
    ("simple", "use crate::above::Thing;"),
    ("a module", "use crate::above;"),
    ("by way of super", "use super::above::Thing;"),
    ("by way of self", "use self::super::above::Thing;"),
    ("super twice", "mod inner { use super::super::above::Thing; }"),
    ("grouped", "use crate::above::{Thing, Kind};"),
    ("self in a group", "use crate::above::{self, Thing};"),
    ("groups in groups", "use crate::{above::{deep::{Deeper}, Kind}};"),
    ("over lines", "use crate::{\n    above::{\n        Thing, // here\n    },\n};"),
    ("oddly spaced", "use crate\n    :: above // comment\n    :: /* comment */ Thing; // here"),
    ("renamed", "use crate::above::Thing as Other;"),
    ("renamed to nothing", "use crate::above::Acts as _;"),
    ("glob", "use crate::above::*;"),
    ("glob of an enum", "use crate::above::Kind::*;"),
    ("glob in a group", "use crate::{above::*};"),
    ("passed on", "pub use crate::above::Thing;"),
    ("passed on to some", "pub(super) use crate::above::Thing;"),
    ("in a function", "fn f() {\n    use crate::above::Thing; // here\n}"),
    ("in a block", "fn f() {\n    loop {\n        use super::above::Thing; // here\n    }\n}"),
    ("in a closure", "fn f() {\n    let _ = || {\n        use super::above::Thing; // here\n    };\n}"),
    ("in an inline module", "mod inner {\n    use crate::above::Thing; // here\n}"),
    ("in a module in a block", "fn f() {\n    mod inner {\n        use super::super::above::Thing; // here\n    }\n}"),
    ("raw", "use crate::r#above::Thing;"),
    ("with an attribute", "#[allow(unused_imports)]\nuse crate::above::Thing; // here"),
    ("not for tests", "#[cfg(not(test))]\nuse crate::above::Thing; // here"),
    ("for tests and others", "#[cfg(any(test, unix))]\nuse crate::above::Thing; // here"),
    // Paths in code.
    ("expression", "fn f() { crate::above::act(); }"),
    ("expression by super", "fn f() { super::above::act(); }"),
    ("constant", "const LIMIT: u8 = crate::above::LIMIT;"),
    ("method", "fn f() { g().h(crate::above::act); }"),
    ("turbofish", "fn f() { Vec::<crate::above::Thing>::new(); }"),
    ("of a type", "fn f() { <crate::above::Thing>::new(); }"),
    ("of a trait", "fn f() { <u8 as crate::above::Acts>::act(); }"),
    ("struct literal", "fn f() { g(crate::above::Thing {}); }"),
    ("pattern", "fn f(it: u8) { match it { crate::above::LIMIT => {} _ => {} } }"),
    ("pattern with parts", "fn f(it: u8) { if let crate::above::Kind::Two(_) = it {} }"),
    ("pattern with fields", "fn f(it: u8) { let crate::above::Thing { .. } = it; }"),
    ("condition", "fn f() -> bool { true && !crate::above::act() }"),
    ("closure", "fn f() { g(|| crate::above::act()); }"),
    ("async", "async fn f() { crate::above::act().await }"),
    ("cast", "fn f() -> u8 { 1 as crate::above::Thing }"),
    // Paths in types.
    ("field", "struct S {\n    field: Option<crate::above::Thing>, // here\n}"),
    ("variant", "enum E { One(crate::above::Thing) }"),
    ("parameter", "fn f(it: &mut crate::above::Thing) {}"),
    ("answer", "fn f() -> Result<(), crate::above::Thing> { g() }"),
    ("alias", "type Alias = crate::above::Thing;"),
    ("implementation", "impl crate::above::Acts for u8 {}"),
    ("implemented", "struct S;\nimpl From<crate::above::Thing> for S {} // here"),
    ("bound", "fn f<T: crate::above::Acts>() {}"),
    ("where", "fn f<T>() where T: crate::above::Acts {}"),
    ("impl", "fn f(it: impl crate::above::Acts) {}"),
    ("dyn", "fn f(it: &dyn crate::above::Acts) {}"),
    ("super trait", "trait T: crate::above::Acts {}"),
    ("associated type", "impl Iterator for S { type Item = crate::above::Thing; }"),
    ("length", "struct S([u8; crate::above::LIMIT]);"),
    ("function pointer", "struct S(fn(crate::above::Thing));"),
    // Through names that were brought in.
    ("through a module", "use crate::above;\nfn f() { above::act(); } // here"),
    ("through a rename", "use crate::above as up;\nfn f() { up::act(); } // here"),
    ("through self", "use crate::above::{self};\nfn f() { above::act(); } // here"),
    ("through a renamed self", "use crate::above::{self as up};\nfn f() { up::act(); } // here"),
    ("through two imports", "use crate::above as up; use up as upper;\nfn f() { upper::act(); } // here"),
    ("through a type", "use crate::above::Kind;\nfn f() { Kind::One; } // here"),
    ("through a function of the name", "use crate::above::{self, above};\nfn f() { above::act(); } // here"),
    ("through a child", "use crate::above::deep;\nfn f() { deep::Deeper; } // here"),
    ("imported path", "fn f() {\n    use crate::above;\n    use above::Thing; // here\n}"),
    ("from around the block", "use crate::above;\nfn f() { { above::act() } } // here"),
    (
        "through a glob of the parent",
        "mod inner {\n    use super::*;\n    fn f() { up::act(); } // here\n}\nuse crate::above as up;",
    ),
    ("through the package's name", "use planted_crate::above::Thing;"),
    // Among the arguments of macros.
    ("argument", "fn f() { format!(\"{}\", crate::above::act()); }"),
    ("argument over lines", "fn f() {\n    assert_eq!(\n        1,\n        super::above::LIMIT, // here\n    );\n}"),
    ("matches", "fn f(it: u8) -> bool { matches!(it, crate::above::Kind::One | crate::above::Kind::Two) }"),
    ("vec in vec", "fn f() { vec![vec![crate::above::act()]]; }"),
    ("through a module in a macro", "use crate::above;\nfn f() { println!(\"{}\", above::act()); } // here"),
    ("range in a macro", "fn f() { g!(0..crate::above::LIMIT); }"),
    ("use in a macro", "g! {\n    use crate::{above::Thing}; // here\n}"),
    ("through a use in a macro", "g! {\n    use crate::above as up;\n    fn f() { up::act() } // here\n}"),
    ("definition of a macro", "macro_rules! m {\n    () => { $crate::above::act() }; // here\n}"),
    (
        "use in the definition of a macro",
        "macro_rules! m {\n    () => { use $crate::above::{Thing, Kind}; }; // here\n}",
    ),
    (
        "through a use in the definition of a macro",
        "macro_rules! m {\n    () => {\n        use $crate::above as up;\n        up::act() // here\n    };\n}",
    ),
    ("macro by its path", "fn f() { crate::above::shout!(); }"),
    ("macro that makes items", "thread_local! { static S: crate::above::Thing = g(); }"),
    // In attributes.
    ("derive", "#[derive(crate::above::Acts)] struct S;"),
    ("attribute", "#[crate::above::acts] fn f() {}"),
    ("path in an attribute", "#[arg(parser = crate::above::act)] struct S;"),
    ("text in an attribute", "struct S {\n    #[serde(with = \"crate::above\")] // here\n    field: u8,\n}"),
    ("bound in an attribute", "#[serde(bound = \"T: crate::above::Acts\")] struct S<T>(T);"),
    ("attribute for some targets", "#[cfg_attr(unix, derive(crate::above::Acts))] struct S;"),
];

/// Code that names `above` and the root of the crate.
const BY_WAY_OF_THE_ROOT: &[(&str, &str)] = &[
    ("through the crate", "use crate as root;\nfn f() { root::above::act(); } // here"),
    ("through the name of the crate", "extern crate self as planted;\nuse planted::above::Thing; // here"),
    ("at the root", "use crate::{above::Thing, AT_ROOT};"),
    ("glob of the root", "use crate::*;\nfn f() { above::act() } // here"),
    ("glob of super", "fn f() {\n    use super::*;\n    above::act() // here\n}"),
];

#[test]
fn every_form_is_found() {
    assert_all_found(FAULTS, &["above"]);
}

#[test]
fn what_comes_by_way_of_the_root_is_found() {
    assert_all_found(BY_WAY_OF_THE_ROOT, &["above", ROOT]);
}

/// Asserts that each code has an arrow to `above` where it says, and none but those to `expected`.
fn assert_all_found(faults: &[(&str, &str)], expected: &[&str]) {
    let mut missed = Vec::new();
    for (form, code) in faults {
        let graph = planted(code);
        let is_here = |arrow: &&Arrow| arrow.to.starts_with("above") && arrow.place == here(code);
        if !graph.arrows().iter().any(|arrow| is_here(&arrow))
            || out_of_below(&graph) != expected.iter().copied().collect()
        {
            missed.push(format!("{form}: {code}\n    found {:#?}", graph.arrows()));
        }
        if !externals(&graph).is_empty() {
            missed.push(format!("{form}: {code}\n    names {:?}", externals(&graph)));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
