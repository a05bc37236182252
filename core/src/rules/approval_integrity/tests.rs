use serde_json::{Value, json};

use super::*;
use crate::rules::testing::{self, World};

const ALICE: &str = "alice@example.com";
const END: &str = "2026-11-29T20:00:00Z";

fn enforce(options: &str) -> World {
    World::new(&format!("rules: {{namespaceApproval: {{mode: enforce{options}}}}}")).may_approve(ALICE)
}

fn namespace(annotations: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "u1", "annotations": annotations}, "spec": {"finalizers": ["kubernetes"]}})
}

fn approval(by: &str, until: &str, uid: &str) -> Value {
    namespace(&json!({APPROVED_BY: by, APPROVED_UNTIL: until, APPROVED_UID: uid}))
}

fn said(world: &World, user: &str, old: &Value, new: &Value) -> Vec<String> {
    testing::details(&world.judge(&testing::update(user, old, new)))
}

#[test]
fn approver_writes_in_their_own_name() {
    let old = namespace(&json!({}));
    assert_eq!(said(&enforce(""), ALICE, &old, &approval(ALICE, END, "u1")), [""; 0]);
    assert_eq!(
        said(&enforce(""), ALICE, &old, &approval("carol", END, "u1")),
        ["Namespace shop: it names carol as approver but alice@example.com writes it; approve in your own name"]
    );
}

#[test]
fn approver_holds_the_verb() {
    let old = namespace(&json!({}));
    assert_eq!(
        said(&enforce(""), "mallory", &old, &approval("mallory", END, "u1")),
        ["Namespace shop: mallory lacks the verb approve on namespacedeletions.cascade-guard.io shop"]
    );
    assert_eq!(
        said(&enforce("").without_access_reviews(), ALICE, &old, &approval(ALICE, END, "u1")),
        ["Namespace shop: whether alice@example.com may approve its deletion could not be checked: no answer"]
    );
}

#[test]
fn who_lacks_the_verb_is_told_how_to_find_somebody_who_holds_it() {
    let decision =
        enforce("").judge(&testing::update("mallory", &namespace(&json!({})), &approval("mallory", END, "u1")));
    let remedies = &decision.outcomes[0].finding.remedies;
    assert!(remedies[0].commands[0] == how_to_check_the_right("shop"), "{remedies:?}");
    assert!(
        !remedies.iter().any(|remedy| remedy.to_string().contains("can-i")),
        "kubectl drops the group of a resource it cannot map: {remedies:?}"
    );
}

#[test]
fn approval_is_written_through_a_subresource_under_the_same_conditions() {
    for sub_resource in ["status", "finalize"] {
        let mut request = testing::update("mallory", &namespace(&json!({})), &approval("mallory", END, "u1"));
        request["request"]["subResource"] = json!(sub_resource);
        assert!(!enforce("").judge(&request).allowed(), "{sub_resource}");
    }
}

#[test]
fn partial_or_malformed_approval_is_refused_when_written() {
    let old = namespace(&json!({}));
    let refused = |new: &Value| !said(&enforce(""), ALICE, &old, new).is_empty();
    assert!(refused(&namespace(&json!({APPROVED_BY: ALICE}))));
    assert!(refused(&namespace(&json!({"cascade-guard.io/deletion-reason": "CHG-1"}))));
    assert!(refused(&approval(ALICE, "soon", "u1")));
    assert!(refused(&approval(ALICE, "2026-11-29T11:00:00Z", "u1")));
    assert!(refused(&approval(ALICE, "2026-12-29T11:00:00Z", "u1")));
    assert!(refused(&approval(ALICE, END, "u0")));
}

#[test]
fn change_of_a_standing_approval_is_a_new_approval() {
    let old = approval(ALICE, END, "u1");
    assert!(!said(&enforce(""), "mallory", &old, &approval(ALICE, "2026-11-29T21:00:00Z", "u1")).is_empty());
    assert_eq!(said(&enforce(""), ALICE, &old, &approval(ALICE, "2026-11-29T21:00:00Z", "u1")), [""; 0]);
}

#[test]
fn anybody_may_withdraw_an_approval() {
    let old = approval(ALICE, END, "u1");
    assert_eq!(said(&enforce(""), "mallory", &old, &namespace(&json!({}))), [""; 0]);
    let half = namespace(&json!({APPROVED_BY: ALICE, APPROVED_UNTIL: END}));
    assert_eq!(said(&enforce(""), "mallory", &old, &half), [""; 0]);
}

#[test]
fn everything_else_on_an_approved_namespace_passes() {
    let old = approval(ALICE, "2026-11-29T11:00:00Z", "gone");
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"team": "a"});
    new["metadata"]["finalizers"] = json!([]);
    assert_eq!(said(&enforce(""), "mallory", &old, &new), [""; 0]);
}

#[test]
fn reason_and_people_are_asked_for_where_the_policy_wants_them() {
    let (old, robot) = (namespace(&json!({})), "system:serviceaccount:ci:bot");
    assert_eq!(
        said(&enforce(", requireReason: true"), ALICE, &old, &approval(ALICE, END, "u1")),
        ["Namespace shop: its approval gives no reason (cascade-guard.io/deletion-reason)"]
    );
    let world = enforce(", approvers: people").may_approve(robot);
    assert_eq!(
        said(&world, robot, &old, &approval(robot, END, "u1")),
        ["Namespace shop: it was approved by system:serviceaccount:ci:bot, and the policy wants a person to approve"]
    );
    assert_eq!(said(&enforce("").may_approve(robot), robot, &old, &approval(robot, END, "u1")), [""; 0]);
}

#[test]
fn namespace_created_with_an_approval_is_created_with_a_warning() {
    let decision = enforce("").judge(&testing::create("bob", &approval(ALICE, END, "u1")));
    assert!(decision.allowed());
    assert_eq!(
        testing::details(&decision),
        ["cascade-guard.io/deletion-approved-by on a new Namespace never counts; approve shop when it is to go"]
    );
}

#[test]
fn label_that_exempts_needs_the_right_to_approve() {
    let world = World::new(
        "
rules: {namespaceApproval: {mode: enforce}}
exemptions:
- {name: previews, match: {namespaces: ['*'], namespaceSelector: {matchLabels: {preview: 'true'}}},
   rules: [namespaceApproval], until: '2027-01-01T00:00:00Z', reason: r}",
    )
    .may_approve(ALICE);
    let old = namespace(&json!({}));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"preview": "true"});
    assert_eq!(said(&world, ALICE, &old, &new), [""; 0]);
    assert_eq!(
        said(&world, "mallory", &old, &new),
        [
            "Namespace shop: namespaceApproval would be off instead of enforce (exemption `previews`), and mallory lacks the verb approve on namespacedeletions.cascade-guard.io shop"
        ]
    );
    assert_eq!(said(&world, "mallory", &new, &old), [""; 0]);
    assert!(world.judge(&testing::create("mallory", &new)).is_plain_allow());
}

#[test]
fn only_the_configured_groups_write_the_break_glass_key() {
    let world = World::new("rules: {sharedClaim: {mode: enforce}}\nbreakGlass: {groups: [oncall]}");
    let application = |annotations: &Value| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "a", "namespace": "argocd", "annotations": annotations}})
    };
    let (plain, broken) = (application(&json!({})), application(&json!({BREAK_GLASS: "fire"})));
    let expected = "cascade-guard.io/break-glass on Application argocd/a: bob is in none of its groups (oncall)";
    assert_eq!(said(&world, "bob", &plain, &broken), [expected]);
    assert!(!world.judge(&testing::update("bob", &plain, &broken)).allowed());
    assert!(!world.judge(&testing::create("bob", &broken)).allowed());
    assert!(!world.judge(&testing::update("bob", &application(&json!({BREAK_GLASS: "smoke"})), &broken)).allowed());
    assert_eq!(said(&world, "bob", &broken, &broken), [""; 0]);
    assert_eq!(said(&world, "bob", &broken, &plain), [""; 0]);
    let mut member = testing::update("bob", &plain, &broken);
    member["request"]["userInfo"]["groups"] = json!(["oncall"]);
    assert!(world.judge(&member).is_plain_allow());
}

#[test]
fn nobody_breaks_a_glass_that_is_not_configured() {
    let new = namespace(&json!({BREAK_GLASS: "fire"}));
    assert_eq!(
        said(&enforce(""), ALICE, &namespace(&json!({})), &new),
        ["cascade-guard.io/break-glass on Namespace shop: the policy names no group that may (spec.breakGlass.groups)"]
    );
}

fn finalizing(options: &str, user: &str) -> crate::decision::Decision {
    let mut old = namespace(&json!({}));
    old["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:00:00Z");
    old["status"] = json!({"conditions": [{"type": "NamespaceFinalizersRemaining", "status": "True",
        "message": "example.com/x in 2 resource instances"}]});
    let mut new = old.clone();
    new["spec"]["finalizers"] = json!([]);
    let mut request = testing::update(user, &old, &new);
    request["request"]["subResource"] = json!("finalize");
    enforce(options).judge(&request)
}

#[test]
fn finalizing_by_hand_is_answered_as_the_policy_says() {
    use crate::decision::Effect;
    let decision = finalizing("", "ops");
    assert_eq!(
        testing::details(&decision),
        ["finalizing Namespace shop by hand orphans example.com/x in 2 resource instances"]
    );
    let effect = |options: &str| finalizing(options, "ops").outcomes.first().map(|outcome| outcome.effect);
    assert_eq!(effect(""), Some(Effect::Warned));
    assert_eq!(effect(", protectFinalize: enforce"), Some(Effect::Refused));
    assert_eq!(effect(", protectFinalize: audit"), Some(Effect::Recorded));
    assert_eq!(effect(", protectFinalize: 'off'"), None);
}

#[test]
fn namespace_controller_finalizes() {
    let controller = "system:serviceaccount:kube-system:namespace-controller";
    assert!(finalizing(", protectFinalize: enforce", controller).is_plain_allow());
}
