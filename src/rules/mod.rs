//! The rules. One file each, registered in [`RULES`] and nowhere else.
//!
//! A rule is a pure function of the request and the [`Context`]; it cannot fail and it never reads a clock or a network.
//! What it does not know it asks [`Facts`] for; while an answer is out it leaves the object aside, because the rules will
//! run again.

pub mod approval;
mod approval_integrity;
mod context;
mod control_plane;
mod deletion;
mod namespace_approval;
pub mod namespace_content;
mod policy;
mod runtime_dependency;
mod shared_claim;
mod shared_update;
pub mod sync_wave;
#[cfg(test)]
mod testing;

use jiff::Timestamp;

pub use self::{context::Context, deletion::Deletion};
use crate::{
    admission::{Operation, Request},
    decision::{Decision, Finding},
    facts::Facts,
    inventory::Inventory,
    object::ObjectMeta,
    plan::Names,
    policy::{Policy, RuleKey},
};

/// What a rule is called and what it is about. Metrics labels, policy keys, messages and help texts come from here.
#[derive(Debug)]
pub struct RuleMeta {
    /// Stable id, as it stands in messages, metrics and annotations.
    pub id: &'static str,
    /// Its key in the policy; `None` for a rule that no policy can weaken.
    pub key: Option<RuleKey>,
    /// One line for people.
    pub summary: &'static str,
    /// Its page, below the root of the repository.
    pub docs: &'static str,
    /// The operations it judges.
    pub operations: &'static [Operation],
}

/// One rule.
pub trait Rule: Sync {
    /// What it is called and about.
    fn meta(&self) -> &'static RuleMeta;

    /// Whether it has anything to say about this request; cheap, decided by kind and operation.
    fn applies(&self, request: &Request<'_>) -> bool;

    /// Whether an answer without a full inventory would be a guess.
    fn needs_inventory(&self) -> bool {
        true
    }

    /// Adds what it finds.
    fn check(&self, cx: &Context<'_>, findings: &mut Vec<Finding>);
}

/// Every rule there is.
pub static RULES: &[&dyn Rule] = &[
    &shared_claim::SharedClaim,
    &namespace_approval::NamespaceApproval,
    &shared_update::SharedUpdate,
    &sync_wave::SyncWave,
    &approval_integrity::ApprovalIntegrity,
    &control_plane::ControlPlane,
    &runtime_dependency::RuntimeDependency,
    &policy::UsablePolicy,
];

/// Judges a request with what is known so far. While [`Facts::take_pending`] yields questions the result is provisional.
pub fn evaluate(
    request: &Request<'_>,
    inventory: &Inventory,
    policy: &Policy,
    facts: &Facts,
    now: Timestamp,
) -> Decision {
    decide(&Context::new(request, inventory, policy, facts, now, false))
}

/// The same, and everything a DELETE takes along by name: for people who look before they leap.
pub fn examine(
    request: &Request<'_>,
    inventory: &Inventory,
    policy: &Policy,
    facts: &Facts,
    now: Timestamp,
) -> (Decision, Option<Deletion>) {
    let cx = Context::new(request, inventory, policy, facts, now, true);
    let decision = decide(&cx);
    (decision, cx.into_deletion())
}

/// What a judgement before the last answers came found out and need not find out again.
#[derive(Debug, Default)]
pub struct Earlier {
    deletion: Option<Deletion>,
    names: Names,
}

/// Judges the DELETE of an object that the inventory knows, as it knows it: `meta` is all that is needed besides. Thousands
/// of Applications are judged so without decoding one of them again. An object the inventory does not know is looked up.
///
/// `earlier` is what the same call found out before its questions were answered, from the same inventory: nothing at first.
pub fn foresee(
    request: &Request<'_>,
    meta: &ObjectMeta,
    inventory: &Inventory,
    policy: &Policy,
    facts: &Facts,
    now: Timestamp,
    earlier: &mut Earlier,
) -> Decision {
    let cx = Context::new(request, inventory, policy, facts, now, false);
    let target = &request.target;
    let known = (target.is_application() && inventory.app_named(&target.namespace, &target.name).is_some())
        || (target.is_namespace() && inventory.namespace(&target.name).is_some());
    let cx = if known { cx.knowing(meta) } else { cx };
    let cx = cx.after(std::mem::take(earlier));
    let decision = decide(&cx);
    *earlier = cx.into_earlier();
    decision
}

fn decide(cx: &Context<'_>) -> Decision {
    let (request, inventory, policy, now) = (cx.request, cx.inventory, cx.policy, cx.now);
    let mut findings = Vec::new();
    if cx.is_beyond_judgement() {
        return Decision::default();
    }
    for rule in RULES.iter().filter(|rule| rule.meta().operations.contains(&request.operation)) {
        if !rule.applies(request) {
            continue;
        }
        if rule.needs_inventory() && !inventory.is_ready() {
            findings.extend(cx.not_ready(rule.meta()));
            continue;
        }
        rule.check(cx, &mut findings);
    }
    let glass = cx.break_glass();
    let holds = if glass.is_none() { cx.glass_holds() } else { None };
    let decision = Decision::new(findings, policy, inventory, &request.user.username, now, glass).noting(holds);
    if request.operation == Operation::Delete {
        decision.foretold(&request.target, policy, inventory, now)
    } else {
        decision
    }
}
