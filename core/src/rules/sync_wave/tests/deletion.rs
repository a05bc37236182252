//! Hooks of the deletion of an Application.

use super::*;

/// The Application of [`app`], being deleted.
fn leaving(entries: &str) -> String {
    app(entries).replace("namespace: argocd}", "namespace: argocd, deletionTimestamp: '2026-11-29T11:00:00Z'}")
}

#[test]
fn hook_of_a_deletion_is_never_refused_while_the_deletion_waits_for_it() {
    let world = leaving(&entry("Secret", "db", 0));
    for annotations in [
        &[("hook", "PreDelete"), ("sync-wave", "x")][..],
        &[("hook", "PostDelete,Postdelete")],
        &[("hook", "PreSync,PreDelete")],
    ] {
        let found = create(&world, &job(annotations, &secret("db")));
        assert!(!found.is_empty() && found.iter().all(|line| line.starts_with("warn")), "{found:?}");
    }
    let standing = app(&entry("Secret", "db", 0));
    assert_eq!(
        create(&standing, &job(&[("hook", "PreDelete"), ("sync-wave", "x")], &json!({}))),
        ["deny malformed-wave"]
    );
}

#[test]
fn pre_delete_hook_needs_what_is_still_there() {
    let hook = job(&[("helm-hook", "pre-delete")], &secret("db"));
    let listed = leaving(&entry("Secret", "db", 0));
    assert_eq!(create(&listed, &hook), ["warn nobody-creates"]);
    assert_eq!(create(&(listed.clone() + &object("Secret", "db", "")), &hook), NOTHING);
    assert_eq!(create(&listed.replace("OutOfSync, syncWave", "Synced, syncWave"), &hook), NOTHING);
}

#[test]
fn post_delete_hook_cannot_need_what_the_cascade_removes() {
    let hook = job(&[("hook", "PostDelete")], &secret("db"));
    let gone = leaving(&entry("Secret", "db", 0)).replace("OutOfSync, syncWave", "Synced, syncWave");
    assert_eq!(create(&gone, &hook), ["warn removed-first"]);
    let before =
        gone.replace("namespace: argocd,", "namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io],");
    assert_eq!(create(&(before.clone() + &object("Secret", "db", "")), &hook), ["warn removed-first"]);
    for kept in [
        "argocd.argoproj.io/sync-options: Delete=false",
        "helm.sh/resource-policy: keep",
        "argocd.argoproj.io/tracking-id: 'shop:/Secret:shop/db', argocd.argoproj.io/hook: PostDelete",
    ] {
        let world = before.clone() + &object("Secret", "db", &format!(", annotations: {{{kept}}}"));
        assert_eq!(create(&world, &hook), NOTHING, "{kept}");
    }
    assert_eq!(create(&(gone + &object("Secret", "db", "")), &hook), NOTHING, "it survived the cascade");
}
