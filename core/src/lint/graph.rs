//! The order as a graph: a box for each wave, an edge from each object to what it waits for.

use std::{collections::BTreeMap, fmt::Write};

use super::order::{Order, Row, Sequence};

/// Objects of one stage, by the title of the stage.
fn stages(sequence: &Sequence) -> Vec<(String, Vec<(usize, &Row)>)> {
    let mut found: Vec<(String, Vec<(usize, &Row)>)> = Vec::new();
    for (index, row) in sequence.objects.iter().enumerate() {
        let stage = match (row.phase, row.wave) {
            (Some(phase), Some(wave)) => format!("{phase} wave {wave}"),
            (Some(phase), None) => phase.to_string(),
            (None, _) => "never applied".to_owned(),
        };
        let stage = match sequence.application.as_str() {
            "" => stage,
            application => format!("{application}: {stage}"),
        };
        match found.last_mut() {
            Some((last, members)) if *last == stage => members.push((index, row)),
            _ => found.push((stage, vec![(index, row)])),
        }
    }
    found
}

/// An edge between two objects of one Application, by their places in it.
struct Edge {
    from: usize,
    to: usize,
    via: &'static str,
    too_late: bool,
}

impl Edge {
    fn label(&self) -> String {
        if self.too_late { format!("{}: too late", self.via) } else { self.via.to_owned() }
    }
}

/// Everything is in its Namespace: those edges would only hide the others.
fn edges(rows: &[Row]) -> Vec<Edge> {
    let mut place = BTreeMap::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.phase.is_some()) {
        place.entry(&row.object).or_insert(index);
    }
    let mut found = Vec::new();
    for (from, row) in rows.iter().enumerate() {
        for wait in row.waits_for.iter().filter(|wait| wait.via != "namespace") {
            if let Some(to) = place.get(&wait.object) {
                found.push(Edge { from, to: *to, via: wait.via, too_late: wait.too_late });
            }
        }
    }
    found
}

/// As Graphviz reads it.
pub fn dot(order: &Order) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = String::from("digraph order {\n  rankdir=LR;\n  compound=true;\n  node [shape=box];\n");
    for (number, sequence) in order.applications.iter().enumerate() {
        let node = |index: usize| format!("a{number}n{index}");
        let stages = stages(sequence);
        for (stage, (name, members)) in stages.iter().enumerate() {
            let _ = writeln!(text, "  subgraph cluster_a{number}s{stage} {{\n    label={};", quoted(name));
            for (index, row) in members {
                let label = quoted(&format!("{}\n{}", row.object.kind.kind, row.object.path())).replace('\n', "\\n");
                let _ = writeln!(text, "    {} [label={label}];", node(*index));
            }
            text.push_str("  }\n");
        }
        for (stage, pair) in stages.windows(2).enumerate().filter(|(_, pair)| pair[1].1[0].1.wave.is_some()) {
            let ends = (node(pair[0].1[0].0), node(pair[1].1[0].0));
            let _ = writeln!(
                text,
                "  {} -> {} [ltail=cluster_a{number}s{stage}, lhead=cluster_a{number}s{}, style=dashed, color=gray];",
                ends.0,
                ends.1,
                stage + 1
            );
        }
        for edge in edges(&sequence.objects) {
            let look = if edge.too_late { ", color=red, fontcolor=red, penwidth=2" } else { "" };
            let (from, to, label) = (node(edge.from), node(edge.to), quoted(&edge.label()));
            let _ = writeln!(text, "  {from} -> {to} [label={label}{look}];");
        }
    }
    text.push_str("}\n");
    text
}

/// As Mermaid reads it, in a Markdown page of GitHub or GitLab too.
pub fn mermaid(order: &Order) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "#quot;"));
    let mut text = String::from("flowchart LR\n");
    let (mut links, mut late) = (0_usize, Vec::new());
    for (number, sequence) in order.applications.iter().enumerate() {
        let node = |index: usize| format!("a{number}n{index}");
        let stages = stages(sequence);
        for (stage, (name, members)) in stages.iter().enumerate() {
            let _ = writeln!(text, "  subgraph a{number}s{stage} [{}]", quoted(name));
            for (index, row) in members {
                let label = quoted(&format!("{}<br/>{}", row.object.kind.kind, row.object.path()));
                let _ = writeln!(text, "    {}[{label}]", node(*index));
            }
            text.push_str("  end\n");
        }
        for (stage, _) in stages.windows(2).enumerate().filter(|(_, pair)| pair[1].1[0].1.wave.is_some()) {
            let _ = writeln!(text, "  a{number}s{stage} -.-> a{number}s{}", stage + 1);
            links += 1;
        }
        for edge in edges(&sequence.objects) {
            if edge.too_late {
                late.push(links.to_string());
            }
            let _ = writeln!(text, "  {} -->|{}| {}", node(edge.from), quoted(&edge.label()), node(edge.to));
            links += 1;
        }
    }
    if !late.is_empty() {
        let _ = writeln!(text, "  linkStyle {} stroke:red,color:red", late.join(","));
    }
    text
}
