//! Modules that name each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{Arrow, Graph, child};

/// Children of one module that all lead to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    /// The module whose children they are.
    pub parent: String,
    /// The children, each with all that is in it.
    pub modules: Vec<String>,
    /// One arrow for each two of them where one names the other.
    pub arrows: Vec<Arrow>,
}

/// A module that names something in a child, while the child names something in the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knot {
    /// The module.
    pub parent: String,
    /// Its child, with all that is in it.
    pub child: String,
    /// One arrow from the module to the child.
    pub down: Arrow,
    /// One arrow from the child to the module.
    pub up: Arrow,
}

impl Graph {
    /// The circles among the children of each module, at every depth.
    ///
    /// A child stands for all that is in it. What leads from a module to a child of its own or back is no part of a
    /// circle; [`Graph::knots`] has it.
    pub fn cycles(&self) -> Vec<Circle> {
        self.modules().iter().flat_map(|parent| self.circles_in(parent)).collect()
    }

    /// Each module and child of it that name each other.
    ///
    /// An item that the parent has from another child counts as the parent's, so a circle of children that goes through
    /// a `pub use` of the parent is here and not among [`Graph::cycles`].
    pub fn knots(&self) -> Vec<Knot> {
        let (mut down, mut up) = (BTreeMap::new(), BTreeMap::new());
        for arrow in self.arrows() {
            if let Some(child) = child(&arrow.from, &arrow.to) {
                down.entry((arrow.from.as_str(), child)).or_insert(arrow);
            }
            if let Some(child) = child(&arrow.to, &arrow.from) {
                up.entry((arrow.to.as_str(), child)).or_insert(arrow);
            }
        }
        down.into_iter()
            .filter_map(|((parent, child), down)| {
                let up = (*up.get(&(parent, child))?).clone();
                Some(Knot { parent: parent.to_owned(), child: child.to_owned(), down: down.clone(), up })
            })
            .collect()
    }

    fn circles_in(&self, parent: &str) -> Vec<Circle> {
        let between = self.arrows_between_children(parent);
        let reached = reached(between.keys().copied());
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for (module, theirs) in &reached {
            if !theirs.contains(module) || seen.contains(module) {
                continue;
            }
            let modules: BTreeSet<&str> =
                theirs.iter().copied().filter(|other| leads(&reached, other, module)).collect();
            let inside = |(from, to): (&str, &str)| modules.contains(from) && modules.contains(to);
            let arrows = between.iter().filter(|(ends, _)| inside(**ends)).map(|(_, all)| all[0].clone()).collect();
            seen.extend(modules.iter().copied());
            let modules = modules.into_iter().map(str::to_owned).collect();
            circles.push(Circle { parent: parent.to_owned(), modules, arrows });
        }
        circles
    }
}

/// What each module leads to, in any number of steps.
fn reached<'m>(edges: impl Iterator<Item = (&'m str, &'m str)>) -> BTreeMap<&'m str, BTreeSet<&'m str>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let from = |start: &'m str| {
        let (mut found, mut left) = (BTreeSet::new(), vec![start]);
        while let Some(module) = left.pop() {
            let steps = next.get(module).into_iter().flatten();
            left.extend(steps.copied().filter(|step| found.insert(*step)));
        }
        found
    };
    next.keys().map(|start| (*start, from(start))).collect()
}

fn leads(reached: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    reached.get(from).is_some_and(|found| found.contains(to))
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {}: {} lead to each other", self.parent, self.modules.join(", "))?;
        self.arrows.iter().try_for_each(|arrow| write!(f, "\n    {arrow}"))
    }
}

impl fmt::Display for Knot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and its child {} name each other\n    {}\n    {}", self.parent, self.child, self.down, self.up)
    }
}
