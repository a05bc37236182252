//! Updates of Applications that take something away: prune is switched on while the list holds what another Application
//! claims, or a child that two parents define is pointed elsewhere.

use super::{claimants, hidden, parties, prune};
use crate::{
    admission::Object,
    argo::{Application, Entry, application::Spec, sync_intent::SyncIntent},
    catalog::shared_update::REPOINTED,
    decision::{Finding, Severity},
    facts::Facts,
    inventory::LOCAL,
    policy::Scope,
    rules::Context,
    text::some,
};

pub(super) fn check(
    cx: &Context<'_>,
    facts: &mut Facts,
    old: &Object<'_>,
    new: &Object<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), serde_json::Error> {
    if !cx.policy.watches_applications_in(&new.meta.namespace) {
        return Ok(());
    }
    hidden::check(cx, old, new, findings)?;
    let (before, after): (SyncIntent, SyncIntent) = (old.decode()?, new.decode()?);
    let by_itself = after.prunes_by_itself() && !before.prunes_by_itself();
    let asked = after.pruning_sync().filter(|_| before.pruning_sync().is_none());
    if by_itself || asked.is_some() {
        let application: Application<'_> = new.decode()?;
        let selected = |entry: &Entry<'_>| by_itself || asked.is_some_and(|sync| sync.selects(entry));
        prune::check(cx, facts, &application, selected, findings);
    }
    repointed(cx, old, new, &before.spec, &after.spec, findings);
    Ok(())
}

/// A child that two parents define follows the one that synced last, and deploys something else when that changes.
fn repointed(
    cx: &Context<'_>,
    old: &Object<'_>,
    new: &Object<'_>,
    before: &Spec,
    after: &Spec,
    findings: &mut Vec<Finding>,
) {
    let sources = |spec: &Spec| match &spec.sources {
        Some(sources) if !sources.is_empty() => sources.iter().map(|source| source.whole).collect(),
        _ => vec![spec.source.unwrap_or_default().whole],
    };
    let changed: Vec<&str> = [
        ("source", sources(before) != sources(after)),
        ("destination", !before.destination.same_as(&after.destination)),
        ("project", project(before) != project(after)),
    ]
    .into_iter()
    .filter_map(|(what, changed)| changed.then_some(what))
    .collect();
    if changed.is_empty() {
        return;
    }
    let target = &cx.request.target;
    let parents = claimants(cx, cx.inventory.key_of(LOCAL, target));
    if parents.len() < 2 {
        return;
    }
    let (syncing, others) = parties(cx, &parents, &old.meta, &new.meta);
    let paths: Vec<String> = others.iter().map(|app| app.path()).collect();
    let by = syncing.map(|app| format!(", set by {}", app.path())).unwrap_or_default();
    let mut finding = Finding::new(
        &REPOINTED,
        Severity::Warn,
        target.clone(),
        "an Application that several others define is pointed elsewhere",
    )
    .detail(format!("{target} (defined by {} too) has another {}{by}", some(&paths, 3), changed.join(", ")));
    finding.scopes = Scope::of(target, Some(project(after))).into();
    finding.claimants = paths;
    findings.push(finding);
}

/// An Application that names no AppProject belongs to `default`.
fn project(spec: &Spec) -> &str {
    if spec.project.is_empty() { "default" } else { &spec.project }
}
