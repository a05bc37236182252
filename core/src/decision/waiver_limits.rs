//! What was waived for the one who asks, and comes up again below: a cascade deletes later, under Argo CD's own name.

use jiff::Timestamp;

use super::{Decision, Effect, Finding, Outcome, Severity, mode_of};
use crate::{
    inventory::Inventory,
    kinds::is_sent,
    object::ObjectRef,
    policy::{Mode, Policy},
};

/// A warning for each object that the delete of `target` may go on to, and that Argo CD will then not be let through to:
/// only who asked was exempt, or broke the glass by being in a group. Whoever deletes hears it before the cascade rests there.
pub(super) fn warnings(
    decision: &Decision,
    target: &ObjectRef,
    policy: &Policy,
    inventory: &Inventory,
    now: Timestamp,
) -> Vec<Outcome> {
    let lasting_glass = decision.break_glass.as_ref().is_some_and(|glass| glass.lasts);
    if !decision.allowed() || lasting_glass {
        return Vec::new();
    }
    let later = policy.argocd_users();
    let comes_up_again = |finding: &Finding| {
        finding.severity == Severity::Deny
            && finding.key.is_some()
            && finding.object != *target
            && is_sent(&finding.object)
            && later.iter().all(|user| mode_of(finding, policy, inventory, user, now) == Mode::Enforce)
    };
    let waived = decision.outcomes.iter().filter(|outcome| comes_up_again(&outcome.finding));
    waived
        .map(|outcome| {
            let object = &outcome.finding.object;
            let mut finding = Finding::new(
                outcome.finding.rule.halfway,
                Severity::Warn,
                object.clone(),
                "only who asked is let through; Argo CD deletes this later under its own name, is refused, and the cascade rests",
            )
            .detail(format!("Argo CD itself may not delete {object}: the cascade will rest there (only you are exempt)"))
            .remedy("let the policy exempt the namespace or the project instead of the user");
            finding.claimants.clone_from(&outcome.finding.claimants);
            Outcome { finding, resolved: outcome.resolved.clone(), effect: Effect::Warned }
        })
        .collect()
}
