//! Overlap as a picture: Applications on the left, what they share on the right, and between them who would delete it.

use cascade_guard_core::text::{clip, count};
use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::audit::Overlap;

/// So many groups of Applications are drawn; the table has them all.
const MAX_GROUPS: usize = 12;
/// So many rows a picture has on each side.
const MAX_ROWS: usize = 16;
/// A label of more characters is cut; the table has it whole.
const MAX_LABEL: usize = 44;
const ROW: usize = 34;
const WIDTH: usize = 960;
const LEFT: usize = 300;
const RIGHT: usize = 560;

/// Applications that share objects with each other, directly or through others.
struct Group<'a> {
    apps: Vec<&'a str>,
    overlaps: Vec<&'a Overlap>,
}

/// Objects of one kind in one place that the same Applications claim.
struct Shared<'a> {
    label: String,
    claimants: &'a [String],
    tracked_by: Option<&'a str>,
}

pub(super) fn section(overlaps: &[Overlap]) -> Markup {
    let groups = groups(overlaps);
    html! {
        section #overlaps {
            h2 { "Claimed by several Applications" }
            @if overlaps.is_empty() {
                p.ok { "No object is claimed twice." }
            } @else {
                p {
                    "Each line is a claim. " span.key-track { "Solid red" } " comes from the Application that tracks the object: deleting "
                    "that one deletes the object under all the others. " span.key-claim { "Dashed" } " ones would lose it."
                }
                @for (number, group) in groups.iter().take(MAX_GROUPS).enumerate() {
                    figure {
                        figcaption { (caption(group)) }
                        (draw(group, number))
                        details { summary { "All " (group.overlaps.len()) " objects as a table" } (table(&group.overlaps)) }
                    }
                }
                @if groups.len() > MAX_GROUPS {
                    @let rest: Vec<&Overlap> = groups[MAX_GROUPS..].iter().flat_map(|group| group.overlaps.iter().copied()).collect();
                    details { summary { (groups.len() - MAX_GROUPS) " more groups of Applications share " (rest.len()) " objects" } (table(&rest)) }
                }
            }
        }
    }
}

/// The Application that stands for everything `app` shares with.
fn find<'a>(leader: &BTreeMap<&'a str, &'a str>, app: &'a str) -> &'a str {
    let mut at = app;
    while let Some(next) = leader.get(at).filter(|next| **next != at) {
        at = next;
    }
    at
}

/// The connected parts of "claims the same object", the one with the most shared objects first.
fn groups(overlaps: &[Overlap]) -> Vec<Group<'_>> {
    let mut leader: BTreeMap<&str, &str> = BTreeMap::new();
    for overlap in overlaps {
        let Some(first) = overlap.claimants.first() else { continue };
        let to = find(&leader, first);
        leader.entry(to).or_insert(to);
        for app in &overlap.claimants {
            let from = find(&leader, app);
            leader.insert(from, to);
        }
    }
    let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
    for overlap in overlaps {
        let Some(first) = overlap.claimants.first() else { continue };
        let group =
            groups.entry(find(&leader, first)).or_insert_with(|| Group { apps: Vec::new(), overlaps: Vec::new() });
        group.overlaps.push(overlap);
    }
    let mut groups: Vec<Group<'_>> = groups.into_values().collect();
    for group in &mut groups {
        let apps: BTreeSet<&str> =
            group.overlaps.iter().flat_map(|overlap| overlap.claimants.iter().map(String::as_str)).collect();
        group.apps = apps.into_iter().collect();
    }
    groups.sort_by(|a, b| (b.overlaps.len(), &a.apps).cmp(&(a.overlaps.len(), &b.apps)));
    groups
}

/// Kind, namespace, claimants and tracker: what objects of one row have in common.
type SharedKey<'k> = (&'k str, &'k str, &'k [String], Option<&'k str>);

/// What is drawn on the right: one row an object, or one row a kind where a row an object would be too many.
fn shared<'a>(group: &Group<'a>) -> Vec<Shared<'a>> {
    if group.overlaps.len() <= MAX_ROWS {
        let one = |overlap: &&'a Overlap| Shared {
            label: name(overlap),
            claimants: &overlap.claimants,
            tracked_by: overlap.tracked_by.as_deref(),
        };
        return group.overlaps.iter().map(one).collect();
    }
    let mut kinds: BTreeMap<SharedKey<'a>, usize> = BTreeMap::new();
    for overlap in &group.overlaps {
        let object = &overlap.object;
        let place =
            (object.kind.kind.as_str(), object.namespace.as_str(), &*overlap.claimants, overlap.tracked_by.as_deref());
        *kinds.entry(place).or_default() += 1;
    }
    let mut rows: Vec<(usize, Shared<'a>)> = kinds
        .into_iter()
        .map(|((kind, namespace, claimants, tracked_by), count)| {
            let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
            (count, Shared { label: format!("{count} {kind}{place}"), claimants, tracked_by })
        })
        .collect();
    rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn name(overlap: &Overlap) -> String {
    if overlap.object.name.is_empty() {
        format!("a {} in {}", overlap.object.kind.kind, overlap.object.namespace)
    } else {
        overlap.object.to_string()
    }
}

fn caption(group: &Group<'_>) -> String {
    let objects = count(group.overlaps.len(), "object");
    match group.apps[..] {
        [a, b] => format!("{a} and {b} share {objects}"),
        _ => format!("{} Applications share {objects}", group.apps.len()),
    }
}

/// The name of an Application in markers: its own, or `namespace_name` outside the controller's namespace.
fn is_tracked_by(app: &str, instance: &str) -> bool {
    app.split_once('/')
        .is_some_and(|(namespace, name)| name == instance || instance.split_once('_') == Some((namespace, name)))
}

fn draw(group: &Group<'_>, number: usize) -> Markup {
    let rows = shared(group);
    let (apps, hidden_apps) = split(&group.apps);
    let (rows, hidden_rows) = split(&rows);
    let lines = apps.len().max(rows.len()) + usize::from(hidden_apps + hidden_rows > 0);
    let height = lines * ROW + 12;
    let centre = |place: usize, of: usize| (place * 2 + 1) * (lines * ROW) / (of * 2) + 6;
    let title = format!("graph-{number}");
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-labelledby=(title) {
            title #(title) { (caption(group)) }
            @for (row, shared) in rows.iter().enumerate() {
                @for (place, app) in apps.iter().enumerate().filter(|(_, app)| shared.claimants.iter().any(|claimant| claimant == *app)) {
                    @let tracks = shared.tracked_by.is_some_and(|instance| is_tracked_by(app, instance));
                    path class=(if tracks { "link track" } else { "link" }) d=(curve(centre(place, apps.len()), centre(row, rows.len()))) {}
                }
            }
            @for (place, app) in apps.iter().enumerate() {
                @let y = centre(place, apps.len());
                rect.app x="8" y=(y - 12) width=(LEFT - 8) height="24" rx="5" {}
                text.app x=(LEFT - 10) y=(y + 5) text-anchor="end" { (clip(app, MAX_LABEL)) }
            }
            @for (row, shared) in rows.iter().enumerate() {
                @let y = centre(row, rows.len());
                rect.object x=(RIGHT) y=(y - 12) width=(WIDTH - RIGHT - 8) height="24" rx="5" {}
                text.object x=(RIGHT + 10) y=(y + 5) { (clip(&shared.label, MAX_LABEL)) }
            }
            @if hidden_apps > 0 { text.more x="8" y=(height - 8) { "and " (hidden_apps) " more Applications" } }
            @if hidden_rows > 0 { text.more x=(RIGHT) y=(height - 8) { "and " (hidden_rows) " more" } }
        }
    }
}

/// What is drawn, and how much is not.
fn split<T>(rows: &[T]) -> (&[T], usize) {
    let shown = rows.len().min(MAX_ROWS);
    (&rows[..shown], rows.len() - shown)
}

fn curve(from: usize, to: usize) -> String {
    let middle = usize::midpoint(LEFT, RIGHT);
    format!("M{LEFT} {from} C{middle} {from} {middle} {to} {RIGHT} {to}")
}

fn table(overlaps: &[&Overlap]) -> Markup {
    html! {
        table {
            thead { tr { th { "Object" } th { "Cluster" } th { "Claimed by" } th { "Tracked by" } } }
            tbody {
                @for overlap in overlaps {
                    tr {
                        td { (name(overlap)) }
                        td { (overlap.cluster) }
                        td { (overlap.claimants.join(", ")) }
                        td { (overlap.tracked_by.as_deref().unwrap_or("not known")) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cascade_guard_core::object::ObjectRef;

    fn overlap(name: &str, claimants: &[&str]) -> Overlap {
        Overlap {
            object: ObjectRef::new("", "ConfigMap", "shop", name),
            cluster: "in-cluster".to_owned(),
            claimants: claimants.iter().map(|app| (*app).to_owned()).collect(),
            tracked_by: None,
        }
    }

    #[test]
    fn applications_that_share_through_others_are_one_group() {
        let overlaps = [overlap("1", &["n/a", "n/b"]), overlap("2", &["n/x", "n/y"]), overlap("3", &["n/b", "n/c"])];
        let groups = groups(&overlaps);
        let apps: Vec<_> = groups.iter().map(|group| group.apps.clone()).collect();
        assert_eq!(apps, [vec!["n/a", "n/b", "n/c"], vec!["n/x", "n/y"]]);
    }

    #[test]
    fn many_objects_become_one_row_a_kind() {
        let overlaps: Vec<_> = (0..40).map(|n| overlap(&n.to_string(), &["n/a", "n/b"])).collect();
        let groups = groups(&overlaps);
        let rows = shared(&groups[0]);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].label, "40 ConfigMap in shop");
    }

    #[test]
    fn marker_names_an_application_with_or_without_its_namespace() {
        assert!(is_tracked_by("argocd/a", "a"));
        assert!(is_tracked_by("team/a", "team_a"));
        assert!(!is_tracked_by("team/a", "b"));
    }
}
