//! What admission never sees: objects that Argo CD passes over without sending them, and Namespaces and definitions that
//! come in an order nobody wrote down.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    manifest::{Input, Manifest},
    order::{Order, Row},
    set::{Found, Set},
};
use crate::{
    argo::{
        hook::{HELM_WEIGHT, Phase, SYNC_WAVE, atoi},
        sync_options::is_kept,
    },
    catalog::{
        Check,
        sync_wave::{
            ANNOTATION_NO_TEXT, MALFORMED_WAVE, MALFORMED_WEIGHT, MOVED_FORWARD, NAMESPACE_BY_OPTION,
            NAMESPACE_MISSING, OTHER_APPLICATION, REMOVED_FIRST, SAME_NAME,
        },
    },
    decision::{Finding, Severity},
    object::{GroupKind, ObjectRef},
    rules::sync_wave::fixes,
};

/// Namespaces of every cluster.
const ALWAYS_THERE: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

fn finding(manifest: &Manifest, severity: Severity, check: &'static Check, summary: &str, detail: String) -> Finding {
    Finding::new(check, severity, manifest.object.clone(), summary).detail(detail)
}

/// Looks through a set of manifests.
pub fn check(set: &Set<'_>, inputs: &[Input], order: &Order, found: &mut Vec<Found>) {
    for (index, manifest) in set.manifests.iter().enumerate() {
        no_text(index, manifest, found);
    }
    same_name(set, inputs, found);
    for (number, sequence) in order.applications.iter().enumerate() {
        moved(set, &sequence.objects, found);
        namespaces(set, number, &sequence.objects, found);
        definitions(set, number, &sequence.objects, found);
    }
}

/// `GetAnnotations` of a Kubernetes object gives up on all of them when one is no text.
fn no_text(index: usize, manifest: &Manifest, found: &mut Vec<Found>) {
    for key in &manifest.not_text {
        let value = manifest.meta.annotation(key).unwrap_or_default();
        let finding = finding(
            manifest,
            Severity::Deny,
            &ANNOTATION_NO_TEXT,
            "Argo CD reads no annotation at all of an object that has one which is no text, and the API server refuses it",
            format!("{key}: {value} is no text"),
        );
        let finding = finding.on_annotation(key);
        let is_number = [SYNC_WAVE, HELM_WEIGHT].contains(&key.as_str());
        let quoted = |text: &str, description: &str| {
            fixes::annotate(&manifest.meta, &[(key.as_str(), text.to_owned())], description)
        };
        let finding = if !is_number {
            finding.remedy(format!("write one of the words that Argo CD knows for {key}"))
        } else if atoi(value).is_some() {
            finding
                .remedy(format!("put the value into quotes, {key}: \"{value}\""))
                .fixed_by(quoted(value, "put the value into quotes"))
        } else if let Some(number) = fixes::rounded(value) {
            finding
                .remedy(format!("write a whole number in quotes, {key}: \"{number}\""))
                .fixed_by(quoted(&number, "write a whole number in quotes"))
        } else {
            finding.remedy(format!("write the number that is meant in quotes, such as {key}: \"5\""))
        };
        found.push((index, finding));
    }
}

/// Whether [`no_text`] says the same, and how to mend it, of the same annotation.
pub fn is_said_of_no_text(manifest: &Manifest, finding: &Finding) -> bool {
    let of = |key: &str| finding.field.replace("~1", "/") == format!("/metadata/annotations/{key}");
    [&MALFORMED_WAVE, &MALFORMED_WEIGHT].contains(&finding.check) && manifest.not_text.iter().any(|key| of(key))
}

/// Of several manifests of one object Argo CD keeps the last (`controller/state.go`, `DeduplicateTargetObjects`).
fn same_name(set: &Set<'_>, inputs: &[Input], found: &mut Vec<Found>) {
    for group in set.repeated() {
        let Some((winner, others)) = group.split_last() else { continue };
        let winner = &set.manifests[*winner];
        for index in others {
            let manifest = &set.manifests[*index];
            let same = manifest.meta == winner.meta && manifest.work == winner.work;
            let hook = manifest.hook.is_some() || winner.hook.is_some();
            let severity = if hook && !same { Severity::Deny } else { Severity::Warn };
            let place = format!("{}:{}", inputs[winner.written.input].name, winner.written.lines_before + 1);
            let stage = |manifest: &Manifest| {
                manifest.stage.map_or_else(|| "never applied".to_owned(), |stage| format!("{stage}"))
            };
            let what = if manifest.hook.is_some() { "hook" } else { "manifest" };
            let mut finding = finding(
                manifest,
                severity,
                &SAME_NAME,
                "of several manifests of one kind and name Argo CD keeps the last and passes over the others",
                format!(
                    "another {} follows in {place} ({}); this {what} ({}) never comes about",
                    manifest.object,
                    stage(winner),
                    stage(manifest)
                ),
            );
            "/metadata/name".clone_into(&mut finding.field);
            let remedy = if hook { "give each hook a name of its own" } else { "keep one of them" };
            found.push((*index, finding.remedy(remedy)));
        }
    }
}

/// A wave that someone wrote and that does not count.
fn moved(set: &Set<'_>, rows: &[Row], found: &mut Vec<Found>) {
    for (at, row) in rows.iter().enumerate() {
        let manifest = &set.manifests[row.manifest];
        let Some(from) = row.moved_from.filter(|_| manifest.meta.annotation(SYNC_WAVE).is_some()) else { continue };
        let Some(first) = rows[at + 1..].iter().find(|other| is_in(&other.object, manifest)) else { continue };
        let stage = first.phase.map(Phase::as_str).unwrap_or_default();
        let wave = first.wave.unwrap_or_default();
        let mut finding = finding(
            manifest,
            Severity::Warn,
            &MOVED_FORWARD,
            "Argo CD moves Namespaces and definitions in front of the first object that needs them; their own wave does not \
             count",
            format!("says {from}, but {} comes in {stage} wave {wave}: Argo CD creates this there", first.object),
        );
        finding.regarding = Some(first.object.clone());
        found.push((
            row.manifest,
            finding
                .remedy(format!("leave {SYNC_WAVE} away, or give {} a later one", first.object))
                .on_annotation(SYNC_WAVE),
        ));
    }
}

fn is_in(object: &ObjectRef, container: &Manifest) -> bool {
    let defined = container.defines.as_ref().is_some_and(|defined| defined.kind == object.kind);
    defined || (container.object.is_namespace() && object.namespace == container.object.name)
}

/// The rows of each namespace, in order.
fn by_namespace(rows: &[Row]) -> BTreeMap<&str, Vec<&Row>> {
    let mut found: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.phase.is_some() && !row.object.namespace.is_empty()) {
        found.entry(&row.object.namespace).or_default().push(row);
    }
    found
}

fn namespaces(set: &Set<'_>, number: usize, rows: &[Row], found: &mut Vec<Found>) {
    let application = &set.applications[number];
    for (name, members) in by_namespace(rows) {
        let namespace = ObjectRef::namespace(name);
        let own = set.own(number, &namespace).filter(|manifest| manifest.stage.is_some());
        if let Some(own) = own {
            let kept = is_kept(&own.meta, application.keeps_objects) || !application.cascades;
            for row in members.iter().filter(|row| !kept && row.phase == Some(Phase::PostDelete)) {
                let mut finding = finding(
                    &set.manifests[row.manifest],
                    Severity::Warn,
                    &REMOVED_FIRST,
                    "a PostDelete hook needs something that is gone by the time it runs",
                    format!("PostDelete needs {namespace}: the deletion of its Application removes that first"),
                );
                finding.regarding = Some(namespace.clone());
                "/metadata/namespace".clone_into(&mut finding.field);
                found.push((row.manifest, finding.remedy("use PreDelete, or run it in a Namespace that stays")));
            }
            continue;
        }
        if ALWAYS_THERE.contains(&name) || set.context.exists(&namespace) == Some(true) {
            continue;
        }
        let is_hook = |row: &&&Row| set.manifests[row.manifest].hook.is_some();
        let option = application.creates_namespace && application.namespace == name;
        let first_hook = members.iter().find(is_hook);
        let (row, check, summary, detail, remedy) = if let Some(other) = set.other(number, &namespace) {
            (
                members.first(),
                &OTHER_APPLICATION,
                "something this needs is created by another Application, and nothing orders two Applications",
                format!("needs {namespace}; {} creates it, in no order with this", other.path),
                "let one Application create the Namespace before the other is made, or create it outside of both",
            )
        } else if option {
            (
                first_hook,
                &NAMESPACE_BY_OPTION,
                "hooks run in a Namespace that only CreateNamespace=true makes; a sync that is started without that \
                 option fails at the first of them",
                format!(
                    "{namespace} is in no manifest; only a sync that carries CreateNamespace=true of Application {} \
                     makes it",
                    application.path
                ),
                "add a Namespace manifest with argocd.argoproj.io/sync-options: Delete=false, or create it outside",
            )
        } else if set.context.exists(&namespace) == Some(false) {
            (
                members.first(),
                &NAMESPACE_MISSING,
                "objects go into a Namespace that does not exist and that nobody known creates",
                format!("{namespace} does not exist, is in no manifest, and no CreateNamespace=true makes it"),
                "add a Namespace manifest, or set CreateNamespace=true",
            )
        } else {
            continue;
        };
        let Some(row) = row else { continue };
        let mut finding = finding(&set.manifests[row.manifest], Severity::Warn, check, summary, detail);
        finding.regarding = Some(namespace);
        "/metadata/namespace".clone_into(&mut finding.field);
        found.push((row.manifest, finding.remedy(remedy)));
    }
}

/// Instances whose definition another of the Applications brings.
fn definitions(set: &Set<'_>, number: usize, rows: &[Row], found: &mut Vec<Found>) {
    let defined = |own: bool| -> BTreeMap<&GroupKind, &Manifest> {
        let all = set.manifests.iter().filter(|manifest| (manifest.application == number) == own);
        all.filter_map(|manifest| Some((&manifest.defines.as_ref()?.kind, manifest))).collect()
    };
    let (own, elsewhere) = (defined(true), defined(false));
    let mut said = BTreeSet::new();
    for row in rows.iter().filter(|row| row.phase.is_some()) {
        let kind = &row.object.kind;
        let Some(definition) = elsewhere.get(kind).filter(|_| !own.contains_key(kind)) else { continue };
        if set.context.exists(&definition.object) == Some(true) || !said.insert(kind) {
            continue;
        }
        let application = &set.applications[definition.application].path;
        let mut finding = finding(
            &set.manifests[row.manifest],
            Severity::Warn,
            &OTHER_APPLICATION,
            "something this needs is created by another Application, and nothing orders two Applications",
            format!("its definition {} is created by {application}, in no order with this", definition.object.name),
        );
        finding.regarding = Some(definition.object.clone());
        "/kind".clone_into(&mut finding.field);
        let remedy = "install definitions first, or put SkipDryRunOnMissingResource=true into the sync-options of the \
                      instances and let the sync retry";
        found.push((row.manifest, finding.remedy(remedy)));
    }
}
