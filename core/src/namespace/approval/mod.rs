//! The approval of a Namespace's deletion: the annotations it consists of, and what can be wrong with it.
//!
//! An approval is bound to one Namespace by its UID, and it ends at a given time. So a copied, forgotten or inherited
//! approval permits nothing. The rule `namespace-approval` checks whether it is valid when something is deleted. The rule
//! `approval-integrity` checks who writes it. The command line writes and lists it.

mod commands;

use std::fmt;

use jiff::Timestamp;

pub use self::commands::{how_to_approve, how_to_check_the_right, remedies};

use crate::{
    object::ObjectMeta,
    policy::{Approvers, Policy},
};

/// Who approves: must be the user who writes it.
pub const APPROVED_BY: &str = "cascade-guard.io/deletion-approved-by";
/// When the approval ends (RFC 3339).
pub const APPROVED_UNTIL: &str = "cascade-guard.io/deletion-approved-until";
/// UID of the Namespace, so that one made anew under the same name does not inherit the approval.
pub const APPROVED_UID: &str = "cascade-guard.io/deletion-approved-uid";
/// Why the Namespace may go.
pub const REASON: &str = "cascade-guard.io/deletion-reason";

/// Verb an approver holds.
pub const APPROVE_VERB: &str = "approve";
/// Resource on which an approver holds the verb, under the name of the Namespace. It exists in RBAC only.
pub const APPROVE_RESOURCE: &str = "namespacedeletions";
/// API group of that resource.
pub const APPROVE_GROUP: &str = "cascade-guard.io";

/// All four keys.
pub const APPROVAL_KEYS: [&str; 4] = [APPROVED_BY, APPROVED_UNTIL, APPROVED_UID, REASON];

/// Whether a text has the form of RFC 3339. The library takes other forms of ISO 8601 too, and other tools that read the
/// annotation may not.
fn is_rfc3339(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c.to_ascii_uppercase() }).collect();
    let Some(rest) = shape.strip_prefix("0000-00-00T00:00:00").or_else(|| shape.strip_prefix("0000-00-00 00:00:00"))
    else {
        return false;
    };
    let zone = match rest.strip_prefix('.') {
        Some(fraction) if fraction.starts_with('0') => fraction.trim_start_matches('0'),
        Some(_) => return false,
        None => rest,
    };
    matches!(zone, "Z" | "+00:00" | "-00:00")
}

/// What every service account's user name begins with.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The approval on a Namespace, as written. A value that is missing or blank is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Approval<'a> {
    /// Who approves.
    pub by: &'a str,
    /// When it ends, as written.
    pub until: &'a str,
    /// UID it was written for.
    pub uid: &'a str,
    /// Why.
    pub reason: &'a str,
}

impl<'a> Approval<'a> {
    /// Reads what stands on an object.
    pub fn read(meta: &'a ObjectMeta) -> Self {
        let value = |key| meta.annotation(key).map(str::trim).unwrap_or_default();
        Self { by: value(APPROVED_BY), until: value(APPROVED_UNTIL), uid: value(APPROVED_UID), reason: value(REASON) }
    }

    /// Whether nothing of an approval is there. A reason alone approves nothing.
    pub fn is_absent(&self) -> bool {
        self.by.is_empty() && self.until.is_empty() && self.uid.is_empty()
    }

    /// When it ends, if that can be read.
    pub fn end(&self) -> Option<Timestamp> {
        if is_rfc3339(self.until) { self.until.parse().ok() } else { None }
    }

    /// Whatever is wrong with it on the Namespace `meta` at `now`, whoever wrote it and whoever deletes.
    pub fn problems(&self, meta: &ObjectMeta, now: Timestamp, policy: &Policy) -> Vec<Problem> {
        if self.is_absent() {
            return vec![Problem::NotApproved];
        }
        let rule = &policy.spec.rules.namespace_approval;
        let mut problems = Vec::new();
        for (key, value) in [(APPROVED_BY, self.by), (APPROVED_UNTIL, self.until), (APPROVED_UID, self.uid)] {
            if value.is_empty() {
                problems.push(Problem::Missing(key));
            }
        }
        if !self.uid.is_empty() && self.uid != meta.uid {
            problems.push(Problem::OtherNamespace { approved: self.uid.to_owned(), actual: meta.uid.clone() });
        }
        match self.end() {
            None if self.until.is_empty() => {}
            None => problems.push(Problem::NoTime(self.until.to_owned())),
            Some(end) if end <= now => problems.push(Problem::Expired { by: self.by.to_owned(), end }),
            Some(end) if end.duration_since(now) > policy.max_ttl => {
                problems.push(Problem::TooFarAhead { end, latest: now.saturating_add(policy.max_ttl).unwrap_or(end) });
            }
            Some(_) => {}
        }
        if rule.require_reason && self.reason.is_empty() {
            problems.push(Problem::NoReason);
        }
        if rule.approvers == Approvers::People && self.by.starts_with(SERVICE_ACCOUNT) {
            problems.push(Problem::NotAPerson(self.by.to_owned()));
        }
        problems
    }
}

/// Whatever keeps the approval on the Namespace `meta` from letting `deleter` delete it at `now`; nothing if it is valid.
///
/// With four eyes the deleter is another user than the approver. Argo CD deletes under its own names and does not tell
/// the API server who deleted the Application; then the approver only must not be Argo CD itself.
pub fn problems_at_delete(meta: &ObjectMeta, now: Timestamp, policy: &Policy, deleter: &str) -> Vec<Problem> {
    let approval = Approval::read(meta);
    let mut problems = approval.problems(meta, now, policy);
    if policy.spec.rules.namespace_approval.four_eyes && !approval.by.is_empty() {
        let same = approval.by == deleter || (acts_for_argocd(deleter, policy) && acts_for_argocd(approval.by, policy));
        if same {
            problems.push(Problem::SameEyes { approver: approval.by.to_owned(), deleter: deleter.to_owned() });
        }
    }
    problems
}

/// Whether `user` is Argo CD, in whatever part: an identity of the policy, or any service account that lives with it.
fn acts_for_argocd(user: &str, policy: &Policy) -> bool {
    policy.is_argocd(user)
        || user
            .strip_prefix(SERVICE_ACCOUNT)
            .and_then(|rest| rest.split_once(':'))
            .is_some_and(|(namespace, _)| policy.names_installation(namespace))
}

/// One thing that is wrong with an approval. Displayed as a clause that follows `Namespace shop: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nothing of an approval is there.
    NotApproved,
    /// One of the annotations that every approval has is missing.
    Missing(&'static str),
    /// The end is not a time.
    NoTime(String),
    /// It ended.
    Expired {
        /// Who approved.
        by: String,
        /// When it ended.
        end: Timestamp,
    },
    /// It ends later than the policy allows.
    TooFarAhead {
        /// When it ends.
        end: Timestamp,
        /// When it may end at the latest.
        latest: Timestamp,
    },
    /// It was written for another Namespace of this name.
    OtherNamespace {
        /// UID in the approval.
        approved: String,
        /// UID of this Namespace.
        actual: String,
    },
    /// The policy wants a reason.
    NoReason,
    /// A service account approved, and the policy wants people.
    NotAPerson(String),
    /// The deleter is the approver.
    SameEyes {
        /// Who approved.
        approver: String,
        /// Who deletes.
        deleter: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotApproved => {
                // The key comes first: a warning is cut at 120 characters.
                write!(f, "it lacks {APPROVED_BY}, -until and -uid: nobody approved its deletion")
            }
            Self::Missing(key) => write!(f, "its approval is not complete, {key} is missing"),
            Self::NoTime(text) => {
                write!(
                    f,
                    "its approval has no end, {APPROVED_UNTIL} is `{text}` and not a time such as 2026-11-29T18:00:00Z"
                )
            }
            Self::Expired { by, end } if by.is_empty() => write!(f, "its approval expired at {end}"),
            Self::Expired { by, end } => write!(f, "its approval by {by} expired at {end}"),
            Self::TooFarAhead { end, latest } => {
                write!(f, "its approval ends too far ahead, at {end}; it may last until {latest} at most")
            }
            Self::OtherNamespace { approved, actual } => write!(
                f,
                "it was approved for an earlier Namespace of this name (UID {approved}, this one is {actual})"
            ),
            Self::NoReason => write!(f, "its approval gives no reason ({REASON})"),
            Self::NotAPerson(by) => write!(f, "it was approved by {by}, and the policy wants a person to approve"),
            Self::SameEyes { approver, deleter } if approver == deleter => {
                write!(f, "{deleter} approved the deletion and so may not delete it (four eyes)")
            }
            Self::SameEyes { approver, deleter } => {
                write!(f, "Argo CD ({approver}) approved what Argo CD ({deleter}) deletes (four eyes)")
            }
        }
    }
}

#[cfg(test)]
mod tests;
