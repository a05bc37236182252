//! What every rule sees.

use jiff::Timestamp;

use super::RuleMeta;
use crate::{
    admission::{Operation, Request},
    decision::{BREAK_GLASS, Finding, Severity},
    facts::Facts,
    inventory::Inventory,
    policy::Policy,
};

/// A request and everything known around it.
pub struct Context<'a> {
    /// The request.
    pub request: &'a Request<'a>,
    /// What the cluster looks like.
    pub inventory: &'a Inventory,
    /// What the user configured.
    pub policy: &'a Policy,
    /// What was asked so far.
    pub facts: &'a Facts,
    /// The clock.
    pub now: Timestamp,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        request: &'a Request<'a>,
        inventory: &'a Inventory,
        policy: &'a Policy,
        facts: &'a Facts,
        now: Timestamp,
    ) -> Self {
        Self { request, inventory, policy, facts, now }
    }

    /// Requests that no rule may stand in the way of, because refusing them only strands what is half gone: an object
    /// that is already being deleted.
    pub(super) fn is_beyond_judgement(&self) -> bool {
        self.request.operation == Operation::Delete
            && self.request.old_object.as_ref().is_some_and(|object| object.meta.is_terminating())
    }

    /// The finding of a rule that cannot judge before the inventory is complete. Deletes cannot be undone and are
    /// refused; anything else only earns a warning.
    pub(super) fn not_ready(&self, rule: &'static RuleMeta) -> Finding {
        let severity = if self.request.operation == Operation::Delete { Severity::Deny } else { Severity::Warn };
        Finding::new(
            rule,
            severity,
            self.request.target.clone(),
            "cascade-guard is not ready: its caches of Applications are still being filled, so nobody can tell what this would take along",
        )
        .check("not-ready")
        .detail(format!("{} cannot be judged before the caches are in sync", self.request.target))
        .remedy("try again in a few seconds; kubectl -n cascade-guard get pods shows whether it becomes ready")
    }

    /// The reason by which every rule is waived for this request, if there is one.
    ///
    /// A member of a configured group may write [`BREAK_GLASS`] on an object and delete it; where no reason is required,
    /// membership alone is enough for a single request.
    pub(super) fn break_glass(&self) -> Option<String> {
        let configured = &self.policy.spec.break_glass;
        if configured.groups.is_empty() || self.request.operation != Operation::Delete {
            return None;
        }
        let member = self.policy.may_break_glass(&self.request.user.groups);
        let written = self
            .request
            .meta()
            .and_then(|meta| meta.annotation(BREAK_GLASS))
            .filter(|reason| !reason.trim().is_empty());
        match written {
            Some(reason) if member => Some(reason.to_owned()),
            None if member && !configured.require_reason => Some(format!("by {}", self.request.user.username)),
            _ => None,
        }
    }
}
