//! `shared-claim`: a delete must not take what another Application still claims.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, Rule};
use crate::{
    admission::Request,
    argo::Class,
    catalog::{
        RuleMeta,
        shared_claim::{CLAIMED, META, STALE, TOO_LARGE, UNKNOWN},
    },
    decision::{Finding, Severity},
    deletion::{Deletion, Explanation, Fate, Item, MAX_ITEMS, Via, is_sync_identity},
    facts::Facts,
    inventory::{App, AppId},
    object::{ARGO_GROUP, ObjectRef},
    policy::OnUnknown,
    text::count,
};

/// What it does: builds the deletion plan and refuses the delete if an Application outside the plan claims an object in it.
///
/// Why that is bad: the cascade deletes by marker and never asks who else wants an object; the other Application lists it
/// as desired and loses it all the same.
///
/// How to proceed: let the other Application take the object over (sync it), delete without a cascade, or remove the
/// object from the other Application.
pub(super) struct SharedClaim;

impl Rule for SharedClaim {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn applies(&self, request: &Request<'_>) -> bool {
        request.sub_resource.is_empty()
    }

    fn check(&self, cx: &Context<'_>, _: &mut Facts, findings: &mut Vec<Finding>) {
        let Some(deletion) = cx.deletion else { return };
        if !deletion.judged || deletion.takes_nothing() {
            return;
        }
        contested(cx, deletion, findings);
        too_large(deletion, findings);
        unreadable(cx, deletion, findings);
        if deletion.root {
            if !is_of_others(cx, deletion) {
                unknown_claimants(cx, deletion, findings);
            }
            unknown_lists(cx, deletion, findings);
        }
    }
}

fn contested(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    // What a Namespace or a definition holds is told by its owner, not object by object.
    let mut held: BTreeMap<(Option<&str>, &[AppId]), Vec<&Item>> = BTreeMap::new();
    for item in deletion.plan.items.iter().filter(|item| item.is_contested()) {
        match &item.via {
            Via::Namespace(name) => {
                held.entry((Some(name), &item.claimants)).or_default().push(item);
            }
            Via::Definition => {
                held.entry((None, &item.claimants)).or_default().push(item);
            }
            Via::Root | Via::Cascade | Via::Generated => {
                let finding = single(cx, deletion, item);
                let scopes = deletion.scopes(&finding.object);
                findings.push(finding.judged_in(scopes));
            }
        }
    }
    for ((namespace, claimants), items) in held {
        let holder = namespace.map_or_else(|| deletion.object.to_string(), |name| format!("Namespace {name}"));
        findings.push(several(cx, deletion, &holder, claimants, &items));
    }
}

/// An object that would go by itself.
fn single(cx: &Context<'_>, deletion: &Deletion, item: &Item) -> Finding {
    let object = item.object.clone().unwrap_or_else(|| unnamed(item));
    let claimants = paths(cx, &item.claimants);
    if let Some(policies) = deletion.ended_by() {
        return Finding::new(
            &CLAIMED,
            Severity::Warn,
            object,
            "a hook that other Applications claim is deleted by its hook-delete-policy",
        )
        .detail(format!(
            "{} is a hook that its delete policy ({policies}) removes; {} claims it too",
            item.label(),
            claimants.join(", ")
        ))
        .claimed_by(claimants);
    }
    if deletion.is_mere_replacement() {
        return Finding::new(&CLAIMED, Severity::Warn, object, "an object that several Applications claim is replaced")
            .detail(format!(
                "{} comes back in one Application's version; {} claims it too",
                item.label(),
                claimants.join(", ")
            ))
            .claimed_by(claimants);
    }
    let mut detail = format!("{} is claimed by {}", item.label(), claimants.join(", "));
    let others: Vec<String> = deletion
        .plan
        .takers_of(item)
        .filter(|taker| taker.app.object() != deletion.object)
        .map(|taker| taker.app.path())
        .collect();
    if !others.is_empty() {
        detail = format!("{detail} (it would go with {})", others.join(", "));
    }
    if let Fate::DeletedAlthough(why) = &item.fate {
        detail = format!("{detail}; {why}");
    }
    let mut finding = Finding::new(&CLAIMED, Severity::Deny, object, summary(deletion)).detail(detail);
    finding.remedies = remedies(cx, deletion, item, &claimants);
    finding.claimed_by(claimants)
}

/// Unknown is not fine: of a delete that takes too much to follow, nobody can say what others claim of it.
fn too_large(deletion: &Deletion, findings: &mut Vec<Finding>) {
    if !deletion.plan.too_large {
        return;
    }
    findings.push(
        Finding::new(&TOO_LARGE, Severity::Deny, deletion.object.clone(), "this delete takes too much to be judged")
            .detail(format!(
                "{} takes more than {MAX_ITEMS} objects along, {} Applications among them",
                deletion.object,
                deletion.plan.leaving.perhaps.len()
            ))
            .judged_in(deletion.scopes_of_everything())
            .remedy("delete the Applications in it first, a part at a time"),
    );
}

/// An Application that cannot be decoded holds something all the same.
fn unreadable(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let Some(reason) = &deletion.unreadable else { return };
    let path = deletion.object.path();
    findings.push(
        Finding::new(&UNKNOWN, on_unknown(cx), deletion.object.clone(), "what some Applications hold is not known")
            .detail(format!("Application {path} cannot be read, so what its cascade takes is not known: {reason}"))
            .remedy(format!("argocd app delete {path} --cascade=false   # leaves everything in place"))
            .judged_in(deletion.scopes(&deletion.object)),
    );
}

/// Objects of the same Applications that would go with a Namespace or a definition.
fn several(cx: &Context<'_>, deletion: &Deletion, holder: &str, claimants: &[AppId], items: &[&Item]) -> Finding {
    let claimants = paths(cx, claimants);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        *kinds.entry(&item.kind.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| if *count == 1 { (*kind).to_owned() } else { format!("{count} {kind}") })
        .collect();
    let number = count(items.len(), "object");
    let who = claimants.join(", ");
    // A Namespace is one place, whatever is in it; instances of a definition are where they are.
    let namespaces: BTreeSet<&str> = match items[0].via {
        Via::Namespace(ref name) => BTreeSet::from([&**name]),
        _ => items.iter().map(|item| &*item.namespace).collect(),
    };
    let object = match items[0].via {
        Via::Namespace(ref name) => ObjectRef::namespace(name),
        _ => items[0].object.clone().unwrap_or_else(|| unnamed(items[0])),
    };
    Finding::new(&CLAIMED, Severity::Deny, object, summary(deletion))
        .detail(format!("{holder} takes {number} of {who} along ({})", kinds.join(", ")))
        .remedy(move_away(&who))
        .claimed_by(claimants)
        .judged_in(deletion.scopes_in(namespaces))
}

fn summary(deletion: &Deletion) -> &'static str {
    match deletion.explanation {
        Explanation::Prune(_) => "this prune takes what other Applications still claim",
        Explanation::Cascade(_) => "this cascade takes what other Applications still claim",
        _ => "other Applications still claim what would go",
    }
}

fn remedies(cx: &Context<'_>, deletion: &Deletion, item: &Item, claimants: &[String]) -> Vec<String> {
    let other = claimants.first().map(String::as_str).unwrap_or_default();
    if item.kind.is("", "Namespace") || item.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return vec![move_away(other)];
    }
    let mut steps = Vec::new();
    let claimant = item.claimants.iter().filter_map(|id| cx.inventory.app(*id)).find(|app| app.path() == other);
    let unsure = claimant
        .filter(|app| app.claim(item.key).is_some_and(|claim| claim.class != Class::Desired))
        .and_then(|app| app.distrust);
    // If such a list is right after all, a sync does not take the object over but may prune it.
    let take_over = |then: &str| match unsure {
        Some(why) => format!("argocd app get {other} --refresh   # {why}; see first whether it still wants this"),
        None => format!("argocd app sync {other}   # {then}"),
    };
    for taker in deletion.plan.takers_of(item).filter(|taker| taker.app.running.is_some()) {
        let path = taker.app.path();
        steps.push(format!("argocd app wait {path} --operation   # or argocd app terminate-op {path}, if it hangs"));
    }
    for taker in deletion.plan.takers_of(item).filter(|taker| taker.app.self_heals) {
        steps.push(format!("argocd app set {} --self-heal=false   # or it takes the objects back", taker.app.path()));
    }
    match deletion.explanation {
        Explanation::Cascade(_) | Explanation::Prune(_) => {
            steps.push(take_over("it takes the object over, then this passes it by"));
        }
        _ if deletion.plan.takers.is_empty() => {
            steps.push(format!(
                "remove it from the manifests of {other}, or of the Application that manages it, and sync"
            ));
        }
        _ => {
            steps.push(take_over("it takes the objects over, then try again"));
            if deletion.object.is_application() {
                steps.push(format!(
                    "argocd app delete {} --cascade=false   # or leave everything in place",
                    deletion.object.path()
                ));
            }
            steps.push(format!(
                "cascade-guard plan {}   # shows everything that would go",
                plan_arguments(&deletion.object)
            ));
        }
    }
    steps
}

/// The way out where a sync does not help: a Namespace or a definition takes its content whoever tracks it.
fn move_away(claimants: &str) -> String {
    format!(
        "delete or move {claimants} first, or take the Namespace or definition out of the manifests; a sync does not help"
    )
}

/// How `plan` is called for an object.
fn plan_arguments(object: &ObjectRef) -> String {
    let kind = object.kind.kind.to_lowercase();
    if object.namespace.is_empty() {
        format!("{kind} {}", object.name)
    } else {
        format!("{kind} {} -n {}", object.name, object.namespace)
    }
}

/// Whether an object that goes alone is none that an Application which was never compared may want: something owns it, so
/// no Argo CD manages it (section 1.4 of the Argo CD facts), or Argo CD deletes it and it carries the marker of an Application
/// that is known, whose operation the watch may not show yet.
fn is_of_others(cx: &Context<'_>, deletion: &Deletion) -> bool {
    let by_its_own = || deletion.manager.is_some() && is_sync_identity(cx.inputs(), &cx.request.user.username);
    let goes_alone = !deletion.object.is_namespace() && deletion.object.kind.group != ARGO_GROUP;
    goes_alone && deletion.plan.items.len() == 1 && (!deletion.meta.owner_references.is_empty() || by_its_own())
}

fn unknown_claimants(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let apps = deletion.plan.unknown_claimants.iter().filter_map(|id| cx.inventory.app(*id));
    for (app, scopes) in deletion.scopes_wanted_by(apps) {
        let path = app.path();
        findings.push(
            Finding::new(&UNKNOWN, on_unknown(cx), deletion.object.clone(), "what some Applications want is not known")
                .detail(format!("Application {path} {} and may claim what would go", why_unknown(app)))
                .remedy(format!("argocd app get {path} --refresh   # wait until it was compared, then try again"))
                .claimed_by(vec![path])
                .judged_in(scopes),
        );
    }
}

/// Why nobody knows what an Application wants.
fn why_unknown(app: &App) -> &'static str {
    if app.never_compared {
        "was never compared"
    } else {
        "cannot be compared now, and has no list and no sync to go by,"
    }
}

/// Applications of the plan whose own lists cannot be believed.
fn unknown_lists(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    for taker in &deletion.plan.takers {
        let path = taker.app.path();
        if taker.unknown {
            findings.push(
                Finding::new(
                    &UNKNOWN,
                    on_unknown(cx),
                    deletion.object.clone(),
                    "what some Applications hold is not known",
                )
                .detail(format!(
                    "Application {path} was synced before, but lists nothing: what its cascade takes is not known"
                ))
                .remedy(format!("argocd app get {path} --hard-refresh   # wait until it was compared, then try again"))
                .judged_in(deletion.scopes(&deletion.object)),
            );
        } else if let Some(why) = taker.distrust {
            findings.push(
                Finding::new(&STALE, Severity::Warn, deletion.object.clone(), "a list may be out of date")
                    .detail(format!("{path}: {why}; judged by its last list and last sync"))
                    .judged_in(deletion.scopes(&deletion.object)),
            );
        }
    }
}

fn on_unknown(cx: &Context<'_>) -> Severity {
    match cx.policy.spec.rules.shared_claim.on_unknown {
        OnUnknown::Deny => Severity::Deny,
        OnUnknown::Warn => Severity::Warn,
    }
}

fn paths(cx: &Context<'_>, ids: &[AppId]) -> Vec<String> {
    let mut paths: Vec<String> =
        ids.iter().filter_map(|id| cx.inventory.app(*id)).map(crate::inventory::App::path).collect();
    paths.sort();
    paths
}

fn unnamed(item: &Item) -> ObjectRef {
    ObjectRef::new(&item.kind.group, &item.kind.kind, &item.namespace, "")
}
