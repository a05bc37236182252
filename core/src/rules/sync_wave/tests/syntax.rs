//! Annotations, and what hooks do when they end.

use super::*;

#[test]
fn object_without_a_name_yet_is_called_by_its_generate_name() {
    let mut hook = job(&[("hook", "presync")], &json!({}));
    hook["metadata"].as_object_mut().unwrap().remove("name");
    hook["metadata"]["generateName"] = json!("migrate-");
    let decision = decide(&app(""), ENFORCE, Some(&hook), None);
    assert_eq!(decision.outcomes[0].finding.object.to_string(), "Job shop/migrate-*");
}

#[test]
fn malformed_wave_is_refused_on_a_hook_and_mentioned_on_anything_else() {
    let world = app(&entry("Secret", "x", 0));
    for wave in ["0.5", "", " 1", "1_0", "0x1", "99999999999999999999", "soon"] {
        assert_eq!(create(&world, &job(&[("hook", "Sync"), ("sync-wave", wave)], &json!({}))), ["deny malformed-wave"]);
        assert_eq!(create(&world, &job(&[("sync-wave", wave)], &json!({}))), ["warn malformed-wave"]);
    }
    for wave in ["5", "+5", "-5", "007"] {
        assert_eq!(create(&world, &job(&[("hook", "Sync"), ("sync-wave", wave)], &json!({}))), NOTHING);
    }
}

#[test]
fn unknown_types_are_refused_and_helms_own_are_not() {
    let world = app(&entry("Secret", "x", 0));
    let hook = |key, value| create(&world, &job(&[(key, value)], &json!({})));
    for value in ["presync", "", "PreSync,Postsync", "pre-install"] {
        assert_eq!(hook("hook", value), ["deny unknown-hook"], "{value}");
    }
    assert_eq!(hook("helm-hook", "pre-instal"), ["deny unknown-hook"]);
    for value in ["test", "test-success", "pre-rollback,post-rollback", "crd-install", "pre-install,test"] {
        assert_eq!(hook("helm-hook", value), NOTHING, "{value}");
    }
}

#[test]
fn skip_is_allowed_at_once() {
    let world = app(&entry("Secret", "db", 0));
    assert_eq!(create(&world, &job(&[("hook", "Skip"), ("sync-wave", "x")], &secret("db"))), NOTHING);
    assert_eq!(create(&world, &job(&[("hook", "Skip,typo")], &secret("db"))), ["warn unknown-hook"]);
    let beside = create(&world, &job(&[("hook", "Skip,PreSync")], &secret("db")));
    assert_eq!(beside, ["warn idle-skip", "deny depends-on-later"]);
}

#[test]
fn lifecycle_faults_are_warnings() {
    let world = app(&entry("Secret", "x", 0));
    let mut endless = job(&[("hook", "Sync")], &json!({"restartPolicy": "OnFailure"}));
    endless["spec"]["activeDeadlineSeconds"].take();
    assert_eq!(create(&world, &endless), ["warn no-deadline"]);
    let policies = |argo, helm| {
        create(
            &world,
            &job(&[("hook", "Sync"), ("hook-delete-policy", argo), ("helm-hook-delete-policy", helm)], &json!({})),
        )
    };
    assert_eq!(policies("BeforeHookCreation", "hook-succeeded"), ["warn policies-add-up"]);
    assert_eq!(policies("BeforeHookCreation", "before-hook-creation"), NOTHING);
    assert_eq!(policies("HookSucceeded", "hook-finished"), ["warn unknown-policy"]);
    let weight = job(&[("hook", "Sync"), ("helm-hook-weight", "1.5")], &json!({}));
    assert_eq!(create(&world, &weight), ["warn malformed-weight"]);
}

#[test]
fn hook_that_an_ordinary_object_uses_is_a_warning() {
    let hook = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "env", "namespace": "shop", "annotations": {
        "argocd.argoproj.io/tracking-id": "shop:/ConfigMap:shop/env", "argocd.argoproj.io/hook": "PreSync"}}});
    let deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {template: \
                      {spec: {containers: [{name: c, envFrom: [{configMapRef: {name: env}}]}]}}}\n";
    let world = app(&entry("Deployment", "web", 0)) + deployment;
    assert_eq!(create(&world, &hook), ["warn hook-in-use"]);
    assert_eq!(create(&world.replace("name: env}}", "name: other}}"), &hook), NOTHING);
    let foreign = app(&entry("Deployment", "other", 0)) + deployment;
    assert_eq!(create(&foreign, &hook), NOTHING);
}

#[test]
fn annotations_are_judged_before_the_caches_are_filled() {
    let hook = job(&[("hook", "presync")], &secret("db"));
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"}, "operation": "CREATE", "object": hook}});
    let judge_unready = |body: &Value| {
        let body = body.to_string();
        let request = decode(body.as_bytes()).unwrap();
        let policy = Policy::new(serde_saphyr::from_str(ENFORCE).unwrap()).unwrap();
        let mut inventory = Snapshot::default().inventory(&policy, (1, 2));
        inventory.set_ready(false);
        let case = crate::judge::Case::new(&request, &policy, "2026-11-29T12:00:00Z".parse().unwrap());
        said(&crate::judge::judge(&case, &inventory, &mut crate::facts::Facts::new(), None).decision)
    };
    assert_eq!(judge_unready(&body), ["deny unknown-hook"]);
    let mut valid = body;
    valid["request"]["object"] = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(judge_unready(&valid), ["warn not-ready"]);
}
