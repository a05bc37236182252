//! Updates of Applications that take something away: prune is switched on while the list holds what another Application
//! claims, or a child that two parents define is pointed elsewhere.

use super::{claimants, parties};
use crate::{
    admission::Object,
    argo::{
        Application, Class, Entry, Marker,
        application::Spec,
        sync_intent::SyncIntent,
        sync_options::{self, SYNC_OPTIONS},
        tracking::marker,
    },
    catalog::shared_update::{PRUNE, REPOINTED},
    decision::{Finding, Severity},
    facts::{Facts, Reading},
    inventory::{App, LOCAL},
    object::ObjectRef,
    policy::Scope,
    remedy::{Command, Remedy, type_and_name},
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
    let (before, after): (SyncIntent, SyncIntent) = (old.decode()?, new.decode()?);
    let by_itself = after.prunes_by_itself() && !before.prunes_by_itself();
    let asked = after.pruning_sync().filter(|_| before.pruning_sync().is_none());
    if by_itself || asked.is_some() {
        let application: Application<'_> = new.decode()?;
        let selected = |entry: &Entry<'_>| by_itself || asked.is_some_and(|sync| sync.selects(entry));
        prune(cx, facts, &application, selected, findings);
    }
    repointed(cx, old, new, &before.spec, &after.spec, findings);
    Ok(())
}

/// What is listed to be pruned and is claimed by another Application is that other's loss.
fn prune(
    cx: &Context<'_>,
    facts: &mut Facts,
    application: &Application<'_>,
    selected: impl Fn(&Entry<'_>) -> bool,
    findings: &mut Vec<Finding>,
) {
    let inventory = cx.inventory;
    let pruning = inventory.examine(application);
    for entry in application.status.resources.iter().filter(|entry| entry.class() == Class::Prune && selected(entry)) {
        let object = inventory.normalise(entry.object());
        let key = inventory.key_of(pruning.cluster, &object);
        let others: Vec<String> = inventory
            .claimants(key, cx.policy)
            .filter_map(|id| inventory.app(id))
            .filter(|app| (&app.namespace, &app.name) != (&pruning.namespace, &pruning.name))
            .map(App::path)
            .collect();
        if others.is_empty() || (pruning.cluster == LOCAL && !is_pruned(cx, facts, &pruning, &object)) {
            continue;
        }
        let (path, wanted_by) = (pruning.path(), some(&others, 3));
        let mut finding = Finding::new(
            &PRUNE,
            Severity::Deny,
            object.clone(),
            format!("switching on prune for {path} deletes what other Applications claim"),
        )
        .detail(format!("{object} (claimed by {wanted_by}) would be pruned by {path}"))
        .remedy(Remedy::run(
            format!("sync {wanted_by} first: it takes the object over, and the prune of {path} passes it by"),
            Command::new("argocd app sync").word(&others[0]),
        ))
        .remedy(Remedy::run(
            "keep it through the prune",
            Command::new("kubectl")
                .namespace(&object.namespace)
                .words(["annotate", &type_and_name(&object), "--overwrite"])
                .word(format!("{SYNC_OPTIONS}=Prune=false")),
        ));
        finding.scopes = vec![Scope::of(&object, Some(&pruning.project))];
        finding.claimants = others;
        findings.push(finding);
    }
}

/// Whether the live object would really go. The list may be older than the moment at which another Application took the
/// object over, and `Prune=false` counts on the live object. What is not found or cannot be read is taken to go, because
/// the list says so; while the answer is out nothing is said.
fn is_pruned(cx: &Context<'_>, facts: &mut Facts, pruning: &App, object: &ObjectRef) -> bool {
    let Some(reading) = facts.metadata(object) else { return false };
    let Reading::Found(meta) = reading else { return true };
    let kept = sync_options::in_annotation(meta.annotation(SYNC_OPTIONS), "Prune") == Some("false");
    let taken_over = match marker(&meta, cx.inventory.settings(&pruning.controller_namespace)) {
        Marker::Instance(instance) => instance != &*pruning.instance,
        Marker::None => true,
        Marker::Unknown => false,
    };
    !kept && !taken_over
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
    finding.scopes = vec![Scope::of(target, Some(project(after)))];
    finding.claimants = paths;
    findings.push(finding);
}

/// An Application that names no AppProject belongs to `default`.
fn project(spec: &Spec) -> &str {
    if spec.project.is_empty() { "default" } else { &spec.project }
}
