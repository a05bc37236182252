//! The rules. One file each, registered in [`RULES`] and nowhere else.
//!
//! A rule is a pure function of the request and the [`Context`]; it cannot fail and it never reads a clock or a network.
//! A DELETE is worked out before any rule runs ([`Context::deletion`]). What else a rule has to know it asks [`Facts`] for;
//! while an answer is out it leaves the object aside, because the rules will run again.

mod approval_integrity;
mod context;
mod control_plane;
mod namespace_approval;
mod policy;
mod runtime_dependency;
mod shared_claim;
mod shared_update;
pub mod sync_wave;
#[cfg(test)]
mod testing;

pub use self::{
    approval_integrity::foresees,
    context::{Context, Foreseen},
};
use crate::{
    admission::{Operation, Request},
    catalog::RuleMeta,
    decision::{Finding, Severity},
    facts::Facts,
    inventory::App,
    remedy::{Command, Remedy},
};

/// How an Application applies before it prunes.
fn prune_last(app: &App) -> Remedy {
    Remedy::run(
        "let it apply first and prune last",
        Command::new("argocd app set").word(app.path()).words(["--sync-option", "PruneLast=true"]),
    )
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

    /// Adds what is to be said where nobody found out in time what this rule would have found. What a delete takes is
    /// unknown then; of anything else it is only said. A rule that guards a power to delete has to judge all the same, by
    /// the request alone.
    fn when_overdue(&self, cx: &Context<'_>, findings: &mut Vec<Finding>) {
        let severity = if cx.request.operation == Operation::Delete { cx.on_unknown() } else { Severity::Warn };
        findings.push(cx.overdue(self.meta(), severity));
    }

    /// Adds what it finds.
    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>);
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
