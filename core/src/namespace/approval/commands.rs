//! The commands that write an approval, and what else to do about a Namespace that is not approved.

use jiff::{SignedDuration, Timestamp};

use super::{
    APPROVE_GROUP, APPROVE_RESOURCE, APPROVE_VERB, APPROVED_BY, APPROVED_UID, APPROVED_UNTIL, Approval, Problem,
    REASON, acts_for_argocd,
};
use crate::{object::ObjectMeta, policy::Policy};

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
