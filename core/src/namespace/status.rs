//! Everything about one Namespace that somebody wants to delete: its approval, its content, and whether its delete would be
//! admitted.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    approval::{Approval, how_to_approve},
    approval_list::{ListedApproval, describe_approval},
    content::Content,
};
use crate::{
    decision::{Decision, Effect},
    inventory::Inventory,
    object::{ObjectMeta, ObjectRef},
    policy::{Mode, Policy, RuleKey, Subject},
    remedy::Remedy,
};

/// Everything about one Namespace, as `approvals status` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceStatus {
    /// Its approval.
    #[serde(flatten)]
    pub approval: ListedApproval,
    /// UID of the Namespace.
    pub uid: String,
    /// Mode of `namespace-approval` for it.
    pub mode: Mode,
    /// The line of the policy that decides the mode.
    pub decided_by: String,
    /// When its deletion began; absent while it is not being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleting_since: Option<Timestamp>,
    /// Whether its delete would be admitted now.
    pub deletable: bool,
    /// What refuses its delete, other than its own missing approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<OtherRefusal>,
    /// Whether somebody else than the approver has to delete it.
    pub four_eyes: bool,
    /// Its content.
    pub content: Content,
    /// How to approve it, one text each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Remedy>,
}

/// A finding that refuses the delete even if the Namespace is approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherRefusal {
    /// Rule id.
    pub rule: &'static str,
    /// What was found.
    pub detail: String,
    /// The ways out, one text each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Remedy>,
}

/// Whoever approves may look before anybody deletes, so the policy is read for no user in particular.
const ANYBODY: &str = "";

impl NamespaceStatus {
    /// Sums up the Namespace with this metadata. `decision` is what became of a DELETE of it.
    pub fn new(
        meta: &ObjectMeta,
        inventory: &Inventory,
        policy: &Policy,
        now: Timestamp,
        content: Content,
        decision: &Decision,
    ) -> Self {
        let subject = Subject { namespace: &meta.name, labels: Some(&meta.labels), project: None, user: ANYBODY };
        let resolved = policy.resolve(RuleKey::NamespaceApproval, &subject, now);
        let valid = Approval::read(meta).problems(meta, now, policy).is_empty();
        let approve = !valid && !meta.is_terminating();
        Self {
            approval: describe_approval(meta, inventory, policy, now),
            uid: meta.uid.clone(),
            mode: resolved.mode,
            decided_by: resolved.decided_by,
            deleting_since: meta.deletion_timestamp,
            deletable: decision.allowed(),
            refusals: refusals(&ObjectRef::namespace(&meta.name), decision),
            four_eyes: policy.spec.rules.namespace_approval.four_eyes,
            content,
            commands: if approve { how_to_approve(meta, now, policy).to_vec() } else { Vec::new() },
        }
    }
}

/// What refuses the delete, other than the missing approval of the Namespace itself: that is described by
/// [`ListedApproval`]. Another Namespace that goes along and is not approved does count.
fn refusals(namespace: &ObjectRef, decision: &Decision) -> Vec<OtherRefusal> {
    let refused = decision.outcomes.iter().filter(|outcome| outcome.effect == Effect::Refused);
    let own = Some(RuleKey::NamespaceApproval);
    refused
        .map(|outcome| &outcome.finding)
        .filter(|finding| !(finding.rule.key == own && finding.object == *namespace))
        .map(|finding| OtherRefusal {
            rule: finding.rule.id,
            detail: if finding.detail.is_empty() { finding.summary.clone() } else { finding.detail.clone() },
            commands: finding.remedies.clone(),
        })
        .collect()
}
