//! The words of an approval: the annotations it consists of, what can be wrong with it, and how to write one.
//!
//! An approval is bound to the Namespace it was written on (by UID) and to an end time, so a copied, forgotten or
//! inherited one opens nothing. `namespace-approval` asks whether it is valid when something is deleted,
//! `approval-integrity` whether it is true when it is written, and the command line writes and lists it.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

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
        || user.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':')).map(|(namespace, _)| namespace)
            == Some(policy.spec.argocd.namespace.as_str())
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

/// The command that says `true` to whoever may approve the deletion of this Namespace, and `false` to anybody else.
///
/// `kubectl auth can-i` says no to everybody: it drops the group of a resource that no API server serves. And what kubectl
/// creates it validates by definitions that not everybody may list.
pub fn how_to_check_the_right(namespace: &str) -> String {
    let review = serde_json::json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": APPROVE_VERB, "group": APPROVE_GROUP, "resource": APPROVE_RESOURCE, "name": namespace}},
    });
    format!("echo '{review}' | kubectl create --validate=false -f - -o 'jsonpath={{.status.allowed}}'")
}

/// The commands that approve the Namespace `meta` from `now` on: ours, and the same with kubectl alone.
pub fn how_to_approve(meta: &ObjectMeta, now: Timestamp, policy: &Policy) -> [String; 2] {
    let rule = &policy.spec.rules.namespace_approval;
    let name = &meta.name;
    let lasts = policy.max_ttl.min(SignedDuration::from_hours(2));
    // Nobody types fractions of a second.
    let until = now.saturating_add(lasts).unwrap_or(now);
    let until = Timestamp::from_second(until.as_second()).unwrap_or(until);
    // Both lines write the name of whoever types them.
    let whose = if rule.four_eyes { " # not by whoever deletes it (four eyes)" } else { "" };
    let (long, short) =
        if rule.require_reason { (" --reason \"WHY\"", format!(" {REASON}=\"WHY\"")) } else { ("", String::new()) };
    // Of a Namespace that could not be read the UID is not known; whoever runs the line can read it.
    let uid = if meta.uid.is_empty() {
        format!("$(kubectl get namespace {name} -o jsonpath={{.metadata.uid}})")
    } else {
        meta.uid.clone()
    };
    [
        format!("cascade-guard approve {name} --for {}{long}{whose}", written(lasts)),
        format!(
            "kubectl annotate namespace {name} --overwrite {APPROVED_BY}=YOUR_USER_NAME {APPROVED_UNTIL}={until} \
             {APPROVED_UID}={uid}{short}{whose}"
        ),
    ]
}

/// What to do about the `problems` that keep a delete of the Namespace `meta` from going on.
pub fn remedies(meta: &ObjectMeta, now: Timestamp, policy: &Policy, problems: &[Problem]) -> Vec<String> {
    let [ours, kubectl] = how_to_approve(meta, now, policy);
    match problems {
        // The approval is good, only not for this deleter: who approves once more would write the same name again.
        [Problem::SameEyes { approver, deleter }] if approver == deleter && !acts_for_argocd(deleter, policy) => vec![
            format!(
                "let somebody else than {deleter} delete it while the approval lasts, until {}",
                Approval::read(meta).until
            ),
            format!("or let somebody else than {deleter} approve it: {ours}"),
        ],
        _ => vec![ours, kubectl],
    }
}

/// A duration as the command line reads it, in its largest whole unit.
fn written(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match (seconds % 3600, seconds % 60) {
        (0, _) => format!("{}h", seconds / 3600),
        (_, 0) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::GuardPolicySpec;

    const UID: &str = "84d21ae4";
    const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";

    fn now() -> Timestamp {
        "2026-11-29T12:00:00Z".parse().unwrap()
    }

    fn policy(options: &str) -> Policy {
        let yaml = format!("rules: {{namespaceApproval: {{mode: enforce, {options}}}}}");
        Policy::new(serde_saphyr::from_str::<GuardPolicySpec>(&yaml).unwrap()).unwrap()
    }

    fn namespace(annotations: &[(&str, &str)]) -> ObjectMeta {
        ObjectMeta {
            name: "shop".to_owned(),
            uid: UID.to_owned(),
            annotations: annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            ..ObjectMeta::default()
        }
    }

    fn approved(by: &str, until: &str, uid: &str) -> ObjectMeta {
        namespace(&[(APPROVED_BY, by), (APPROVED_UNTIL, until), (APPROVED_UID, uid)])
    }

    fn said(meta: &ObjectMeta, options: &str, deleter: &str) -> Vec<String> {
        problems_at_delete(meta, now(), &policy(options), deleter).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_times_of_rfc_3339_end_an_approval() {
        let end = |until: &str| Approval { until, ..Approval::default() }.end().map(|end| end.to_string());
        for good in [
            "2026-11-29T20:00:00Z",
            "2026-11-29t20:00:00z",
            "2026-11-29 20:00:00Z",
            "2026-11-29T21:00:00.000+01:00",
            "2026-11-29T12:30:00-07:30",
        ] {
            assert_eq!(end(good).as_deref(), Some("2026-11-29T20:00:00Z"), "{good}");
        }
        for bad in [
            "2026-11-29",
            "2026-11-29T20Z",
            "2026-11-29T20:00Z",
            "20261129T200000Z",
            "+002026-11-29T20:00:00Z",
            "2026-11-29T20:00:00",
            "2026-11-29T20:00:00,5Z",
            "2026-11-29T20:00:00.Z",
            "2026-11-29T20:00:00Z[Asia/Tokyo]",
            "2026-13-29T20:00:00Z",
            "tomorrow",
        ] {
            assert_eq!(end(bad), None, "{bad}");
        }
    }

    #[test]
    fn approved_namespace_may_be_deleted() {
        assert_eq!(said(&approved("alice", "2026-11-29T20:00:00Z", UID), "", "alice"), [""; 0]);
        assert_eq!(said(&approved("alice", "2026-11-30T13:00:00+01:00", UID), "", "bob"), [""; 0]);
    }

    #[test]
    fn missing_approval_names_the_annotation() {
        let expected = "it lacks cascade-guard.io/deletion-approved-by, -until and -uid: nobody approved its deletion";
        assert_eq!(said(&namespace(&[]), "requireReason: true", "bob"), [expected]);
        assert_eq!(said(&namespace(&[(REASON, "CHG-1")]), "", "bob"), [expected]);
    }

    #[test]
    fn every_missing_field_has_its_own_sentence() {
        let meta = namespace(&[(APPROVED_UNTIL, "2026-11-29T20:00:00Z"), (APPROVED_UID, " ")]);
        assert_eq!(
            said(&meta, "", "bob"),
            [
                "its approval is not complete, cascade-guard.io/deletion-approved-by is missing",
                "its approval is not complete, cascade-guard.io/deletion-approved-uid is missing"
            ]
        );
    }

    #[test]
    fn approval_ends_at_its_end_and_not_later() {
        let ends = |until: &str| said(&approved("alice", until, UID), "", "bob");
        assert_eq!(ends("2026-11-29T12:00:00Z"), ["its approval by alice expired at 2026-11-29T12:00:00Z"]);
        assert_eq!(ends("2026-11-29T12:00:01Z"), [""; 0]);
        assert_eq!(ends("2026-11-30T12:00:00Z"), [""; 0]);
        assert_eq!(
            ends("2026-11-30T12:00:01Z"),
            [
                "its approval ends too far ahead, at 2026-11-30T12:00:01Z; it may last until 2026-11-30T12:00:00Z at most"
            ]
        );
        assert_eq!(
            ends("tomorrow"),
            [
                "its approval has no end, cascade-guard.io/deletion-approved-until is `tomorrow` and not a time such as 2026-11-29T18:00:00Z"
            ]
        );
    }

    #[test]
    fn approval_does_not_outlive_its_namespace() {
        assert_eq!(
            said(&approved("alice", "2026-11-29T20:00:00Z", "old"), "", "bob"),
            ["it was approved for an earlier Namespace of this name (UID old, this one is 84d21ae4)"]
        );
    }

    #[test]
    fn reason_is_asked_for_where_the_policy_wants_one() {
        let meta = approved("alice", "2026-11-29T20:00:00Z", UID);
        assert_eq!(
            said(&meta, "requireReason: true", "bob"),
            ["its approval gives no reason (cascade-guard.io/deletion-reason)"]
        );
    }

    #[test]
    fn service_account_does_not_count_as_a_person() {
        let meta = approved(CONTROLLER, "2026-11-29T20:00:00Z", UID);
        assert_eq!(said(&meta, "approvers: anyone", "bob"), [""; 0]);
        assert_eq!(said(&meta, "approvers: people", "bob").len(), 1);
    }

    #[test]
    fn four_eyes_want_another_deleter() {
        let by = |approver: &str, deleter: &str| {
            said(&approved(approver, "2026-11-29T20:00:00Z", UID), "fourEyes: true", deleter)
        };
        assert_eq!(by("alice", "alice"), ["alice approved the deletion and so may not delete it (four eyes)"]);
        assert_eq!(by("alice", "bob"), [""; 0]);
        assert_eq!(by("alice", CONTROLLER), [""; 0]);
        assert_eq!(
            by("system:serviceaccount:argocd:argocd-server", CONTROLLER),
            [
                "Argo CD (system:serviceaccount:argocd:argocd-server) approved what Argo CD (system:serviceaccount:argocd:argocd-application-controller) deletes (four eyes)"
            ]
        );
        assert_eq!(by(CONTROLLER, "bob"), [""; 0]);
    }

    #[test]
    fn four_eyes_send_nobody_back_to_the_same_refusal() {
        let policy = policy("fourEyes: true");
        let meta = approved("bob", "2026-11-29T20:00:00Z", UID);
        let advice =
            |deleter: &str| remedies(&meta, now(), &policy, &problems_at_delete(&meta, now(), &policy, deleter));
        assert_eq!(
            advice("bob"),
            [
                "let somebody else than bob delete it while the approval lasts, until 2026-11-29T20:00:00Z",
                "or let somebody else than bob approve it: cascade-guard approve shop --for 2h # not by whoever deletes it (four eyes)"
            ]
        );
        // Nobody approved yet: the deleter hears that it has to be somebody else.
        for command in remedies(&namespace(&[]), now(), &policy, &[Problem::NotApproved]) {
            assert!(command.ends_with(" # not by whoever deletes it (four eyes)"), "{command}");
            assert!(!command.contains("ANOTHER"), "{command}");
        }
    }

    #[test]
    fn right_to_approve_is_asked_for_with_the_group_of_the_resource() {
        assert_eq!(
            how_to_check_the_right("shop"),
            r#"echo '{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"cascade-guard.io","name":"shop","resource":"namespacedeletions","verb":"approve"}}}' | kubectl create --validate=false -f - -o 'jsonpath={.status.allowed}'"#
        );
    }

    #[test]
    fn commands_write_an_approval_the_policy_accepts() {
        let [ours, kubectl] = how_to_approve(&namespace(&[]), now(), &policy("maxTTL: 90m, requireReason: true"));
        assert_eq!(ours, "cascade-guard approve shop --for 90m --reason \"WHY\"");
        assert_eq!(
            kubectl,
            "kubectl annotate namespace shop --overwrite cascade-guard.io/deletion-approved-by=YOUR_USER_NAME \
             cascade-guard.io/deletion-approved-until=2026-11-29T13:30:00Z cascade-guard.io/deletion-approved-uid=84d21ae4 \
             cascade-guard.io/deletion-reason=\"WHY\""
        );
        let [ours, _] = how_to_approve(&namespace(&[]), now(), &policy(""));
        assert_eq!(ours, "cascade-guard approve shop --for 2h");
    }
}
