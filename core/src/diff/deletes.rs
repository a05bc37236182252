//! What goes: objects that a prune takes, and Applications and sets with all that they deploy.

use std::collections::BTreeSet;

use super::{
    Changes, Piece, finding, is_claimed, is_grave,
    judged::{Judge, deploys},
    world::{World, uid},
};
use crate::{
    argo::{
        generated_names::Naming,
        sync_options::{HELM_RESOURCE_POLICY, SYNC_OPTIONS, in_annotation},
    },
    decision::{Outcome, Severity},
    deletion::Deletion,
    object::{ARGO_GROUP, ObjectMeta, ObjectRef},
    remedy::Remedy,
    report::{Location, ReportFinding},
    text::{count, some},
};

/// Finds everything that would go, and puts each delete to the judgement of the webhook.
pub fn find(changes: &Changes<'_>, world: &World<'_>, judge: &Judge<'_>, findings: &mut Vec<ReportFinding>) {
    let mut said: BTreeSet<ObjectRef> = BTreeSet::new();
    for (folder, piece) in &changes.gone {
        let never = world.known.get(*folder).is_some_and(|known| known.never_prunes);
        if changes.is_moved(piece) {
            said.insert(piece.object.clone());
            continue;
        }
        if stays(&piece.meta, never) {
            findings.push(left_behind(&world.path(folder), piece));
            continue;
        }
        said.insert(piece.object.clone());
        one(piece, &format!("{} prunes it", world.path(folder)), judge, findings);
    }
    for (_, old, new) in &changes.changed {
        if old.object.kind.is(ARGO_GROUP, "ApplicationSet") {
            renamed(old, new, world, judge, &mut said, findings);
        }
    }
    for folder in &changes.dropped {
        let Some(known) = world.known.get(*folder) else { continue };
        // Its parent or its set has said it already.
        if !said.insert(known.object.clone()) {
            continue;
        }
        let why =
            if known.assumed { "it is not rendered any more; if that means that it is deleted" } else { "it goes" };
        let piece = Piece {
            object: known.object.clone(),
            meta: ObjectMeta::default(),
            value: serde_json::Value::Null,
            location: Location { file: String::new(), line: 0, column: 0 },
        };
        one(&piece, why, judge, findings);
    }
}

/// Whether a prune passes an object by.
fn stays(meta: &ObjectMeta, never: bool) -> bool {
    let own = in_annotation(meta.annotation(SYNC_OPTIONS), "Prune");
    own.map_or(never, |value| value == "false") || meta.annotation(HELM_RESOURCE_POLICY) == Some("keep")
}

fn left_behind(application: &str, piece: &Piece) -> ReportFinding {
    finding(
        "left-behind",
        Severity::Warn,
        piece,
        "an object that is never pruned leaves Git: it stays, and nobody manages it any more",
        format!("{} leaves {application} and is never pruned: it stays without an owner", piece.object),
    )
}

/// One object that goes.
fn one(piece: &Piece, why: &str, judge: &Judge<'_>, findings: &mut Vec<ReportFinding>) {
    let object = &piece.object;
    let (outcomes, deletion) = judge.delete(object).unwrap_or_default();
    let claimed = outcomes.iter().any(|outcome| is_claimed(outcome.finding.check));
    findings.extend(outcomes.iter().map(|outcome| judged(outcome, piece)));
    if claimed && !object.kind.takes_others() {
        return;
    }
    let (along, held) = deletion.as_ref().map(|deletion| along(object, deletion)).unwrap_or_default();
    let takes_nothing = deletion.as_ref().is_some_and(Deletion::takes_nothing);
    let grave = is_grave(object) && !(deploys(object) && takes_nothing);
    let mut detail = format!("{object} goes: {why}{along}");
    let finalizers = if held.is_empty() { &piece.meta.finalizers } else { &held };
    if !finalizers.is_empty() && !deploys(object) {
        let names = some(finalizers, 3);
        detail.extend(["; it hangs until somebody serves its finalizers (", &names, ")"]);
    }
    let summary = match object.kind.kind.as_str() {
        "Namespace" => "a Namespace would be deleted, and everything in it",
        "CustomResourceDefinition" => "a definition would be deleted, and every instance in the cluster",
        "PersistentVolumeClaim" | "PersistentVolume" => "a volume would be deleted, and perhaps its data",
        "Application" | "ApplicationSet" if takes_nothing => "an Application would be deleted; its objects stay",
        "Application" | "ApplicationSet" => "an Application would be deleted with all that it deploys",
        _ => "an object would be deleted",
    };
    let severity = if grave { Severity::Deny } else { Severity::Warn };
    let mut found = finding("deleted", severity, piece, summary, detail);
    if grave {
        found.remedies.push(way_out(object));
    }
    findings.push(found);
}

fn way_out(object: &ObjectRef) -> Remedy {
    if deploys(object) {
        "to keep its objects, merge a change first that takes the finalizers away from the Application".into()
    } else {
        let option = format!("{SYNC_OPTIONS}: Prune=false");
        format!("to keep it, merge a change first that annotates it with {option}, and let that sync").into()
    }
}

/// What the webhook found, at the place of the manifest.
fn judged(outcome: &Outcome, piece: &Piece) -> ReportFinding {
    let mut found = ReportFinding::new(&outcome.finding);
    // A way out that names a UID which is made up here helps nobody.
    let made_up = uid(&found.object);
    found.remedies.retain(|way| !way.commands.iter().any(|command| command.as_str().contains(&made_up)));
    if piece.location.file.is_empty() { found } else { found.at(piece.location.clone()) }
}

/// What goes along, in words, and the finalizers that hold the object itself.
fn along(object: &ObjectRef, deletion: &Deletion) -> (String, Vec<String>) {
    let items = &deletion.plan.items;
    let own = items.iter().find(|item| item.object.as_ref() == Some(object));
    let held = own.map(|item| item.finalizers.clone()).unwrap_or_default();
    let going: Vec<_> =
        items.iter().filter(|item| !item.fate.is_spared() && item.object.as_ref() != Some(object)).collect();
    if going.is_empty() {
        return (String::new(), held);
    }
    let mut grave: Vec<String> = going
        .iter()
        .filter_map(|item| item.object.as_ref())
        .filter(|object| is_grave(object))
        .map(ToString::to_string)
        .collect();
    grave.sort();
    let named = if grave.is_empty() { String::new() } else { format!(", {} among them", some(&grave, 4)) };
    (format!(", and takes {} along{named}", count(going.len(), "object")), held)
}

/// Applications that an ApplicationSet generates no more: the old ones cascade before the new ones are there.
fn renamed(
    old: &Piece,
    new: &Piece,
    world: &World<'_>,
    judge: &Judge<'_>,
    said: &mut BTreeSet<ObjectRef>,
    findings: &mut Vec<ReportFinding>,
) {
    let read = |piece: &Piece| Naming::of(&piece.value.to_string()).unwrap_or_default();
    let (before, after) = (read(old), read(new));
    let mut names: Vec<String> = world.generated.get(&old.object).cloned().unwrap_or_default();
    names.extend(before.names().into_iter().flatten().cloned());
    names.sort();
    names.dedup();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let dropped = before.dropped(&after, &all);
    for name in &dropped.names {
        let object = ObjectRef::application(&old.object.namespace, name);
        let known = world.known.get(*name).map_or(object, |known| known.object.clone());
        if !said.insert(known.clone()) {
            continue;
        }
        let perhaps = if dropped.surely { "" } else { ", as far as its template can be read," };
        let piece = Piece { object: known, ..new.clone() };
        let why = format!(
            "{}{perhaps} does not generate it any more, and it cascades before one of another name exists",
            new.object
        );
        one(&piece, &why, judge, findings);
    }
}
