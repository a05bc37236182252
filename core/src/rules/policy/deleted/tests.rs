use serde_json::{Value, json};

use crate::{
    decision::Decision,
    policy::Mode,
    rules::testing::{World, delete, details},
};

const GLASS: &str = "
rules: {sharedClaim: {mode: enforce}}
breakGlass: {groups: [on-call], requireReason: false}";
const NO_GLASS: &str = "rules: {sharedClaim: {mode: enforce}}";

fn policy(name: &str) -> Value {
    json!({"apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": name, "uid": "p"}, "spec": {}})
}

fn definition(name: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name, "uid": "d"},
        "spec": {"group": "cascade-guard.io", "scope": "Cluster", "names": {"kind": "GuardPolicy", "plural": "guardpolicies"}}})
}

fn configuration() -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "cascade-guard", "uid": "w"}})
}

fn both() -> [Value; 2] {
    [policy("default"), definition("guardpolicies.cascade-guard.io")]
}

fn as_member(mut review: Value, group: &str) -> Value {
    review["request"]["userInfo"]["groups"] = json!([group]);
    review
}

fn judge(policy: &str, objects: &[Value], review: &Value) -> Decision {
    World::new(policy).with(objects).judge(review)
}

#[track_caller]
fn warns(decision: &Decision) {
    let said = details(decision).join("\n");
    assert!(decision.allowed() && said.contains("every rule with it into audit"), "{said}");
}

#[test]
fn nobody_but_the_group_deletes_the_policy_while_the_guard_is_asked() {
    for object in both() {
        let decision = judge(GLASS, &[configuration()], &delete("ops", &object));
        assert!(!decision.allowed());
        assert!(details(&decision)[0].contains("ops is in none of the groups that may break the glass (on-call)"));
        assert_eq!(decision.outcomes[0].finding.remedies.len(), 3);
        warns(&judge(GLASS, &[configuration()], &as_member(delete("ops", &object), "on-call")));
        assert!(!judge(GLASS, &[configuration()], &as_member(delete("ops", &object), "system:masters")).allowed());
    }
}

#[test]
fn whoever_takes_the_guard_away_is_told_and_let_through() {
    let mut leaving = configuration();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:59:00Z");
    for object in both() {
        warns(&judge(NO_GLASS, &[configuration()], &delete("ops", &object)));
        warns(&judge(GLASS, &[], &delete("ops", &object)));
        warns(&judge(GLASS, &[leaving.clone()], &delete("ops", &object)));
        warns(&World::new(GLASS).with(&[configuration()]).under(Mode::Audit).judge(&delete("ops", &object)));
    }
}

#[test]
fn application_that_holds_the_policy_is_judged_at_the_root() {
    const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
    let app = |more: &[Value]| {
        let listed = [
            &[json!({"group": "cascade-guard.io", "kind": "GuardPolicy", "name": "default", "status": "Synced"})],
            more,
        ]
        .concat();
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "guard", "namespace": "argocd", "uid": "u",
                "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {"project": "default", "destination": {"server": "https://kubernetes.default.svc"}},
            "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"}, "resources": listed}})
    };
    let mut marked = policy("default");
    marked["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "guard:cascade-guard.io/GuardPolicy:/default"});
    let world = |app: &Value| [app.clone(), marked.clone(), configuration()];
    let alone = app(&[]);
    assert!(!judge(GLASS, &world(&alone), &delete("ops", &alone)).allowed());
    let whole = app(&[json!({"group": "admissionregistration.k8s.io", "kind": "ValidatingWebhookConfiguration",
        "name": "cascade-guard", "status": "Synced"})]);
    warns(&judge(GLASS, &world(&whole), &delete("ops", &whole)));
    let mut leaving = alone;
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:59:00Z");
    assert!(judge(GLASS, &world(&leaving), &delete(CONTROLLER, &marked)).is_plain_allow(), "it was said at the root");
}

#[test]
fn other_policies_and_definitions_do_not_matter() {
    for object in [policy("draft"), definition("widgets.example.com")] {
        assert!(judge(GLASS, &[configuration()], &delete("ops", &object)).is_plain_allow(), "{object}");
    }
}
