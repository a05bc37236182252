//! How `mod` declarations are followed.

use super::{graph, planted, try_graph};

fn modules(files: &[(&str, &str)]) -> Vec<String> {
    graph(files).modules().iter().cloned().collect()
}

#[test]
fn files_are_found_where_the_compiler_looks() {
    let found = modules(&[
        ("src/lib.rs", "mod a; mod b; pub mod r#type;"),
        ("src/a.rs", "mod one; mod inline { mod deep; }"),
        ("src/a/one.rs", ""),
        ("src/a/inline/deep.rs", ""),
        ("src/b/mod.rs", "mod two; mod inline { mod deep; }"),
        ("src/b/two/mod.rs", ""),
        ("src/b/inline/deep/mod.rs", ""),
        ("src/type.rs", ""),
        ("src/nobody.rs", "names nothing"),
    ]);
    let expected = ["a", "a::inline", "a::inline::deep", "a::one", "b", "b::inline", "b::inline::deep", "b::two"];
    assert_eq!(found, [&expected[..], &["crate", "type"]].concat());
}

#[test]
fn a_path_leads_to_any_file() {
    let found = modules(&[
        ("src/lib.rs", "#[path = \"odd/place.rs\"] mod a; mod b; #[path = \"new\"] mod inline { mod c; }"),
        ("src/odd/place.rs", "mod beside;"),
        ("src/odd/beside.rs", ""),
        ("src/b.rs", "#[path = \"../shared/x.rs\"] mod x; mod inline { #[path = \"y.rs\"] mod y; }"),
        ("shared/x.rs", ""),
        ("src/b/inline/y.rs", ""),
        ("src/new/c.rs", ""),
    ]);
    let expected = ["a", "a::beside", "b", "b::inline", "b::inline::y", "b::x", "crate", "inline", "inline::c"];
    assert_eq!(found, expected);
}

#[test]
fn a_module_for_each_target_is_one_module() {
    let graph = graph(&[
        ("src/lib.rs", "mod a; #[cfg(unix)] mod os; #[cfg(windows)] #[path = \"windows.rs\"] mod os;"),
        ("src/a.rs", "use crate::os::deep::Deep;"),
        ("src/os.rs", "use crate::a;"),
        ("src/windows.rs", "mod deep;\nuse crate::a;"),
        ("src/deep.rs", ""),
    ]);
    let told: Vec<String> = graph.arrows().iter().map(ToString::to_string).collect();
    let down = "src/a.rs:1: a -> os::deep (os::deep::Deep)";
    assert_eq!(told, [down, "src/os.rs:1: os -> a (a)", "src/windows.rs:2: os -> a (a)"]);
}

#[test]
fn modules_for_tests_are_not_even_opened() {
    let found = modules(&[
        ("src/lib.rs", "#[cfg(test)] mod testing; mod a; mod b;"),
        ("src/a.rs", "#[cfg(test)] mod tests;"),
        ("src/b.rs", "#![cfg(test)]"),
    ]);
    assert_eq!(found, ["a", "crate"]);
}

#[test]
fn a_binary_stands_beside_its_library() {
    let graph = graph(&[
        ("src/lib.rs", "pub mod a;"),
        ("src/a.rs", ""),
        ("src/main.rs", "mod own; fn main() { planted_crate::a::run(); own::run(); crate::own::run(); }"),
        ("src/own.rs", "fn run() { crate::own::run(); planted_crate::a::run(); std::process::exit(1); }"),
    ]);
    assert_eq!(graph.modules().iter().collect::<Vec<_>>(), ["a", "crate", "main.rs", "main.rs::own"]);
    assert_eq!(graph.top_modules(), ["a"].into());
    let arrows = [("main.rs", "a"), ("main.rs", "main.rs::own"), ("main.rs::own", "a")];
    let mut found: Vec<_> = graph.arrows().iter().map(|arrow| (arrow.from.as_str(), arrow.to.as_str())).collect();
    found.dedup();
    assert_eq!(found, arrows);
    assert_eq!(graph.externals().len(), 1);
}

#[test]
fn a_binary_alone_is_the_crate() {
    let found = modules(&[("src/main.rs", "mod a;"), ("src/a.rs", "")]);
    assert_eq!(found, ["a", "crate"]);
}

#[test]
fn sources_that_cannot_be_read_are_a_problem() {
    let problem = |files: &[(&str, &str)]| try_graph(files).unwrap_err();
    assert_eq!(problem(&[]), "src has neither lib.rs nor main.rs");
    assert_eq!(problem(&[("src/lib.rs", "mod a;")]), "src/lib.rs: the module a has no file");
    let around = [("src/lib.rs", "mod a;"), ("src/a.rs", "#[path = \"a.rs\"] mod a;")];
    assert_eq!(problem(&around), "src/a.rs: the module a leads back to src/a.rs");
    assert!(problem(&[("src/lib.rs", "mod a;"), ("src/a.rs", "\nfn (")]).starts_with("src/a.rs:2: "));
}

#[test]
fn an_arrow_is_told_with_its_place_and_what_it_names() {
    let graph = planted("use crate::above::{\n    deep::Deeper as Other,\n    *,\n};\nfn f(_: super::above::Kind) {}");
    let told: Vec<String> = graph.arrows().iter().map(ToString::to_string).collect();
    let expected = [
        "src/below.rs:3: below -> above (above::*)",
        "src/below.rs:5: below -> above (above::Kind)",
        "src/below.rs:2: below -> above::deep (above::deep::Deeper)",
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_is_passed_on_leads_to_who_passes_it_on() {
    let graph = graph(&[
        ("src/lib.rs", "mod deletion; mod rules; mod user; mod other;"),
        ("src/deletion.rs", "pub struct Deletion;"),
        ("src/rules.rs", "pub use crate::deletion::Deletion;"),
        ("src/user.rs", "use crate::rules::Deletion;"),
        ("src/other.rs", "use crate::rules::*; fn f() { Deletion::new(); }"),
    ]);
    let between: Vec<_> = graph.arrows_between_top_modules().into_keys().collect();
    assert_eq!(between, [("other", "rules"), ("rules", "deletion"), ("user", "rules")]);
}

#[test]
fn a_function_hides_no_module_of_its_name() {
    let arrows = |user: &str| {
        let graph = graph(&[
            ("src/lib.rs", "mod judge; mod other; mod user;"),
            ("src/judge.rs", "pub enum Said { Yes }"),
            ("src/other.rs", "pub fn judge() {}"),
            ("src/user.rs", user),
        ]);
        let below = graph.arrows().iter().filter(|arrow| arrow.place.line == 2);
        below.map(|arrow| arrow.item.clone()).collect::<Vec<_>>()
    };
    assert_eq!(arrows("use crate::{judge, other::judge};\nfn f() { judge::Said::Yes; }"), ["judge::Said::Yes"]);
    assert_eq!(arrows("use crate::{other::judge, judge};\nfn f() { judge::Said::Yes; }"), ["judge::Said::Yes"]);
    let in_a_block = "use crate::judge; fn f() { use crate::other::judge;\n judge::Said::Yes; }";
    assert_eq!(arrows(in_a_block), ["judge::Said::Yes"]);
    assert_eq!(arrows("use crate::other::judge;\nfn f() { judge::Said::Yes; }"), ["other::judge::Said::Yes"]);
}
