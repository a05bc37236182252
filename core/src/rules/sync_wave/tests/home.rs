//! Which Application a hook belongs to, and what is judged without one.

use super::*;

#[test]
fn hook_without_an_application_is_judged_by_itself() {
    let mut hook = job(&[("hook", "PreSync")], &secret("db"));
    let never = app("").replace("  sync: {status: OutOfSync}\n", "");
    assert_eq!(create(&never, &hook), ["warn unseen"]);
    let unknown = app(&entry("Secret", "db", 0)).replace("name: shop,", "name: other,");
    assert_eq!(create(&unknown, &hook), ["warn unseen"]);
    let remote = app(&entry("Secret", "db", 0)).replace("https://kubernetes.default.svc", "https://elsewhere");
    assert_eq!(create(&remote, &hook), ["warn unseen"]);
    hook["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"].take();
    let world = app(&entry("Secret", "db", 0));
    assert_eq!(create(&world, &without_marker(&hook)), ["warn unseen"]);
    hook["metadata"]["annotations"]["argocd.argoproj.io/hook"] = json!("presync");
    assert_eq!(create(&world, &without_marker(&hook)), ["deny unknown-hook"]);
}

fn without_marker(hook: &Value) -> Value {
    let mut hook = hook.clone();
    hook["metadata"]["annotations"].as_object_mut().unwrap().remove("argocd.argoproj.io/tracking-id");
    hook
}

#[test]
fn plain_helm_release_is_not_judged() {
    let world = app(&entry("Secret", "db", 0));
    let hook = without_marker(&job(&[("helm-hook", "pre-install"), ("helm-hook-weight", "x")], &secret("db")));
    assert_eq!(create(&world, &hook), NOTHING);
    let mut labelled = hook.clone();
    labelled["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "release"});
    assert_eq!(create(&world, &labelled), NOTHING);
    let mut misspelt = hook;
    misspelt["metadata"]["annotations"]["helm.sh/hook"] = json!("pre-instal");
    assert_eq!(create(&world, &misspelt), NOTHING);
}

#[test]
fn release_of_the_name_of_an_application_is_plain_helm_unless_argo_cd_made_the_hook() {
    let world = app(&entry("Secret", "db", 0));
    let mut hook = without_marker(&job(&[("helm-hook", "pre-install")], &secret("db")));
    hook["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    assert_eq!(create(&world, &hook), NOTHING);
    hook["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    assert_eq!(create(&world, &hook), ["deny depends-on-later"]);
}

#[test]
fn label_marks_a_hook_where_the_installation_says_so() {
    let settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\n\
                    data: {application.resourceTrackingMethod: label}\n";
    let mut hook = without_marker(&job(&[("helm-hook", "pre-install")], &secret("db")));
    hook["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    assert_eq!(create(&(app(&entry("Secret", "db", 0)) + settings), &hook), ["deny depends-on-later"]);
}

#[test]
fn application_outside_the_controller_namespace_is_found_by_its_instance_name() {
    let settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\n";
    let world = app(&entry("Secret", "db", 0)).replace("namespace: argocd}", "namespace: team}") + settings;
    let mut hook = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(create(&world, &hook), ["warn unseen"]);
    hook["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("team_shop:batch/Job:shop/migrate");
    assert_eq!(create(&world, &hook), ["deny depends-on-later"]);
}

#[test]
fn only_what_all_applications_of_one_name_contradict_is_refused() {
    let second = |entries: &str| {
        app(entries)
            .replace("namespace: argocd}", "namespace: argocd-2}")
            .replace("status:\n", "status:\n  controllerNamespace: argocd-2\n")
    };
    let late = entry("Secret", "db", 0);
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    let both = format!("{}---{}", app(&late), second(&late));
    assert_eq!(create(&both, &hook), ["deny depends-on-later"]);
    let one = format!("{}---{}", app(&late), second(&entry("Secret", "x", 0)));
    assert_eq!(create(&one, &hook), ["warn depends-on-later", "warn other-application"]);
}

#[test]
fn copied_annotations_make_no_hook() {
    let world = app(&entry("Secret", "db", 0));
    let mut copy = job(&[("hook", "presync"), ("sync-wave", "x")], &secret("db"));
    copy["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "u"}]);
    assert_eq!(create(&world, &copy), NOTHING);
    let mut renamed = job(&[("hook", "PreSync")], &secret("db"));
    renamed["metadata"]["name"] = json!("by-hand");
    assert_eq!(create(&world, &renamed), ["warn unseen"]);
}

#[test]
fn generated_name_does_not_hide_the_application() {
    let mut hook = job(&[("hook", "PreSync"), ("hook-delete-policy", "HookSucceeded")], &secret("db"));
    hook["metadata"]["name"] = json!("migrate-1a2b3c4-presync-1");
    hook["metadata"]["generateName"] = json!("migrate-");
    hook["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("shop:batch/Job:shop/");
    assert_eq!(create(&app(&entry("Secret", "db", 0)), &hook), ["deny depends-on-later"]);
}

#[test]
fn mode_follows_the_project_of_the_application() {
    let world = app(&entry("Secret", "db", 0)).replace("spec:\n", "spec:\n  project: payments\n");
    let policy =
        "{rules: {syncWave: {mode: enforce}}, overrides: [{match: {projects: [payments]}, modes: {syncWave: warn}}]}";
    let decision = decide(&world, policy, Some(&job(&[("hook", "PreSync")], &secret("db"))), None);
    assert_eq!(said(&decision), ["deny depends-on-later"]);
    assert!(decision.allowed());
    let alone = decide(&world, policy, Some(&job(&[("hook", "PreSync"), ("sync-wave", "1.5")], &json!({}))), None);
    assert_eq!(said(&alone), ["deny malformed-wave"]);
    assert!(alone.allowed());
}
