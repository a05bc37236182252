//! The order of a crate's modules: as a list, and as the document about the architecture draws it.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::Graph;

/// What in `graph` is against `order`, the list of the top modules from bottom to top.
///
/// A module may name those below it. Each arrow that goes up is listed, each module that the order does not have, and
/// each name in the order that is no module or stands there twice. The root and a binary beside the library are above
/// all modules.
pub fn ordered(graph: &Graph, order: &[impl AsRef<str>]) -> Vec<String> {
    let order: Vec<&str> = order.iter().map(AsRef::as_ref).collect();
    // From the top, so that the lowest place of a module counts that is in the order twice.
    let height: BTreeMap<&str, usize> =
        order.iter().enumerate().rev().map(|(height, module)| (*module, height)).collect();
    let mut faults = faults_of_the_list(graph, &order);
    for ((from, to), arrows) in graph.arrows_between_top_modules() {
        if let (Some(from), Some(to)) = (height.get(from), height.get(to))
            && from < to
        {
            faults.extend(arrows.iter().map(|arrow| format!("{arrow} goes up")));
        }
    }
    faults
}

fn faults_of_the_list(graph: &Graph, order: &[&str]) -> Vec<String> {
    let there = graph.top_modules();
    let listed: BTreeSet<&str> = order.iter().copied().collect();
    let again = (1..order.len()).filter(|at| order[..*at].contains(&order[*at]));
    let twice: BTreeSet<&str> = again.map(|at| order[at]).collect();
    let missing = there.difference(&listed).map(|module| format!("{module} is missing from the order"));
    let gone = listed.difference(&there).map(|module| format!("{module} is in the order, but is no module"));
    missing.chain(gone).chain(twice.iter().map(|module| format!("{module} is in the order twice"))).collect()
}

/// The order that a Markdown text draws, from bottom to top: the picture turned over, ready for [`ordered`].
///
/// The picture is the first block between lines of three backticks below the line `heading` (`## Map`, say) and before
/// the next heading. Each line that begins with a name is a module, the topmost first; what follows the name says what
/// it is for. `name/` and `name.rs` mean `name`. A line that begins with a blank goes on with the description above.
/// A line that begins with anything else, such as a rule, is drawing. Without the heading or the block there is no
/// order, and every module will be missing from it.
///
/// ````text
/// ## Map
///
/// ```
/// rules/      one file or folder a rule
///             that begins here and ends there
/// ───────────────────────
/// body.rs     conditions
/// ```
/// ````
pub fn order_in(markdown: &str, heading: &str) -> Vec<String> {
    let mut order: Vec<String> = picture(markdown, heading).into_iter().filter_map(module_of).collect();
    order.reverse();
    order
}

/// The lines of the first block below `heading`.
fn picture<'m>(markdown: &'m str, heading: &str) -> Vec<&'m str> {
    let (mut below, mut inside) = (false, false);
    let mut lines = Vec::new();
    for line in markdown.lines() {
        if line.starts_with("```") {
            if below && inside {
                break;
            }
            inside = !inside;
        } else if inside && below {
            lines.push(line);
        } else if !inside && line.starts_with('#') {
            below = line.trim_end() == heading;
        }
    }
    lines
}

/// The module that a line of the picture begins with.
fn module_of(line: &str) -> Option<String> {
    let word = line.split(char::is_whitespace).next()?;
    let name = word.trim_end_matches('/');
    let name = name.strip_suffix(".rs").unwrap_or(name);
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then(|| name.to_owned())
}
