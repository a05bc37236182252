//! What every rule sees.

use jiff::Timestamp;

use crate::{
    admission::{Operation, Request},
    catalog::RuleMeta,
    decision::{BrokenGlass, Decision, Finding, Severity, mode_of},
    deletion::{Deletion, Inputs, Stored},
    inventory::Inventory,
    policy::{BREAK_GLASS, Mode, OnUnknown, Policy, break_glass_reason},
    remedy::{Command, Remedy},
};

/// What deleting the object of a request would come to.
#[derive(Debug)]
pub struct Foreseen {
    /// The decision on the delete.
    pub decision: Decision,
    /// Namespaces of the guard's own cluster that it touches, in order.
    pub namespaces: Vec<String>,
}

/// A request and everything known around it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The request.
    pub request: &'a Request<'a>,
    /// What the cluster looks like.
    pub inventory: &'a Inventory,
    /// What the user configured.
    pub policy: &'a Policy,
    /// The clock.
    pub now: Timestamp,
    /// Whether everything is named and read, not only what a decision hangs on.
    pub thorough: bool,
    /// Why claims may be out of date, if they may: a clause that says since when and what failed.
    pub stale: Option<&'a str>,
    /// The object as it is stored now, if there is one.
    pub stored: Option<&'a Stored<'a>>,
    /// What the DELETE means and takes along; `None` for other operations and for objects that do not exist.
    pub deletion: Option<&'a Deletion>,
    /// What deleting the object as it is stored would come to, where [`super::foresees`] the request.
    pub foreseen: Option<&'a Foreseen>,
}

impl<'a> Context<'a> {
    /// What the planner reads.
    pub fn inputs(&self) -> Inputs<'a> {
        Inputs { inventory: self.inventory, policy: self.policy, thorough: self.thorough }
    }

    /// The finding of a rule that cannot judge before the inventory is complete. Deletes cannot be undone and are
    /// refused, except those that go anyway: the content of a Terminating Namespace, what the garbage collector follows,
    /// an Application that takes nothing along. Anything else only earns a warning.
    pub(crate) fn not_ready(&self, rule: &'static RuleMeta) -> Option<Finding> {
        let target = &self.request.target;
        let (severity, consequence) = if self.request.operation == Operation::Delete {
            let deletion = self.deletion?;
            if !deletion.judged || deletion.takes_nothing() {
                return None;
            }
            (Severity::Deny, "nobody can tell what this would take along")
        } else {
            (Severity::Warn, "nobody can tell what this touches")
        };
        let summary =
            format!("cascade-guard is not ready: its caches of Applications are still being filled, so {consequence}");
        let finding = Finding::new(rule.not_ready, severity, target.clone(), summary)
            .detail(format!("{target} cannot be judged before the caches are in sync"))
            .remedy(Remedy::run(
                "try again in a few seconds; this shows whether it becomes ready",
                Command::new("kubectl -n cascade-guard get pods"),
            ));
        Some(finding)
    }

    /// How bad it is, by the policy, that something is not known.
    pub(crate) fn on_unknown(&self) -> Severity {
        match self.policy.spec.rules.shared_claim.on_unknown {
            OnUnknown::Deny => Severity::Deny,
            OnUnknown::Warn => Severity::Warn,
        }
    }

    /// The finding of a rule that had not finished judging when the time was over.
    pub(crate) fn overdue(&self, rule: &'static RuleMeta, severity: Severity) -> Finding {
        let target = &self.request.target;
        let summary = "cascade-guard had no time left to judge this, so what it would do is not known";
        Finding::new(rule.overdue, severity, target.clone(), summary)
            .detail(format!("{target} was not judged in time"))
            .remedy("try again; if it stays so, delete or change a part at a time")
            .remedy(Remedy::run(
                "see what keeps it busy",
                Command::new("kubectl -n cascade-guard logs deploy/cascade-guard"),
            ))
    }

    /// The mode that will apply to a finding.
    pub(crate) fn mode_of(&self, finding: &Finding) -> Mode {
        mode_of(finding, self.policy, self.inventory, &self.request.user.username, self.now)
    }

    /// The reason by which every rule is waived for this request, if there is one.
    ///
    /// A member of a configured group may write [`BREAK_GLASS`] on an object and delete it; where no reason is required,
    /// membership alone is enough for a single request. What was waived so is waived for all it takes along.
    pub(crate) fn break_glass(&self) -> Option<BrokenGlass> {
        let configured = &self.policy.spec.break_glass;
        if configured.groups.is_empty() || self.request.operation != Operation::Delete {
            return None;
        }
        if let Some(reason) = self.deletion.and_then(|deletion| deletion.broken_glass.clone()) {
            return Some(BrokenGlass { reason, lasts: true });
        }
        let member = self.policy.may_break_glass(&self.request.user.groups);
        self.stored?;
        match self.written_reason() {
            Some(reason) if member => Some(BrokenGlass { reason: reason.to_owned(), lasts: true }),
            None if member && !configured.require_reason => {
                Some(BrokenGlass { reason: format!("by {}", self.request.user.username), lasts: false })
            }
            _ => None,
        }
    }

    /// The reason that is written under [`BREAK_GLASS`] on the object that is deleted, whoever deletes it.
    fn written_reason(&self) -> Option<&str> {
        let meta = &self.stored?.meta;
        // Its ApplicationSet takes off whatever is written on a generated Application.
        let on_its_set = || {
            let target = &self.request.target;
            let id = self.inventory.app_named(&target.namespace, &target.name).filter(|_| target.is_application())?;
            self.inventory.broken_glass(self.inventory.app(id)?)
        };
        break_glass_reason(meta).or_else(on_its_set)
    }

    /// Why the key that is there waives nothing, for whoever wrote it and is refused all the same. Asked only where
    /// [`Self::break_glass`] found no reason.
    pub(crate) fn glass_holds(&self) -> Option<String> {
        if self.request.operation != Operation::Delete {
            return None;
        }
        let written = self.written_reason();
        if written.is_none() && self.stored?.meta.annotation(BREAK_GLASS).is_none() {
            return None;
        }
        let groups = &self.policy.spec.break_glass.groups;
        let user = &self.request.user;
        let why = if groups.is_empty() {
            "the policy names no group that may use it (spec.breakGlass.groups)".to_owned()
        } else if !self.policy.may_break_glass(&user.groups) {
            format!("{} is in none of its groups ({})", user.username, groups.join(", "))
        } else if written.is_none() {
            "it gives no reason".to_owned()
        } else {
            return None;
        };
        Some(format!("{BREAK_GLASS} is set but does not count: {why}"))
    }
}
