//! `shared-update`: an update takes away what another Application relies on.
//!
//! Argo CD applies each Application's own version of an object, so of two Applications that render the same one the last
//! to sync wins. Where the versions differ, the other loses a subject, a rule or a label without anything being deleted.
//! Two writes take away the whole of it: one that hands an object to the garbage collector, and one that makes invisible what
//! an Application claims.

mod aggregation;
mod applications;
mod generated;
mod hidden;
mod owners;
mod prune;
mod removals;
#[cfg(test)]
mod tests;

use self::removals::losses;
use super::{Context, Rule};
use crate::{
    admission::{Object, Operation, Request},
    catalog::{
        RuleMeta,
        shared_update::{META, TAKEN_AWAY, UNREADABLE},
    },
    decision::{Finding, Severity},
    deletion::is_sync_identity,
    facts::Facts,
    inventory::{App, Key, LOCAL, Ownership},
    object::{ARGO_GROUP, ObjectMeta, ObjectRef, RBAC_GROUP},
    remedy::{Command, Remedy},
    text::some,
};

/// Parts of the control plane that write what follows from other objects: aggregated rules, the bootstrap roles, and
/// references to token Secrets that are gone.
const CONTROL_PLANE: [&str; 4] = [
    "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
    "system:apiserver",
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:tokens-controller",
];

/// The rule.
pub struct SharedUpdate;

impl Rule for SharedUpdate {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn applies(&self, request: &Request<'_>) -> bool {
        let terminating =
            [&request.object, &request.old_object].into_iter().flatten().any(|object| object.meta.is_terminating());
        let updates = request.operation == Operation::Update
            && (request.target.is_application() || is_set(&request.target) || is_shared_kind(&request.target));
        !terminating
            && (updates || owners::names_owners(request))
            && !CONTROL_PLANE.contains(&request.user.username.as_str())
    }

    /// Whether claims are made invisible stands in the request.
    fn when_overdue(&self, cx: &Context<'_>, findings: &mut Vec<Finding>) {
        if let (true, Some(old), Some(new)) =
            (cx.request.target.is_application(), &cx.request.old_object, &cx.request.object)
        {
            // What cannot be decoded is told by the warning below as well.
            let _ = hidden::check(cx, old, new, findings);
        }
        findings.push(cx.overdue(self.meta(), Severity::Warn));
    }

    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
        owners::check(cx, facts, findings);
        let (Some(old), Some(new)) = (&cx.request.old_object, &cx.request.object) else { return };
        let result = if cx.request.target.is_application() {
            applications::check(cx, facts, old, new, findings)
        } else if is_set(&cx.request.target) {
            generated::check(cx, old, new, findings)
        } else if !is_shared_kind(&cx.request.target) {
            Ok(())
        } else {
            shared_object(cx, facts, old, new, findings)
        };
        if let Err(error) = result {
            let target = &cx.request.target;
            findings.push(
                Finding::new(
                    &UNREADABLE,
                    Severity::Warn,
                    target.clone(),
                    "the object cannot be read, so nobody can tell what this takes away",
                )
                .detail(format!("{target} cannot be read ({error}); nobody can tell what this takes away")),
            );
        }
    }
}

fn is_set(object: &ObjectRef) -> bool {
    object.kind.is(ARGO_GROUP, "ApplicationSet")
}

/// Kinds that others rely on without naming an Application.
fn is_shared_kind(object: &ObjectRef) -> bool {
    object.is_namespace()
        || object.kind.is("", "ServiceAccount")
        || (object.kind.group == RBAC_GROUP
            && ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"].contains(&object.kind.kind.as_str()))
}

fn shared_object(
    cx: &Context<'_>,
    facts: &mut Facts,
    old: &Object<'_>,
    new: &Object<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), serde_json::Error> {
    let target = &cx.request.target;
    let claimants = claimants(cx, cx.inventory.key_of(LOCAL, target));
    if claimants.len() < 2 {
        return Ok(());
    }
    let label_keys: Vec<&str> = claimants
        .iter()
        .flat_map(|app| cx.inventory.identities_of(app))
        .filter_map(|identity| cx.inventory.settings(identity.home))
        .map(|settings| settings.label_key.as_str())
        .collect();
    let mut losses = losses(target, old, new, &label_keys)?;
    if target.kind.kind == "ClusterRole" && !aggregation::keep(facts, &mut losses) {
        return Ok(());
    }
    if losses.is_empty() {
        return Ok(());
    }
    let (syncing, others) = parties(cx, &claimants, &old.meta, &new.meta);
    let paths: Vec<String> = others.iter().map(|app| app.path()).collect();
    let wanted_by = some(&paths, 3);
    for loss in losses {
        let mut finding = Finding::new(
            &TAKEN_AWAY,
            Severity::Deny,
            target.clone(),
            format!("this takes away from {target} what {wanted_by} may rely on"),
        )
        .detail(format!("{target} (claimed by {wanted_by}) {loss}"));
        finding.claimants.clone_from(&paths);
        let Some(other) = paths.first() else { continue };
        findings.push(match syncing {
            Some(app) => {
                let app = app.path();
                finding
                    .remedy(format!("add what would be lost to the manifest that {app} renders, then sync it again"))
                    .remedy(Remedy::run(
                        "better, let one Application own it; this shows how",
                        Command::new("cascade-guard overlap").words([&app, other]),
                    ))
            }
            None => finding
                .remedy(format!("change it in Git, in every Application that renders it ({wanted_by})"))
                .remedy("better, let one Application own it and take it out of the others, without pruning it"),
        });
    }
    Ok(())
}

/// Applications that claim an object and are not being deleted.
fn claimants<'a>(cx: &Context<'a>, key: Key) -> Vec<&'a App> {
    cx.inventory.claimants(key, cx.policy).filter_map(|id| cx.inventory.app(id)).collect()
}

/// The claimant whose sync this is, if it is one, and the others.
///
/// A sync writes its own Application's marker. When somebody edits an object, the marker says who synced last, and that
/// one loses as much as the others.
fn parties<'a>(
    cx: &Context<'_>,
    claimants: &[&'a App],
    old: &ObjectMeta,
    new: &ObjectMeta,
) -> (Option<&'a App>, Vec<&'a App>) {
    let marks = |meta: &ObjectMeta, app: &App| cx.inventory.ownership(app, meta) == Ownership::Own;
    let by_argocd = is_sync_identity(cx.inputs(), &cx.request.user.username);
    let syncing = claimants.iter().copied().find(|app| marks(new, app) && (by_argocd || !marks(old, app)));
    let others = claimants.iter().copied().filter(|app| syncing.is_none_or(|syncing| !std::ptr::eq(syncing, *app)));
    (syncing, others.collect())
}
