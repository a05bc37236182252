//! Claims that are no longer followed: what Applications want now is not known, so nothing that cascades may begin.

use crate::{
    catalog::shared_claim::{STALE, UNKNOWN},
    decision::{Finding, Severity},
    deletion::{Deletion, Explanation},
    object::ARGO_GROUP,
    remedy::{Command, Remedy},
    rules::Context,
};

/// Judged where a delete begins. What was admitted further up, before claims went stale, is not stranded half-way.
pub(super) fn check(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    let Some(why) = cx.stale.filter(|_| begins_here(deletion)) else { return };
    let object = &deletion.object;
    if !cascades(deletion) {
        findings.push(
            Finding::new(&STALE, Severity::Warn, object.clone(), "what Applications claim may be out of date")
                .detail(format!("{why}, so {object} is judged by what was known before"))
                .judged_in(deletion.scopes(object)),
        );
        return;
    }
    findings.push(
        Finding::new(&UNKNOWN, cx.on_unknown(), object.clone(), "what Applications claim now is not known")
            .detail(format!("{why}, so who claims what {object} takes is not known"))
            .judged_in(deletion.scopes_of_everything())
            .remedy(Remedy::run(
                "try again when cascade-guard follows the cluster again; this shows whether it does",
                Command::new("kubectl -n cascade-guard get pods"),
            )),
    );
}

/// A prune and a replacement were admitted nowhere, so they begin something as a direct delete does.
fn begins_here(deletion: &Deletion) -> bool {
    deletion.root
        || (matches!(deletion.explanation, Explanation::Prune(_) | Explanation::Replacement(_))
            && !deletion.is_mere_replacement())
}

/// An Application that leaves everything behind is not judged at all, so it does not get here.
fn cascades(deletion: &Deletion) -> bool {
    let object = &deletion.object;
    object.is_namespace()
        || object.is_application()
        || object.kind.is(ARGO_GROUP, "ApplicationSet")
        || object.kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
}
