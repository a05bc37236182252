//! Every approval there is, and the Namespaces whose deletion waits for one.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::approval::{Approval, Problem};
use crate::{
    inventory::{App, Inventory, LOCAL},
    object::{ObjectMeta, ObjectRef},
    policy::{Mode, Policy, RuleKey, Subject},
};

/// An approval that ends within this time counts as about to end.
const SOON: SignedDuration = SignedDuration::from_mins(15);

/// The state of a Namespace's approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// There is no approval.
    None,
    /// There is no approval, and a cascade waits for one.
    Pending,
    /// The Namespace may be deleted.
    Valid,
    /// The Namespace may be deleted, but not much longer.
    Ending,
    /// The approval was valid and has ended.
    Expired,
    /// Something else is wrong with the approval.
    Invalid,
    /// The Namespace is being deleted.
    Deleting,
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "not approved",
            Self::Pending => "pending",
            Self::Valid => "valid",
            Self::Ending => "about to end",
            Self::Expired => "expired",
            Self::Invalid => "invalid",
            Self::Deleting => "deleting",
        })
    }
}

/// A Namespace and its approval, as `approvals` prints them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedApproval {
    /// Name of the Namespace.
    pub namespace: String,
    /// The state of its approval.
    pub state: ApprovalState,
    /// Who approved.
    pub approved_by: String,
    /// When the approval ends, as written.
    pub approved_until: String,
    /// Why the Namespace may be deleted.
    pub reason: String,
    /// What is wrong with the approval.
    pub problems: Vec<String>,
    /// Applications whose deletion waits for the approval.
    pub wanted_by: Vec<String>,
}

/// Lists the Namespaces that carry an approval, or part of one, and those that wait for one, by name.
pub fn list_approvals(inventory: &Inventory, policy: &Policy, now: Timestamp) -> Vec<ListedApproval> {
    // A Namespace that is being deleted needs no approval any more.
    let concerned = |meta: &&ObjectMeta| !(meta.is_terminating() && Approval::read(meta).is_absent());
    let mut approvals: Vec<ListedApproval> = inventory
        .namespaces()
        .filter(concerned)
        .map(|meta| describe_approval(meta, inventory, policy, now))
        .filter(|approval| approval.state != ApprovalState::None)
        .collect();
    approvals.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    approvals
}

/// Describes the approval of one Namespace.
pub fn describe_approval(meta: &ObjectMeta, inventory: &Inventory, policy: &Policy, now: Timestamp) -> ListedApproval {
    let approval = Approval::read(meta);
    let problems = if approval.is_absent() { Vec::new() } else { approval.problems(meta, now, policy) };
    let wanted_by = wanted_by(meta, inventory, policy, now);
    ListedApproval {
        namespace: meta.name.clone(),
        state: state(meta, approval, &problems, &wanted_by, now),
        approved_by: approval.by.to_owned(),
        approved_until: approval.until.to_owned(),
        reason: approval.reason.to_owned(),
        problems: problems.iter().map(ToString::to_string).collect(),
        wanted_by,
    }
}

fn state(
    meta: &ObjectMeta,
    approval: Approval<'_>,
    problems: &[Problem],
    wanted_by: &[String],
    now: Timestamp,
) -> ApprovalState {
    if meta.is_terminating() {
        return ApprovalState::Deleting;
    }
    if approval.is_absent() {
        return if wanted_by.is_empty() { ApprovalState::None } else { ApprovalState::Pending };
    }
    match problems {
        [] if approval.end().is_some_and(|end| end.duration_since(now) <= SOON) => ApprovalState::Ending,
        [] => ApprovalState::Valid,
        [Problem::Expired { .. }] => ApprovalState::Expired,
        _ => ApprovalState::Invalid,
    }
}

/// Applications that are being deleted and cannot take the Namespace along, because nobody approved it in time.
fn wanted_by(meta: &ObjectMeta, inventory: &Inventory, policy: &Policy, now: Timestamp) -> Vec<String> {
    if meta.is_terminating() {
        return Vec::new();
    }
    let key = inventory.key_of(LOCAL, &ObjectRef::namespace(&meta.name));
    let waits = |app: &App| {
        let Some(began) = app.terminating.filter(|_| app.cascades) else { return false };
        let lists = app.claim(key).is_some_and(|claim| app.claims_class(claim.class));
        let subject =
            Subject { namespace: &meta.name, labels: Some(&meta.labels), project: Some(&app.project), user: "" };
        // A cascade is judged by the approval as it stood when it began.
        lists
            && policy.resolve(RuleKey::NamespaceApproval, &subject, now).mode == Mode::Enforce
            && !Approval::read(meta).problems(meta, began.min(now), policy).is_empty()
    };
    let owners = inventory.claims().owners(key).iter().filter_map(|id| inventory.app(*id));
    let mut paths: Vec<String> = owners.filter(|app| waits(app)).map(App::path).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;

    fn listed() -> Vec<ListedApproval> {
        let spec = "rules: {namespaceApproval: {mode: enforce}}";
        let policy = Policy::new(serde_saphyr::from_str(spec).unwrap()).unwrap();
        let cluster = Snapshot::parse("test", include_str!("tests.yaml").to_owned()).unwrap();
        list_approvals(&cluster.inventory(&policy, (1, 2)), &policy, "2026-11-29T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn every_approval_has_a_state() {
        let listed = listed();
        let states: Vec<_> = listed.iter().map(|approval| (approval.namespace.as_str(), approval.state)).collect();
        assert_eq!(
            states,
            [
                ("copied", ApprovalState::Invalid),
                ("ending", ApprovalState::Ending),
                ("expired", ApprovalState::Expired),
                ("going", ApprovalState::Deleting),
                ("valid", ApprovalState::Valid),
                ("wanted", ApprovalState::Pending),
            ]
        );
    }

    #[test]
    fn cascade_that_was_approved_when_it_began_waits_for_nothing() {
        let listed = listed();
        let expired = listed.iter().find(|approval| approval.namespace == "expired").unwrap();
        assert_eq!(expired.wanted_by, [""; 0], "{expired:?}");
    }
}
