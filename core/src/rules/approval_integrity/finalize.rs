//! Who empties `spec.finalizers` of a Terminating Namespace.

use crate::{
    admission::Object,
    body::{Body, Condition},
    catalog::approval_integrity::FINALIZE,
    decision::{Finding, Severity},
    inventory::LOCAL,
    policy::Mode,
    remedy::{Command, Remedy},
    rules::Context,
};

/// Conditions by which the namespace controller says what it has not removed (`conditions.go` of its deletion package).
const REMAINING: [&str; 5] = [
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
    "NamespaceDeletionContentFailure",
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
];

/// Emptying `spec.finalizers` of a Terminating Namespace makes it vanish with no further review; what is in it stays in
/// storage, out of everybody's reach.
pub(super) fn finalize(cx: &Context<'_>, old: &Object<'_>, new: &Object<'_>, findings: &mut Vec<Finding>) {
    let line = "rules.namespaceApproval.protectFinalize";
    let mode = cx.policy.spec.rules.namespace_approval.protect_finalize;
    if !old.meta.is_terminating() || mode == Mode::Off || cx.policy.is_namespace_controller(&cx.request.user.username) {
        return;
    }
    let (before, after) = (old.decode::<Body>().unwrap_or_default(), new.decode::<Body>().unwrap_or_default());
    if before.finalizers.iter().all(|finalizer| after.finalizers.contains(finalizer)) {
        return;
    }
    let severity = if mode == Mode::Enforce { Severity::Deny } else { Severity::Warn };
    let name = &old.meta.name;
    let mut finding = Finding::new(
        &FINALIZE,
        severity,
        cx.request.target.clone(),
        "finalizing a Terminating Namespace by hand orphans what is still in it",
    )
    .detail(format!("finalizing Namespace {name} by hand orphans {}", remaining(cx, name, &before.conditions)))
    .remedy(Remedy::run(
        "see what holds it",
        Command::new("kubectl get namespace").word(name).words(["-o", "jsonpath={.status.conditions}"]),
    ))
    .remedy(
        "let the controllers that own the remaining finalizers finish, or remove those finalizers object by object",
    );
    finding.at_most = Some((mode, line));
    findings.push(finding);
}

/// What is left in a Terminating Namespace, as far as it can be told.
fn remaining(cx: &Context<'_>, name: &str, conditions: &[Condition]) -> String {
    let said: Vec<&str> = REMAINING
        .iter()
        .flat_map(|kind| {
            conditions.iter().filter(move |condition| condition.kind == *kind && condition.status == "True")
        })
        .map(|condition| condition.message.as_str())
        .filter(|message| !message.is_empty())
        .collect();
    if !said.is_empty() {
        return said.join("; ");
    }
    let mut kinds: Vec<&str> =
        cx.inventory.claims().in_namespace(LOCAL, name).map(|(_, bucket)| bucket.kind.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        "whatever its controller has not removed yet (its status does not say what)".to_owned()
    } else {
        format!("whatever is left of what Applications claim there: {}", kinds.join(", "))
    }
}
