//! Needs, and where they stand.

use super::*;

#[test]
fn hook_that_needs_a_later_phase_is_refused() {
    let world = app(&entry("Secret", "db", 0));
    assert_eq!(create(&world, &job(&[("hook", "PreSync")], &secret("db"))), ["deny depends-on-later"]);
    assert_eq!(
        create(&world, &job(&[("helm-hook", "pre-install,pre-upgrade")], &secret("db"))),
        ["deny depends-on-later"]
    );
    assert_eq!(create(&world, &job(&[("hook", "PostSync,PreSync")], &secret("db"))), ["deny depends-on-later"]);
}

#[test]
fn incident_is_refused_in_words_that_explain_it() {
    let world = app(&entry("Secret", "db", 2));
    let decision = decide(&world, ENFORCE, Some(&job(&[("hook", "PreSync"), ("sync-wave", "5")], &secret("db"))), None);
    let finding = &decision.outcomes[0].finding;
    assert_eq!((finding.check.id, decision.allowed()), ("wave-contradicts-phase", false));
    assert!(finding.summary.contains("inside one phase"));
    assert!(finding.detail.starts_with("PreSync wave 5 needs Secret shop/db"));
    assert_eq!(
        finding.remedies.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "run the Job later: argocd.argoproj.io/hook: Sync with argocd.argoproj.io/sync-wave: \"5\"",
            "or create Secret shop/db earlier: argocd.argoproj.io/hook: PreSync with argocd.argoproj.io/sync-wave: \"4\"",
            "if Git has changed since, have it compared, then sync again:\n    argocd app get argocd/shop --refresh",
        ]
    );
    assert_eq!(finding.claimants, ["argocd/shop"]);
}

#[test]
fn hook_that_follows_its_need_passes() {
    let world = app(&entry("Secret", "db", 2));
    for hook in [
        job(&[("hook", "Sync"), ("sync-wave", "2")], &secret("db")),
        job(&[("hook", "Sync"), ("sync-wave", "3")], &secret("db")),
        job(&[("hook", "Sync"), ("helm-hook-weight", "3")], &secret("db")),
        job(&[("hook", "PostSync"), ("sync-wave", "-9")], &secret("db")),
        job(&[("hook", "SyncFail")], &secret("db")),
        job(&[("helm-hook", "post-install")], &secret("db")),
    ] {
        assert_eq!(create(&world, &hook), NOTHING, "{hook}");
    }
}

#[test]
fn later_wave_of_the_same_phase_is_refused() {
    let world = app(&entry("Secret", "db", 2));
    let hook = job(&[("hook", "Sync"), ("sync-wave", "1")], &secret("db"));
    assert_eq!(create(&world, &hook), ["deny depends-on-later"]);
}

#[test]
fn claim_belongs_into_the_wave_of_its_pod() {
    let world = app(&entry("PersistentVolumeClaim", "data", 3));
    let spec = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    let remedies = |annotations| {
        let decision = decide(&world, ENFORCE, Some(&job(annotations, &spec)), None);
        decision.outcomes[0].finding.remedies[..2].iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        remedies(&[("hook", "Sync")]),
        [
            "give the Job argocd.argoproj.io/sync-wave: \"3\"",
            "or create PersistentVolumeClaim shop/data earlier: argocd.argoproj.io/sync-wave: \"0\"",
        ]
    );
    assert_eq!(
        remedies(&[("hook", "PreSync")])[1],
        "or create PersistentVolumeClaim shop/data outside this Application"
    );
}

#[test]
fn same_wave_is_refused_only_for_a_bare_pod_and_a_kind_applied_later() {
    let world = app(&entry("PriorityClass", "high", 0));
    let spec = json!({"priorityClassName": "high"});
    assert_eq!(create(&world, &job(&[("hook", "Sync")], &spec)), NOTHING);
    let mut pod = job(&[("hook", "Sync")], &json!({}));
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["spec"] = spec;
    pod["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("shop:/Pod:shop/migrate");
    assert_eq!(create(&world, &pod), ["deny depends-on-later"]);
    let world = app(&entry("ServiceAccount", "runner", 0));
    pod["spec"] = json!({"serviceAccountName": "runner"});
    assert_eq!(create(&world, &pod), NOTHING);
}

#[test]
fn need_from_an_earlier_install_is_a_warning() {
    let listed = app(&entry("Secret", "db", 0));
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(create(&(listed.clone() + &object("Secret", "db", "")), &hook), ["warn earlier-install"]);
    // The read does not find what the list calls Synced: they contradict each other.
    let synced = listed.replace("OutOfSync, syncWave", "Synced, syncWave");
    assert_eq!(create(&synced, &hook), ["warn earlier-install"]);
}

#[test]
fn need_that_is_being_deleted_does_not_count_as_there() {
    let leaving = object("Secret", "db", ", deletionTimestamp: '2026-11-29T11:00:00Z', finalizers: [x]");
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    let listed = app(&entry("Secret", "db", 2)) + &leaving;
    assert_eq!(create(&listed, &hook), ["warn being-deleted"]);
    let decision = decide(&listed, ENFORCE, Some(&hook), None);
    assert_eq!(
        decision.outcomes[0].finding.detail,
        "PreSync wave 0 needs Secret shop/db, which is being deleted; it comes again in Sync wave 2"
    );
    let synced = listed.replace("OutOfSync, syncWave", "Synced, syncWave");
    assert_eq!(create(&synced, &hook), ["warn being-deleted"]);
    assert_eq!(create(&(app(&entry("Secret", "x", 0)) + &leaving), &hook), ["warn being-deleted"]);
}

#[test]
fn need_that_nobody_creates_is_a_warning() {
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(create(&app(&entry("Secret", "x", 0)), &hook), ["warn nobody-creates"]);
    let there = app(&entry("Secret", "x", 0)) + &object("Secret", "db", "");
    assert_eq!(create(&there, &hook), NOTHING);
}

#[test]
fn optional_need_never_matters() {
    let spec = json!({"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "db", "optional": true}}]}]});
    assert_eq!(create(&app(&entry("Secret", "db", 0)), &job(&[("hook", "PreSync")], &spec)), NOTHING);
}

#[test]
fn pull_secret_that_comes_later_is_a_warning() {
    let spec = json!({"imagePullSecrets": [{"name": "db"}]});
    let hook = job(&[("hook", "PreSync")], &spec);
    assert_eq!(create(&app(&entry("Secret", "db", 0)), &hook), ["warn comes-later"]);
    assert_eq!(create(&app(&entry("Secret", "x", 0)), &hook), NOTHING);
}

#[test]
fn binding_that_refers_to_a_later_role_is_a_warning() {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "b", "namespace": "shop", "annotations": {"argocd.argoproj.io/hook": "PreSync",
            "argocd.argoproj.io/tracking-id": "shop:rbac.authorization.k8s.io/RoleBinding:shop/b"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}});
    assert_eq!(create(&app(&entry("Role", "r", 0)), &binding), ["warn comes-later"]);
}

#[test]
fn producer_that_comes_later_is_a_warning_and_an_earlier_one_is_fine() {
    let world = app(&entry("ExternalSecret", "db", 1));
    assert_eq!(create(&world, &job(&[("hook", "PreSync")], &secret("db"))), ["warn producer-later"]);
    assert_eq!(create(&world, &job(&[("hook", "Sync"), ("sync-wave", "2")], &secret("db"))), NOTHING);
}

#[test]
fn producer_that_is_a_hook_counts_where_it_stands() {
    let of = |wave: &str| {
        object(
            "ExternalSecret",
            "db",
            &format!(
                ", annotations: {{argocd.argoproj.io/tracking-id: 'shop:external-secrets.io/ExternalSecret:shop/db', \
                 argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/sync-wave: '{wave}'}}"
            ),
        )
        .replace("apiVersion: v1", "apiVersion: external-secrets.io/v1")
    };
    let listed = app("{group: external-secrets.io, kind: ExternalSecret, namespace: shop, name: db, hook: true}");
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(create(&(listed.clone() + &of("1")), &hook), ["warn producer-later"]);
    assert_eq!(create(&(listed.clone() + &of("-1")), &hook), NOTHING);
    assert_eq!(create(&listed, &hook), NOTHING);
}

#[test]
fn waves_are_as_wide_as_argo_cd_s() {
    let world = app(&entry("Secret", "db", 9_999_999_999));
    let of = |wave: &str| create(&world, &job(&[("hook", "Sync"), ("sync-wave", wave)], &secret("db")));
    assert_eq!(of("9999999998"), ["deny depends-on-later"]);
    assert_eq!(of("9999999999"), NOTHING);
    let world = app(&entry("Secret", "db", -9_999_999_999));
    let of = |wave: &str| create(&world, &job(&[("hook", "Sync"), ("sync-wave", wave)], &secret("db")));
    assert_eq!(of("-5000000000"), NOTHING);
    assert_eq!(of("-99999999999"), ["deny depends-on-later"]);
}

#[test]
fn policy_names_further_producers() {
    let world = app("{group: example.com, kind: Password, namespace: shop, name: db, status: OutOfSync}");
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(create(&world, &hook), ["warn nobody-creates"]);
    let policy = "rules: {syncWave: {mode: enforce, secretProducers: [Password.example.com]}}";
    assert_eq!(said(&decide(&world, policy, Some(&hook), None)), ["warn producer-later"]);
}

#[test]
fn earlier_hook_of_the_same_application_meets_a_need() {
    let of = |wave: &str| {
        object(
            "Secret",
            "db",
            &format!(
                ", annotations: {{argocd.argoproj.io/tracking-id: 'shop:/Secret:shop/db', argocd.argoproj.io/hook: PreSync, \
             argocd.argoproj.io/sync-wave: '{wave}'}}"
            ),
        )
    };
    let listed = app("{kind: Secret, namespace: shop, name: db, hook: true}");
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(create(&(listed.clone() + &of("-1")), &hook), NOTHING);
    assert_eq!(create(&(listed.clone() + &of("1")), &hook), ["warn earlier-install"]);
    assert_eq!(create(&listed, &hook), ["warn unknown-order"]);
}

#[test]
fn need_of_another_application_is_no_matter_of_order() {
    let other = app(&entry("Secret", "db", 0)).replace("name: shop,", "name: base,");
    let world = format!("{}---{other}", app(&entry("Secret", "x", 0)));
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(create(&world, &hook), ["warn other-application"]);
    assert_eq!(create(&world.replace("OutOfSync, syncWave", "Synced, syncWave"), &hook), NOTHING);
}

#[test]
fn list_that_is_not_believed_refuses_nothing() {
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    let world = app(&entry("Secret", "db", 0));
    assert_eq!(
        create(&world.replace("sync: {status: OutOfSync}", "sync: {status: Unknown}"), &hook),
        ["warn perhaps-later"]
    );
    let (synced, listed) = ("a".repeat(40), "b".repeat(40));
    let moved = world
        .replace("sync: {status: OutOfSync}", &format!("sync: {{status: OutOfSync, revision: '{listed}'}}"))
        + &format!("operation: {{sync: {{revision: '{synced}'}}}}\n");
    assert_eq!(create(&moved, &hook), ["warn perhaps-later"]);
    assert_eq!(create(&moved.replace(&synced, "1.2.4").replace(&listed, "1.2.3"), &hook), ["warn perhaps-later"]);
    assert_eq!(create(&moved.replace(&synced, "1.2.x"), &hook), ["deny depends-on-later"]);
}

#[test]
fn read_that_fails_refuses_nothing() {
    let world = app(&entry("Secret", "db", 0));
    let hook = job(&[("hook", "PreSync")], &secret("db"));
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"}, "operation": "CREATE", "object": hook}})
    .to_string();
    let request = decode(body.as_bytes()).unwrap();
    let policy = Policy::new(serde_saphyr::from_str(ENFORCE).unwrap()).unwrap();
    let inventory = Snapshot::parse("world", world).unwrap().inventory(&policy, (1, 2));
    let mut facts = crate::facts::Facts::new();
    facts.close("secrets is forbidden");
    let case = crate::judge::Case::new(&request, &policy, "2026-11-29T12:00:00Z".parse().unwrap());
    let decision = crate::judge::judge(&case, &inventory, &mut facts, None).decision;
    assert_eq!(said(&decision), ["warn not-read"]);
    assert!(decision.outcomes[0].finding.detail.contains("secrets is forbidden"));
}
