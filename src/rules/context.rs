//! What every rule sees.

use std::{
    cell::{Cell, OnceCell, RefCell},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::{
    Earlier, RuleMeta,
    deletion::{self, Deletion},
};
use crate::{
    admission::{Operation, Request},
    decision::{BREAK_GLASS, BrokenGlass, Finding, Severity, mode_of},
    facts::{Facts, Reading},
    inventory::Inventory,
    object::{ObjectMeta, ObjectRef},
    plan::{Inputs, Item, Names, find_name},
    policy::{Mode, Policy},
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
    thorough: bool,
    known: Option<&'a ObjectMeta>,
    looked_up: OnceCell<Option<(Arc<RawValue>, ObjectMeta)>>,
    deletion: OnceCell<Option<Deletion>>,
    /// Whether no answer can change `deletion` any more.
    settled: Cell<bool>,
    names: RefCell<Names>,
}

#[derive(serde::Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        request: &'a Request<'a>,
        inventory: &'a Inventory,
        policy: &'a Policy,
        facts: &'a Facts,
        now: Timestamp,
        thorough: bool,
    ) -> Self {
        Self {
            request,
            inventory,
            policy,
            facts,
            now,
            thorough,
            known: None,
            looked_up: OnceCell::new(),
            deletion: OnceCell::new(),
            settled: Cell::new(false),
            names: RefCell::default(),
        }
    }

    /// The same, knowing what was found out before the last questions were answered.
    pub(super) fn after(self, earlier: Earlier) -> Self {
        // A plan says other things of what it could not read once nothing more is read.
        let deletion = earlier.deletion.filter(|_| !self.facts.is_spent());
        Self {
            settled: Cell::new(deletion.is_some()),
            deletion: deletion.map_or_else(OnceCell::new, |deletion| OnceCell::from(Some(deletion))),
            names: RefCell::new(earlier.names),
            ..self
        }
    }

    /// What was found out and no answer can change.
    pub(super) fn into_earlier(self) -> Earlier {
        let deletion = self.deletion.into_inner().flatten().filter(|_| self.settled.get());
        Earlier { deletion, names: self.names.into_inner() }
    }

    /// The same about a stored object that the inventory knows: its metadata is all that is read of it.
    pub(super) fn knowing(self, meta: &'a ObjectMeta) -> Self {
        Self { known: Some(meta), ..self }
    }

    /// What the planner reads.
    pub fn inputs(&self) -> Inputs<'a> {
        Inputs { inventory: self.inventory, policy: self.policy, facts: self.facts, thorough: self.thorough }
    }

    /// The stored object and its metadata: as the review carries it or, where it carries none, as it was looked up by
    /// name. `None` if there is none, or while it is being looked up.
    pub fn stored(&self) -> Option<(&RawValue, &ObjectMeta)> {
        if let Some(meta) = self.known {
            return Some((RawValue::NULL, meta));
        }
        if let Some(object) = &self.request.old_object {
            return Some((object.raw, &object.meta));
        }
        let (raw, meta) = self.looked_up.get_or_init(|| self.look_up()).as_ref()?;
        Some((raw, meta))
    }

    /// An API server always sends what it deletes; others that imitate one may not.
    fn look_up(&self) -> Option<(Arc<RawValue>, ObjectMeta)> {
        let target = &self.request.target;
        if self.request.operation != Operation::Delete || target.name.is_empty() {
            return None;
        }
        match self.facts.object(target)? {
            Reading::Found(raw) => {
                let OnlyMeta { metadata } = serde_json::from_str(raw.get()).ok()?;
                Some((raw, metadata))
            }
            Reading::NotFound => None,
            // It is there for all we know, and nothing on it can be relied on.
            Reading::Unreadable(_) | Reading::Forbidden(_) => {
                let raw = RawValue::from_string("{}".to_owned()).ok()?;
                let (name, namespace) = (target.name.clone(), target.namespace.clone());
                Some((raw.into(), ObjectMeta { name, namespace, ..ObjectMeta::default() }))
            }
        }
    }

    /// What the DELETE means and takes along; `None` for other operations, for objects that do not exist, and while an
    /// answer is out.
    pub fn deletion(&self) -> Option<&Deletion> {
        self.deletion
            .get_or_init(|| {
                if self.request.operation != Operation::Delete || !self.request.sub_resource.is_empty() {
                    return None;
                }
                let (raw, meta) = self.stored()?;
                let sent = self.known.is_none().then_some(raw);
                let deletion = deletion::new(self.inputs(), self.request, sent, meta.clone());
                self.settled.set(!self.facts.is_asking());
                deletion
            })
            .as_ref()
    }

    /// The same, given away.
    pub(super) fn into_deletion(self) -> Option<Deletion> {
        self.deletion();
        self.deletion.into_inner().flatten()
    }

    /// The name of an item of the plan, as [`find_name`] tells it.
    pub(super) fn name_of(&self, deletion: &Deletion, item: &Item) -> Option<Result<ObjectRef, String>> {
        find_name(self.inputs(), &deletion.plan, item, &mut self.names.borrow_mut())
    }

    /// Requests that no rule may stand in the way of, because refusing them only strands what is half gone: an object
    /// that is already being deleted.
    pub(super) fn is_beyond_judgement(&self) -> bool {
        self.request.operation == Operation::Delete && self.stored().is_some_and(|(_, meta)| meta.is_terminating())
    }

    /// The finding of a rule that cannot judge before the inventory is complete. Deletes cannot be undone and are
    /// refused, except those that go anyway: the content of a Terminating Namespace, what the garbage collector follows,
    /// an Application that takes nothing along. Anything else only earns a warning.
    pub(super) fn not_ready(&self, rule: &'static RuleMeta) -> Option<Finding> {
        let target = &self.request.target;
        let (severity, consequence) = if self.request.operation == Operation::Delete {
            let deletion = self.deletion()?;
            if !deletion.judged || deletion.takes_nothing() {
                return None;
            }
            (Severity::Deny, "nobody can tell what this would take along")
        } else {
            (Severity::Warn, "nobody can tell what this touches")
        };
        let summary =
            format!("cascade-guard is not ready: its caches of Applications are still being filled, so {consequence}");
        let finding = Finding::new(rule, severity, target.clone(), summary)
            .check("not-ready")
            .detail(format!("{target} cannot be judged before the caches are in sync"))
            .remedy("kubectl -n cascade-guard get pods   # shows whether it becomes ready; try again in a few seconds");
        Some(finding)
    }

    /// The mode that will apply to a finding.
    pub(super) fn mode_of(&self, finding: &Finding) -> Mode {
        mode_of(finding, self.policy, self.inventory, &self.request.user.username, self.now)
    }

    /// The reason by which every rule is waived for this request, if there is one.
    ///
    /// A member of a configured group may write [`BREAK_GLASS`] on an object and delete it; where no reason is required,
    /// membership alone is enough for a single request. What was waived so is waived for all it takes along.
    pub(super) fn break_glass(&self) -> Option<BrokenGlass> {
        let configured = &self.policy.spec.break_glass;
        if configured.groups.is_empty() || self.request.operation != Operation::Delete {
            return None;
        }
        if let Some(reason) = self.deletion().and_then(|deletion| deletion.broken_glass.clone()) {
            return Some(BrokenGlass { reason, lasts: true });
        }
        let member = self.policy.may_break_glass(&self.request.user.groups);
        self.stored()?;
        match self.written_on_glass().filter(|reason| !reason.trim().is_empty()) {
            Some(reason) if member => Some(BrokenGlass { reason: reason.to_owned(), lasts: true }),
            None if member && !configured.require_reason => {
                Some(BrokenGlass { reason: format!("by {}", self.request.user.username), lasts: false })
            }
            _ => None,
        }
    }

    /// What is written under [`BREAK_GLASS`] on the object that is deleted, whoever deletes it.
    fn written_on_glass(&self) -> Option<&str> {
        let (_, meta) = self.stored()?;
        // Its ApplicationSet takes off whatever is written on a generated Application.
        let on_its_set = || {
            let target = &self.request.target;
            let id = self.inventory.app_named(&target.namespace, &target.name).filter(|_| target.is_application())?;
            self.inventory.broken_glass(self.inventory.app(id)?)
        };
        meta.annotation(BREAK_GLASS).or_else(on_its_set)
    }

    /// Why the key that is there waives nothing, for whoever wrote it and is refused all the same. Asked only where
    /// [`Self::break_glass`] found no reason.
    pub(super) fn glass_holds(&self) -> Option<String> {
        if self.request.operation != Operation::Delete {
            return None;
        }
        let written = self.written_on_glass()?;
        let groups = &self.policy.spec.break_glass.groups;
        let user = &self.request.user;
        let why = if groups.is_empty() {
            "the policy names no group that may break the glass (spec.breakGlass.groups)".to_owned()
        } else if !self.policy.may_break_glass(&user.groups) {
            format!("{} is in none of its groups ({})", user.username, groups.join(", "))
        } else if written.trim().is_empty() {
            "it gives no reason".to_owned()
        } else {
            return None;
        };
        Some(format!("{BREAK_GLASS} is there and waives nothing: {why}"))
    }
}
