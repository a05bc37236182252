//! What goes although no Application claims it, and what will not go: said as warnings, because nobody else says it.

use std::collections::{BTreeSet, HashSet};

use crate::{
    argo::sync_options::is_kept,
    catalog::shared_claim::{FINALIZER, UNCLAIMED},
    decision::{Finding, Severity},
    deletion::{
        Deletion, Fate, Item, Spared, Unlisted, Via, defined_by, find_name, unknown_claimants_in, unlisted_instances,
    },
    facts::{Facts, Reading},
    inventory::{AppId, LOCAL},
    object::{ARGO_GROUP, GroupKind, ObjectRef},
    policy::RuleKey,
    rules::Context,
    text::{count, some},
};

/// So many are named.
const NAMED: usize = 2;
/// So many objects are read for their finalizers, and so many claims for whether they are to be kept.
const MAX_READ: usize = 8;

pub(super) fn check(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion, findings: &mut Vec<Finding>) {
    if cx.policy.is_off(RuleKey::SharedClaim) || deletion.is_mere_replacement() {
        return;
    }
    instances(cx, facts, deletion, findings);
    if deletion.root {
        kept_in_vain(cx, facts, deletion, findings);
        finalizers(cx, facts, deletion, findings);
    }
}

/// The kind that a definition which goes defines, and its instances that nobody lists. `None` for anything else, and while
/// the answer is out.
fn unlisted(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion) -> Option<(GroupKind, Reading<Unlisted>)> {
    let defined = defined_by(&deletion.object, cx.stored?.raw().get())?;
    let reading = unlisted_instances(cx.inventory, facts, &deletion.plan, &defined)?;
    Some((defined, reading))
}

/// Instances of a definition that nobody lists vanish with it, without a review of their own.
fn instances(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let Some((defined, reading)) = unlisted(cx, facts, deletion) else { return };
    let (object, kind) = (&deletion.object, &defined.kind);
    let detail = match reading {
        Reading::NotFound => return,
        Reading::Found(unlisted) if unlisted.objects.is_empty() => return,
        Reading::Unreadable(reason) | Reading::Forbidden(reason) => {
            format!("{object}: whether it takes a {kind} that nobody claims is not known: {reason}")
        }
        Reading::Found(Unlisted { objects, complete }) => {
            let paths: Vec<String> = objects.iter().map(ObjectRef::path).collect();
            let at_least = if complete { "" } else { "at least " };
            format!("{object} takes {at_least}{} nobody claims: {}", count(paths.len(), kind), some(&paths, NAMED))
        }
    };
    let summary = "a definition takes instances along that no Application claims";
    findings.push(Finding::new(&UNCLAIMED, Severity::Warn, object.clone(), summary).detail(detail));
}

/// Nobody lists them, but an Application that was never compared and deploys to where they are may want them.
pub(super) fn unknown_claimants(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let Some((_, Reading::Found(unlisted))) = unlisted(cx, facts, deletion) else { return };
    let namespaces: BTreeSet<&str> = unlisted
        .objects
        .iter()
        .map(|object| object.namespace.as_str())
        .filter(|namespace| !namespace.is_empty())
        .collect();
    let known: HashSet<AppId> = deletion.plan.unknown_claimants.iter().copied().collect();
    let ids = unknown_claimants_in(cx.inputs(), &deletion.plan, deletion.manager, &namespaces);
    for app in ids.into_iter().filter(|id| !known.contains(id)).filter_map(|id| cx.inventory.app(id)) {
        let scopes = deletion.scopes_in([app.destination.namespace.as_str()]);
        findings.push(super::unknown_claimant(cx, deletion, app, scopes));
    }
}

/// What is marked to be kept is passed by in a cascade, but nothing outlives its Namespace.
fn kept_in_vain(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let going = deletion.plan.namespaces();
    let inside = |item: &&Item| item.cluster == LOCAL && going.contains_key(&*item.namespace);
    let mut kept = Vec::new();
    let mut read = 0;
    for item in deletion.plan.items.iter().filter(inside) {
        let is_claim = item.kind.is("", "PersistentVolumeClaim");
        if item.fate != Fate::Spared(Spared::Kept) && (!is_claim || read == MAX_READ) {
            continue;
        }
        let Some(Ok(object)) = find_name(cx.inputs(), facts, &deletion.plan, item) else { continue };
        let is_marked = if item.fate == Fate::Spared(Spared::Kept) {
            true
        } else {
            // Claims are read because they hold data; anything else is only told where it was read anyway.
            read += 1;
            facts.metadata(&object).is_some_and(|reading| reading.found().is_some_and(|meta| is_kept(meta, false)))
        };
        if is_marked {
            kept.push(object);
        }
    }
    let Some(first) = kept.first() else { return };
    let more = and_more(&kept);
    let summary = "what is marked to be kept goes with its Namespace";
    findings.push(
        Finding::new(&UNCLAIMED, Severity::Warn, first.clone(), summary)
            .detail(format!("{first}{more} is marked Delete=false, but goes with Namespace {}", first.namespace)),
    );
}

/// Custom resources wait for their finalizers, and the controller that takes those away goes in the same cascade.
fn finalizers(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let goes = |item: &&Item| item.cluster == LOCAL && !item.fate.is_spared();
    let items = || deletion.plan.items.iter().filter(goes).filter(|item| item.via == Via::Cascade);
    let is_workload = |item: &&Item| {
        item.kind.group == "apps" && ["Deployment", "StatefulSet", "DaemonSet"].contains(&item.kind.kind.as_str())
    };
    // What has a lower wave is deleted later: a cascade goes through the waves from the last to the first.
    let Some(first_wave) = items().filter(is_workload).map(|item| wave(cx, deletion, item)).max() else { return };
    let mut held: Vec<(ObjectRef, String)> = Vec::new();
    let custom = |item: &&Item| item.kind.group.contains('.') && !item.kind.group.ends_with(".k8s.io");
    // Which of them are read does not hang on the order of a list.
    let mut candidates: Vec<&Item> =
        items().filter(custom).filter(|item| wave(cx, deletion, item) <= first_wave).collect();
    candidates.sort_by_key(|item| item.key);
    for item in candidates.into_iter().take(MAX_READ) {
        if item.kind.group == ARGO_GROUP {
            continue;
        }
        // Of an Application that only the inventory knows, as in an audit, the names are read.
        let Some(Ok(object)) = find_name(cx.inputs(), facts, &deletion.plan, item) else { continue };
        let Some(Reading::Found(meta)) = facts.metadata(&object) else { continue };
        if let Some(finalizer) = meta.finalizers.iter().find(|finalizer| needs_a_controller(finalizer)) {
            held.push((object.clone(), finalizer.clone()));
        }
    }
    held.sort();
    let Some((object, finalizer)) = held.first() else { return };
    let more = and_more(&held);
    let summary = "a delete hangs where the controller of a finalizer goes in the same cascade";
    findings.push(
        Finding::new(&FINALIZER, Severity::Warn, object.clone(), summary)
            .detail(format!("{object}{more} hangs on {finalizer} if its controller goes in the same cascade"))
            .remedy("delete the custom resources first and wait until they are gone, then the Application"),
    );
}

/// What follows the first of several.
fn and_more<T>(all: &[T]) -> String {
    if all.len() > 1 { format!(" (and {} more)", all.len() - 1) } else { String::new() }
}

/// Whether a controller of the cluster's own has to take it away. Those of Kubernetes and of Argo CD stay.
fn needs_a_controller(finalizer: &str) -> bool {
    !["foregroundDeletion", "orphan"].contains(&finalizer)
        && !finalizer.starts_with("kubernetes.io/")
        && !finalizer.contains("argocd.argoproj.io")
}

/// The wave in which an Application of the plan applies an item.
fn wave(cx: &Context<'_>, deletion: &Deletion, item: &Item) -> i64 {
    let known = deletion.plan.takers_of(item).filter_map(|taker| cx.inventory.app(taker.id?));
    known.filter_map(|app| app.claim(item.key)).map(|claim| claim.wave).next().unwrap_or_default()
}
