//! Claims that somebody makes invisible. An Application says what it wants in its own status, which has no subresource
//! (Argo CD 3.6), so whoever may change an Application may empty its list or mark its entries as hooks; what it claimed is
//! then nobody's.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::Error;

use crate::{
    admission::Object,
    argo::{Application, Class, Entry, application::ResultEntry},
    catalog::shared_update::HIDDEN,
    decision::{Finding, Severity},
    deletion::Caller,
    inventory::App,
    object::ObjectRef,
    policy::{RuleKey, Scope},
    remedy::{Command, Remedy},
    rules::Context,
    text::{count, some},
};

/// Accounts that write the status of Applications, in the namespace of their Argo CD: its controller, and the two sides of
/// argocd-agent. An operator puts the name of the installation in front.
const STATUS_WRITERS: [&str; 3] = ["argocd-application-controller", "argocd-agent-principal", "argocd-agent-agent"];

/// Refuses an update that takes entries out of the list of an Application or out of the result of its last sync, or makes
/// less of them, by anybody but its Argo CD.
pub(super) fn check(
    cx: &Context<'_>,
    old: &Object<'_>,
    new: &Object<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Error> {
    let target = &cx.request.target;
    let known = cx.inventory.app_named(&target.namespace, &target.name).and_then(|id| cx.inventory.app(id));
    if is_argocd(cx, known) {
        return Ok(());
    }
    let (before, after): (Application<'_>, Application<'_>) = (old.decode()?, new.decode()?);
    let mut hidden = listed(&before, &after);
    if !begins_operation(&before, &after) {
        hidden.extend(synced(&before, &after));
    }
    let Some(first) = hidden.first() else { return Ok(()) };
    let path = target.path();
    let mut finding = Finding::new(
        &HIDDEN,
        Severity::Deny,
        target.clone(),
        "only Argo CD itself takes from the list of an Application what it claims",
    )
    .detail(format!(
        "{target} would no longer tell of {} that it holds: {}",
        count(hidden.len(), "object"),
        some(&hidden.iter().map(ToString::to_string).collect::<Vec<_>>(), 3)
    ))
    .claimed_by(vec![path.clone()])
    .regarding(first)
    .remedy(Remedy::run(
        "leave status as it is and have Argo CD compare it anew",
        Command::new("argocd app get").words([&path, "--hard-refresh"]),
    ))
    .remedy("to change the spec, patch or apply it; a replace without a status empties the list")
    .remedy("to give an object up, take it out of the manifests of the Application");
    // An object that nobody claims any more is deleted as if it never was shared.
    finding.key = Some(RuleKey::SharedClaim);
    finding.scopes = Scope::of(target, known.map(|app| &*app.project)).into();
    findings.push(finding);
    Ok(())
}

/// Whether the one who asks writes the status of this Application for a living.
fn is_argocd(cx: &Context<'_>, app: Option<&App>) -> bool {
    let user = &cx.request.user.username;
    if Caller::of(cx.inputs(), user).is_some_and(|caller| app.is_none_or(|app| caller.acts_for(cx.inventory, app))) {
        return true;
    }
    let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let Some((namespace, name)) = account else { return false };
    let writes = STATUS_WRITERS.iter().any(|writer| {
        name.strip_suffix(writer).is_some_and(|installation| installation.is_empty() || installation.ends_with('-'))
    });
    // Anybody may have an account of that name in a namespace of his own.
    let is_home = cx.policy.names_installation(namespace)
        || (app.is_some_and(|app| cx.inventory.belongs_to(app, namespace) && !cx.inventory.is_trusted(app))
            && cx.inventory.settings(namespace).is_some());
    writes && is_home
}

/// Whoever starts a sync clears the result of the one before (`SetAppOperation`, `util/argo/argo.go`).
fn begins_operation(before: &Application<'_>, after: &Application<'_>) -> bool {
    before.operation.is_none()
        && after.operation.is_some()
        && after.status.operation_state.sync_result.resources.is_empty()
}

/// What the list still held and holds no longer, or holds as less.
fn listed(before: &Application<'_>, after: &Application<'_>) -> Vec<ObjectRef> {
    let worth = |entry: &Entry<'_>| match entry.class() {
        Class::Desired => 2,
        Class::Hook => 0,
        _ => 1,
    };
    let mut kept: HashMap<ObjectRef, i32> = HashMap::new();
    for entry in &after.status.resources {
        let best = kept.entry(entry.object()).or_default();
        *best = worth(entry).max(*best);
    }
    let is_hidden = |entry: &&Entry<'_>| kept.get(&entry.object()).is_none_or(|kept| *kept < worth(entry));
    before.status.resources.iter().filter(is_hidden).map(Entry::object).collect()
}

/// The same of what the last sync made.
fn synced(before: &Application<'_>, after: &Application<'_>) -> Vec<ObjectRef> {
    let worth = |entry: &ResultEntry<'_>| i32::from(entry.left_behind()) + i32::from(entry.hook_type.is_empty());
    let results = |application: &Application<'_>| {
        let mut best: HashMap<ObjectRef, i32> = HashMap::new();
        for entry in &application.status.operation_state.sync_result.resources {
            let known = best.entry(entry.object()).or_default();
            *known = worth(entry).max(*known);
        }
        best
    };
    let kept = results(after);
    let made = results(before).into_iter().filter(|(object, worth)| kept.get(object).is_none_or(|kept| kept < worth));
    let mut hidden: Vec<ObjectRef> = made.map(|(object, _)| object).collect();
    hidden.sort();
    hidden
}
