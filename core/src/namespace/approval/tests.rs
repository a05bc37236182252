use super::*;
use crate::policy::GuardPolicySpec;
use crate::remedy::{Command, Remedy};

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
        ["its approval ends too far ahead, at 2026-11-30T12:00:01Z; it may last until 2026-11-30T12:00:00Z at most"]
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
    let advice = |deleter: &str| remedies(&meta, now(), &policy, &problems_at_delete(&meta, now(), &policy, deleter));
    assert_eq!(
        advice("bob"),
        [
            Remedy::advice("let somebody else than bob delete it while the approval lasts, until 2026-11-29T20:00:00Z"),
            Remedy::run(
                "or let somebody else than bob approve it",
                Command::new("cascade-guard approve shop --for 2h")
            ),
        ]
    );
    // Nobody approved yet: the deleter hears that it has to be somebody else.
    for remedy in remedies(&namespace(&[]), now(), &policy, &[Problem::NotApproved]) {
        assert!(remedy.text.ends_with(", by somebody else than whoever deletes it (four eyes)"), "{remedy}");
        assert!(!remedy.to_string().contains("ANOTHER"), "{remedy}");
    }
}

#[test]
fn right_to_approve_is_asked_for_with_the_group_of_the_resource() {
    assert_eq!(
        how_to_check_the_right("shop").as_str(),
        r#"echo '{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"cascade-guard.io","name":"shop","resource":"namespacedeletions","verb":"approve"}}}' | kubectl create --validate=false -f - -o 'jsonpath={.status.allowed}'"#
    );
}

#[test]
fn commands_write_an_approval_the_policy_accepts() {
    let [ours, kubectl] = how_to_approve(&namespace(&[]), now(), &policy("maxTTL: 90m, requireReason: true"));
    assert_eq!(ours.commands[0].as_str(), "cascade-guard approve shop --for 90m --reason WHY");
    assert_eq!(
        kubectl.commands[0].as_str(),
        "kubectl annotate namespace shop --overwrite cascade-guard.io/deletion-approved-by=YOUR_USER_NAME \
         cascade-guard.io/deletion-approved-until=2026-11-29T13:30:00Z cascade-guard.io/deletion-approved-uid=84d21ae4 \
         cascade-guard.io/deletion-reason=WHY"
    );
    let [ours, _] = how_to_approve(&namespace(&[]), now(), &policy(""));
    assert_eq!(ours.commands[0].as_str(), "cascade-guard approve shop --for 2h");
}
