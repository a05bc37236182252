use serde_json::{Value, json};

use crate::{
    decision::{Decision, Effect},
    policy::Mode,
    rules::testing::{World, details, update},
};

const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
const SET_CONTROLLER: &str = "system:serviceaccount:argocd:argocd-applicationset-controller";

const MILD: &str = "
rules: {sharedClaim: {mode: enforce}, namespaceApproval: {mode: enforce}}
overrides:
- {match: {projects: ['sandbox*']}, modes: {sharedClaim: audit, namespaceApproval: audit}}
- {match: {projects: [strict]}, modes: {sharedClaim: enforce}}";

fn app(name: &str, project: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name,
            "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": project, "source": {"repoURL": "https://g", "path": name},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"}, "resources": [
            {"group": "rbac.authorization.k8s.io", "kind": "Role", "namespace": "shop", "name": "api", "status": "Synced"}]}})
}

fn world(policy: &str, apps: &[Value]) -> World {
    World::new(policy).with(apps)
}

fn shared(policy: &str) -> World {
    world(policy, &[app("old", "prod"), app("new", "prod")])
}

fn moved(world: &World, user: &str, from: &str, to: &str) -> Decision {
    world.judge(&update(user, &app("old", from), &app("old", to)))
}

#[test]
fn move_into_a_milder_project_is_refused_and_names_it() {
    let decision = moved(&shared(MILD), "ops", "prod", "sandbox-1");
    assert!(!decision.allowed());
    let said = details(&decision).join("\n");
    for word in
        ["from project prod into sandbox-1", "refused by shared-claim", "Role shop/api", "ops lacks the verb approve"]
    {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    let finding = &decision.outcomes.iter().find(|outcome| outcome.effect == Effect::Refused).unwrap().finding;
    assert_eq!(finding.check.to_string(), "approval-integrity/exempting-project");
    assert_eq!(finding.remedies[0].commands[0].as_str(), "cascade-guard plan application old -n argocd");
}

#[test]
fn application_without_a_project_leaves_the_default_one() {
    let apps = [app("old", ""), app("new", "")];
    assert!(!moved(&world(MILD, &apps), "ops", "", "sandbox").allowed());
    let mild = MILD.replace("'sandbox*'", "default");
    assert!(!moved(&shared(&mild), "ops", "prod", "").allowed());
}

#[test]
fn other_moves_pass() {
    for (from, to) in
        [("prod", "other"), ("prod", "strict"), ("sandbox", "prod"), ("sandbox-1", "sandbox-2"), ("prod", "prod")]
    {
        let apps = [app("old", from), app("new", "prod")];
        assert!(moved(&world(MILD, &apps), "ops", from, to).allowed(), "{from} to {to}");
    }
}

#[test]
fn move_of_what_may_be_deleted_now_passes() {
    let alone = world(MILD, &[app("old", "prod")]);
    assert!(moved(&alone, "ops", "prod", "sandbox").is_plain_allow());
    let audit = MILD.replace("sharedClaim: {mode: enforce}", "sharedClaim: {mode: audit}");
    assert!(moved(&shared(&audit), "ops", "prod", "sandbox").allowed());
    assert!(moved(&shared(MILD).under(Mode::Warn), "ops", "prod", "sandbox").allowed());
    let mut lonely = app("old", "prod");
    lonely["metadata"]["finalizers"] = json!([]);
    let mut to = lonely.clone();
    to["spec"]["project"] = json!("sandbox");
    let world = world(MILD, &[lonely.clone(), app("new", "prod")]);
    assert!(world.judge(&update("ops", &lonely, &to)).allowed(), "its delete takes nothing along");
}

#[test]
fn move_that_leaves_the_delete_refused_passes() {
    let half = "
rules: {sharedClaim: {mode: enforce}, namespaceApproval: {mode: enforce}}
overrides: [{match: {projects: [sandbox]}, modes: {namespaceApproval: audit}}]";
    assert!(moved(&shared(half), "ops", "prod", "sandbox").allowed());
}

#[test]
fn policy_that_tells_no_projects_apart_lifts_nothing() {
    let policy = "
rules: {sharedClaim: {mode: enforce}}
overrides: [{match: {namespaces: [shop]}, modes: {namespaceApproval: audit}}]";
    assert!(moved(&shared(policy), "ops", "prod", "sandbox").allowed());
}

#[test]
fn exemption_counts_while_it_holds() {
    let until = |until: &str| {
        format!(
            "
rules: {{sharedClaim: {{mode: enforce}}}}
exemptions: [{{name: lab, match: {{projects: [lab]}}, rules: [sharedClaim], until: '{until}', reason: r}}]"
        )
    };
    assert!(!moved(&shared(&until("2027-01-01T00:00:00Z")), "ops", "prod", "lab").allowed());
    assert!(moved(&shared(&until("2026-01-01T00:00:00Z")), "ops", "prod", "lab").allowed());
}

#[test]
fn line_that_holds_for_another_user_counts() {
    let policy = "
rules: {sharedClaim: {mode: enforce}}
overrides: [{match: {projects: [lab], users: [alice]}, modes: {sharedClaim: 'off'}}]";
    assert!(!moved(&shared(policy), "ops", "prod", "lab").allowed());
    let all_hers = policy.replace("projects: [lab], ", "");
    assert!(moved(&shared(&all_hers), "ops", "prod", "lab").allowed(), "alice may delete it where it is");
}

#[test]
fn who_may_approve_every_namespace_may_move_it() {
    assert!(moved(&shared(MILD).may_approve("ops"), "ops", "prod", "sandbox").allowed());
    assert!(!moved(&shared(MILD).without_access_reviews(), "ops", "prod", "sandbox").allowed());
}

#[test]
fn parent_that_moves_its_child_is_warned() {
    let decision = moved(&shared(MILD), CONTROLLER, "prod", "sandbox");
    assert!(decision.allowed());
    assert!(details(&decision).join("\n").contains("into sandbox"), "{:?}", details(&decision));
    assert!(!moved(&shared(MILD), SET_CONTROLLER, "prod", "sandbox").allowed(), "a caller like anyone");
}

#[test]
fn terminating_application_may_be_moved() {
    let mut old = app("old", "prod");
    old["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:59:00Z");
    let mut new = old.clone();
    new["spec"]["project"] = json!("sandbox");
    assert!(shared(MILD).judge(&update("ops", &old, &new)).allowed());
}
