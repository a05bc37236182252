//! `shared-claim`: a delete must not take what another Application still claims.

mod burst;
mod contradiction;
mod perhaps_here;
mod stale;
mod unclaimed;
mod ways_out;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::ways_out::of_replacing_sync;
use super::{Context, Rule};
use crate::{
    admission::Request,
    catalog::{
        RuleMeta,
        shared_claim::{CLAIMED, META, OWN_PRUNE, PERHAPS_HERE, STALE, TOO_LARGE, UNKNOWN},
    },
    decision::{Finding, Severity},
    deletion::{Caller, Deletion, Explanation, Item, MAX_ITEMS, Via},
    facts::Facts,
    inventory::{App, AppId, AppSet, Ownership},
    object::{ARGO_GROUP, ObjectRef},
    policy::Scopes,
    remedy::{Command, Remedy},
    text::{count, some},
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

    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
        let Some(deletion) = cx.deletion else { return };
        if !deletion.judged || deletion.takes_nothing() {
            return;
        }
        contested(cx, deletion, findings);
        let mut unwanted = Vec::new();
        own_prune(cx, deletion, &mut unwanted);
        burst::check(cx, deletion, &mut unwanted);
        wanted_by_another_set(cx, deletion, &mut unwanted);
        findings.extend(unwanted.into_iter().map(|finding| in_its_own_scopes(deletion, finding)));
        perhaps_here::check(cx, facts, deletion, findings);
        too_large(deletion, findings);
        unreadable(cx, deletion, findings);
        stale::check(cx, deletion, findings);
        contradiction::check(cx, deletion, findings);
        if deletion.root {
            if !is_of_others(cx, deletion) {
                unknown_claimants(cx, deletion, findings);
            }
            unknown_lists(cx, deletion, findings);
            unclaimed::unknown_claimants(cx, facts, deletion, findings);
        }
        let mut unclaimed = Vec::new();
        unclaimed::check(cx, facts, deletion, &mut unclaimed);
        findings.extend(unclaimed.into_iter().map(|finding| in_its_own_scopes(deletion, finding)));
    }
}

/// Judged by the namespace of the object it is about.
fn in_its_own_scopes(deletion: &Deletion, finding: Finding) -> Finding {
    let scopes = deletion.scopes(&finding.object);
    finding.judged_in(scopes)
}

/// Of so many objects the ways out are worked out; there may be thousands.
const WITH_WAYS_OUT: usize = 200;

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
                // A message has room for a few ways out.
                let ways_out = findings.len() < WITH_WAYS_OUT || cx.thorough;
                let finding = single(cx, deletion, item, ways_out);
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
fn single(cx: &Context<'_>, deletion: &Deletion, item: &Item, ways_out: bool) -> Finding {
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
    let (_, why) = item.outcome();
    if !why.is_empty() {
        detail = format!("{detail}; {why}");
    }
    if let Some(guess) = guess(cx, deletion) {
        return guessed(object, &format!("{detail}; {guess}"), claimants);
    }
    let mut finding = Finding::new(&CLAIMED, Severity::Deny, object, summary(deletion)).detail(detail);
    if ways_out {
        finding.remedies = ways_out::of_item(cx, deletion, item);
    }
    finding.claimed_by(claimants)
}

/// What was said and not refused where the cascade began is said again below it: it began with an Application on a cluster
/// that nobody can resolve, and would rest half-way.
fn guess(cx: &Context<'_>, deletion: &Deletion) -> Option<String> {
    let app = cx.inventory.app(deletion.guessed?)?;
    Some(format!("{} goes, and {} may be this cluster", app.path(), cx.inventory.cluster_name(app.cluster)))
}

fn guessed(object: ObjectRef, detail: &str, claimants: Vec<String>) -> Finding {
    Finding::new(
        &PERHAPS_HERE,
        Severity::Warn,
        object,
        "a cascade from a cluster that nobody can resolve takes what other Applications claim",
    )
    .detail(detail)
    .claimed_by(claimants)
}

/// An Application that lists itself to be pruned, because a label or marker on it names itself, would be deleted by its
/// own sync with all it deployed. Nobody wants that; whoever means it deletes it himself.
fn own_prune(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let Explanation::Prune(id) = deletion.explanation else { return };
    let Some(app) = cx.inventory.app(id).filter(|app| app.object() == deletion.object) else { return };
    let path = app.path();
    findings.push(
        Finding::new(
            &OWN_PRUNE,
            Severity::Deny,
            deletion.object.clone(),
            "an Application that takes itself for its own object would be pruned by its own sync",
        )
        .detail(format!("{path} lists itself to be pruned, and its cascade would take all it deployed"))
        .remedy(ways_out::of_own_prune(cx, app))
        .remedy(Remedy::run(
            "or, if it is meant to go, delete it yourself",
            Command::new("argocd app delete").word(&path),
        )),
    );
}

/// A renamed ApplicationSet wants the Applications that the old one still owns.
fn wanted_by_another_set(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let object = &deletion.object;
    if !object.kind.is(ARGO_GROUP, "ApplicationSet")
        || !deletion.plan.items.iter().any(|item| item.via == Via::Generated)
    {
        return;
    }
    let wants = |set: &&AppSet| {
        set.meta.name != object.name
            && !set.meta.is_terminating()
            && set.wants_applications_of.as_deref() == Some(object.name.as_str())
    };
    let others: Vec<String> = cx
        .inventory
        .appsets_in(&object.namespace)
        .filter(wants)
        .map(|set| format!("{}/{}", set.meta.namespace, set.meta.name))
        .collect();
    if others.is_empty() {
        return;
    }
    let mut finding = Finding::new(
        &CLAIMED,
        Severity::Deny,
        object.clone(),
        "another ApplicationSet wants the Applications that would go",
    )
    .detail(format!("{object} owns Applications that ApplicationSet {} wants", some(&others, 3)));
    finding.remedies.extend(ways_out::orphaning(object));
    findings.push(finding.claimed_by(others));
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
        Finding::new(&UNKNOWN, cx.on_unknown(), deletion.object.clone(), "what some Applications hold is not known")
            .detail(format!("Application {path} cannot be read, so what its cascade takes is not known: {reason}"))
            .remedy(Remedy::run(
                "leave everything in place",
                Command::new("argocd app delete").words([&path, "--cascade=false"]),
            ))
            .judged_in(deletion.scopes(&deletion.object)),
    );
}

/// Objects of the same Applications that would go with a Namespace or a definition.
fn several(cx: &Context<'_>, deletion: &Deletion, holder: &str, claimants_of: &[AppId], items: &[&Item]) -> Finding {
    let claimants = paths(cx, claimants_of);
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
    let detail = format!("{holder} takes {number} of {who} along ({})", kinds.join(", "));
    if let Some(guess) = guess(cx, deletion) {
        let finding = guessed(object, &format!("{detail}; {guess}"), claimants);
        return finding.judged_in(deletion.scopes_in(namespaces));
    }
    let mut finding = Finding::new(&CLAIMED, Severity::Deny, object, summary(deletion)).detail(detail);
    finding.remedies = ways_out::of_content(cx, deletion, claimants_of);
    finding.claimed_by(claimants).judged_in(deletion.scopes_in(namespaces))
}

fn summary(deletion: &Deletion) -> &'static str {
    match deletion.explanation {
        Explanation::Prune(_) => "this prune takes what other Applications still claim",
        Explanation::Cascade(_) => "this cascade takes what other Applications still claim",
        _ => "other Applications still claim what would go",
    }
}

/// Whether an object that goes alone is none that an Application which was never compared may want: something owns it, so
/// no Argo CD manages it (section 1.4 of the Argo CD facts), or Argo CD deletes it and it carries the marker of an Application
/// that is known, whose operation the watch may not show yet.
fn is_of_others(cx: &Context<'_>, deletion: &Deletion) -> bool {
    let by_its_own = || {
        let manager = deletion.manager.and_then(|id| cx.inventory.app(id));
        let caller = Caller::of(cx.inputs(), &cx.request.user.username);
        manager.zip(caller).is_some_and(|(manager, caller)| {
            caller.acts_for(cx.inventory, manager) && cx.inventory.ownership(manager, &deletion.meta) == Ownership::Own
        })
    };
    let goes_alone = !deletion.object.is_namespace() && deletion.object.kind.group != ARGO_GROUP;
    goes_alone && deletion.plan.items.len() == 1 && (!deletion.meta.owner_references.is_empty() || by_its_own())
}

fn unknown_claimants(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let mut apps: Vec<&App> = deletion.plan.unknown_claimants.iter().filter_map(|id| cx.inventory.app(*id)).collect();
    apps.sort_by_cached_key(|app| app.path());
    for (app, scopes) in deletion.scopes_wanted_by(apps) {
        findings.push(unknown_claimant(cx, deletion, app, scopes));
    }
}

fn unknown_claimant(cx: &Context<'_>, deletion: &Deletion, app: &App, scopes: Scopes) -> Finding {
    let path = app.path();
    let trouble = app.trouble.as_deref().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
    let mut finding =
        Finding::new(&UNKNOWN, cx.on_unknown(), deletion.object.clone(), "what some Applications want is not known")
            .detail(format!("Application {path} {} and may claim what would go{trouble}", why_unknown(app)))
            .claimed_by(vec![path])
            .judged_in(scopes);
    finding.remedies = ways_out::of_unknown_claimant(app);
    finding
}

/// Why nobody knows what an Application wants.
fn why_unknown(app: &App) -> &'static str {
    if app.is_unreadable() {
        "cannot be read"
    } else if app.never_compared {
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
                    cx.on_unknown(),
                    deletion.object.clone(),
                    "what some Applications hold is not known",
                )
                .detail(format!(
                    "Application {path} was synced before, but lists nothing: what its cascade takes is not known"
                ))
                .remedy(Remedy::run(
                    format!("have {path} compared, then try again"),
                    Command::new("argocd app get").words([&path, "--hard-refresh"]),
                ))
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

fn paths(cx: &Context<'_>, ids: &[AppId]) -> Vec<String> {
    let mut paths: Vec<String> =
        ids.iter().filter_map(|id| cx.inventory.app(*id)).map(crate::inventory::App::path).collect();
    paths.sort();
    paths
}

fn unnamed(item: &Item) -> ObjectRef {
    ObjectRef::new(&item.kind.group, &item.kind.kind, &item.namespace, "")
}
