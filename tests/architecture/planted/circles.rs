//! How circles of modules are found.

use super::graph;

#[test]
fn a_circle_is_found_among_the_children_of_each_module() {
    let graph = graph(&[
        ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
        ("src/a/mod.rs", "mod x; mod y; mod z; use crate::b;"),
        ("src/a/x.rs", "use super::y;"),
        ("src/a/y.rs", "use super::z::Deep;"),
        ("src/a/z.rs", "use crate::{d::D,\n    a::x::X};"),
        ("src/b.rs", "use crate::c::C;"),
        ("src/c.rs", "fn f() { crate::a::x::X; }\nuse crate::d;"),
        ("src/d.rs", ""),
    ]);
    let told: Vec<String> = graph.cycles().iter().map(ToString::to_string).collect();
    let within_a = "in a: a::x, a::y, a::z lead to each other
    src/a/x.rs:1: a::x -> a::y (a::y)
    src/a/y.rs:1: a::y -> a::z (a::z::Deep)
    src/a/z.rs:2: a::z -> a::x (a::x::X)";
    let on_top = "in crate: a, b, c lead to each other
    src/a/mod.rs:1: a -> b (b)
    src/b.rs:1: b -> c (c::C)
    src/c.rs:1: c -> a::x (a::x::X)";
    assert_eq!(told, [within_a, on_top]);
}

#[test]
fn two_circles_of_one_parent_are_two() {
    let graph = graph(&[
        ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
        ("src/a.rs", "use crate::b;"),
        ("src/b.rs", "use crate::{a, c};"),
        ("src/c.rs", "use crate::d;"),
        ("src/d.rs", "use crate::c;"),
    ]);
    let found: Vec<Vec<String>> = graph.cycles().into_iter().map(|circle| circle.modules).collect();
    assert_eq!(found, [["a", "b"], ["c", "d"]]);
}

#[test]
fn a_module_and_its_child_are_a_knot_and_no_circle() {
    let graph = graph(&[
        ("src/lib.rs", "mod a; mod b; pub use a::A; pub struct Root;"),
        ("src/a/mod.rs", "mod x; mod y; pub use x::X; pub struct A;"),
        ("src/a/x/mod.rs", "mod deep; pub(in crate::a) struct Inner;"),
        ("src/a/x/deep.rs", "use super::super::A;"),
        ("src/a/y.rs", "use super::{A, x::X};"),
        ("src/b.rs", "use crate::Root;"),
    ]);
    assert!(graph.cycles().is_empty());
    let knots: Vec<String> = graph.knots().iter().map(ToString::to_string).collect();
    let expected = "a and its child a::x name each other
    src/a/mod.rs:1: a -> a::x (a::x::X)
    src/a/x/deep.rs:1: a::x::deep -> a (a::A)";
    assert_eq!(knots, [expected]);
    let up: Vec<&str> = graph.arrows_to_ancestors().iter().map(|arrow| arrow.from.as_str()).collect();
    assert_eq!(up, ["a::x::deep", "a::y", "b"]);
}

#[test]
fn what_only_begins_like_a_module_is_another_one() {
    let graph = graph(&[
        ("src/lib.rs", "mod rule; mod rules;"),
        ("src/rule.rs", "use crate::rules::x::X;"),
        ("src/rules/mod.rs", "mod x; mod xy;"),
        ("src/rules/x.rs", "use super::xy::Y;"),
        ("src/rules/xy.rs", ""),
    ]);
    assert!(graph.cycles().is_empty() && graph.knots().is_empty());
    let within: Vec<_> = graph.arrows_between_children("rules").into_keys().collect();
    assert_eq!(within, [("rules::x", "rules::xy")]);
    assert!(graph.arrows_between_children("rule").is_empty());
}
