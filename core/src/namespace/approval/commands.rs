//! The commands that write an approval, and what else to do about a Namespace that is not approved.

use jiff::{SignedDuration, Timestamp};

use super::{
    APPROVE_GROUP, APPROVE_RESOURCE, APPROVE_VERB, APPROVED_BY, APPROVED_UID, APPROVED_UNTIL, Approval, Problem,
    REASON, acts_for_argocd,
};
use crate::{
    object::ObjectMeta,
    policy::Policy,
    remedy::{Command, Remedy},
};

/// The command that says `true` to whoever may approve the deletion of this Namespace, and `false` to anybody else.
///
/// `kubectl auth can-i` says no to everybody: it drops the group of a resource that no API server serves. And what kubectl
/// creates it validates by definitions that not everybody may list.
pub fn how_to_check_the_right(namespace: &str) -> Command {
    let review = serde_json::json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": APPROVE_VERB, "group": APPROVE_GROUP, "resource": APPROVE_RESOURCE, "name": namespace}},
    });
    Command::new("echo")
        .word(review.to_string())
        .pipe(&Command::new("kubectl create --validate=false -f - -o").word("jsonpath={.status.allowed}"))
}

/// The commands that approve the Namespace `meta` from `now` on: ours, and the same with kubectl alone.
pub fn how_to_approve(meta: &ObjectMeta, now: Timestamp, policy: &Policy) -> [Remedy; 2] {
    let rule = &policy.spec.rules.namespace_approval;
    let name = &meta.name;
    let lasts = policy.max_ttl.min(SignedDuration::from_hours(2));
    // Nobody types fractions of a second.
    let until = now.saturating_add(lasts).unwrap_or(now);
    let until = Timestamp::from_second(until.as_second()).unwrap_or(until);
    // Both lines write the name of whoever types them.
    let whose = if rule.four_eyes { ", by somebody else than whoever deletes it (four eyes)" } else { "" };
    let (long, short): (&[&str], Option<String>) =
        if rule.require_reason { (&["--reason", "WHY"], Some(format!("{REASON}=WHY"))) } else { (&[], None) };
    let ours = Command::new("cascade-guard approve").words([name, "--for", &written(lasts)]).words(long);
    let kubectl = Command::new("kubectl annotate namespace").word(name).words([
        "--overwrite",
        &format!("{APPROVED_BY}=YOUR_USER_NAME"),
        &format!("{APPROVED_UNTIL}={until}"),
    ]);
    // Of a Namespace that could not be read the UID is not known; whoever runs the line can read it.
    let kubectl = if meta.uid.is_empty() {
        let read = Command::new("kubectl get namespace").words([name, "-o", "jsonpath={.metadata.uid}"]);
        kubectl.output(&format!("{APPROVED_UID}="), &read)
    } else {
        kubectl.word(format!("{APPROVED_UID}={}", meta.uid))
    };
    [
        Remedy::run(format!("approve the deletion{whose}"), ours),
        Remedy::run(format!("approve it with kubectl alone{whose}"), kubectl.words(short)),
    ]
}

/// What to do about the `problems` that keep a delete of the Namespace `meta` from going on.
pub fn remedies(meta: &ObjectMeta, now: Timestamp, policy: &Policy, problems: &[Problem]) -> Vec<Remedy> {
    let [ours, kubectl] = how_to_approve(meta, now, policy);
    match problems {
        // The approval is good, only not for this deleter: who approves once more would write the same name again.
        [Problem::SameEyes { approver, deleter }] if approver == deleter && !acts_for_argocd(deleter, policy) => vec![
            Remedy::advice(format!(
                "let somebody else than {deleter} delete it while the approval lasts, until {}",
                Approval::read(meta).until
            )),
            Remedy::steps(format!("or let somebody else than {deleter} approve it"), ours.commands),
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
