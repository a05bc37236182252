//! How modules are held against an order.

use super::graph;
use crate::{
    graph::Graph,
    order::{order_in, ordered},
};

fn three_floors(ground: &str) -> Graph {
    graph(&[
        ("src/lib.rs", "pub mod roof; pub mod middle; pub mod ground; use roof::Roof;"),
        ("src/roof.rs", "use crate::{ground, middle};"),
        ("src/middle.rs", "use crate::ground::Ground; use crate::Roof;"),
        ("src/ground.rs", ground),
        ("src/main.rs", "use planted_crate::roof;"),
    ])
}

#[test]
fn what_leads_down_is_in_order() {
    assert!(ordered(&three_floors(""), &["ground", "middle", "roof"]).is_empty());
}

#[test]
fn each_arrow_that_goes_up_is_listed() {
    let graph = three_floors("use crate::middle;\nmod inner { fn f() { crate::roof::R; super::super::middle::M; } }");
    let expected = [
        "src/ground.rs:1: ground -> middle (middle) goes up",
        "src/ground.rs:2: ground::inner -> middle (middle::M) goes up",
        "src/ground.rs:2: ground::inner -> roof (roof::R) goes up",
    ];
    assert_eq!(ordered(&graph, &["ground", "middle", "roof"]), expected);
}

#[test]
fn the_order_has_each_module_once_and_nothing_else() {
    let faults = ordered(&three_floors(""), &["ground", "cellar", "roof", "ground"]);
    let expected = [
        "middle is missing from the order",
        "cellar is in the order, but is no module",
        "ground is in the order twice",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn the_picture_is_read_from_the_ground_up() {
    let markdown = "# Architecture

```
## Map
cellar     of another heading
```

## Map

Prose: `middle` is between.

```text
## Map     inside of a block is no heading
roof/      the top, and           ┐
           more about it          │
middle.rs  between                ┘
──────────────────────────────────
ground
```

```
attic      a second block
```

## Map of something else

```
shed       of another heading
```
";
    assert_eq!(order_in(markdown, "## Map"), ["ground", "middle", "roof"]);
    assert_eq!(order_in(markdown, "# Architecture"), ["cellar"]);
    assert!(order_in(markdown, "## Nothing").is_empty());
    assert!(order_in("## Map\n## Next\n```\nroof\n```\n", "## Map").is_empty());
}

#[test]
fn the_picture_and_the_check_fit_together() {
    let order = order_in("## Map\n\n```\nroof/  a\nmiddle  b\nground.rs  c\n```\n", "## Map");
    assert!(ordered(&three_floors(""), &order).is_empty());
    assert_eq!(ordered(&three_floors("use crate::roof;"), &order).len(), 1);
}
