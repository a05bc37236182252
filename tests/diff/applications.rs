//! Applications and sets of them that are dropped, renamed or pointed elsewhere.

use crate::support::{CLAIM, CONFIG, NAMESPACE, ROLE, Trees, application};

#[test]
fn child_that_its_parent_drops_takes_its_objects_along() {
    let (web, other) = (application("web", true, ""), application("other", true, ""));
    let all = [CONFIG, CLAIM, NAMESPACE].concat();
    let trees = Trees::new(
        &[("root/a.yaml", &[web.as_str(), &other].concat()), ("web/a.yaml", &all), ("other/a.yaml", ROLE)],
        &[("root/a.yaml", &other), ("other/a.yaml", ROLE)],
    );
    let (found, details) = trees.found();
    assert!(found.contains(&"deny diff/deleted Application argocd/web".to_owned()), "{found:#?}");
    assert!(details.contains("argocd/root prunes it, and takes 4 objects along"), "{details}");
    assert!(details.contains("Namespace shop") && details.contains("PersistentVolumeClaim shop/data"), "{details}");
    assert!(found.contains(&"deny namespace-approval Namespace shop".to_owned()), "{found:#?}");
    assert!(!trees.diff(&[]).out.contains("uid-"), "a made-up UID is shown");
    // It is told once, although its folder is gone as well.
    assert_eq!(found.iter().filter(|line| line.contains("diff/deleted Application")).count(), 1, "{found:#?}");
}

#[test]
fn child_without_a_finalizer_leaves_its_objects() {
    let web = application("web", false, "");
    let trees = Trees::new(
        &[("root/a.yaml", &[web.as_str(), CONFIG].concat()), ("web/a.yaml", CLAIM)],
        &[("root/a.yaml", CONFIG)],
    );
    let (found, _) = trees.found();
    assert_eq!(found, ["warn diff/deleted Application argocd/web"]);
}

#[test]
fn folder_that_is_gone_is_an_application_that_may_go() {
    let trees = Trees::new(&[("web/a.yaml", &[CONFIG, CLAIM].concat())], &[]);
    let (found, details) = trees.found();
    assert!(found.contains(&"deny diff/deleted Application argocd/web".to_owned()), "{found:#?}");
    assert!(
        details.contains("it is not rendered any more; if that means that it is deleted, and takes 2 objects along"),
        "{details}"
    );
}

#[test]
fn application_that_renders_nothing_any_more_prunes_what_it_had() {
    let web = application("web", true, "");
    let trees = Trees::new(&[("root/a.yaml", &web), ("web/a.yaml", CONFIG)], &[("root/a.yaml", &web)]);
    let (found, details) = trees.found();
    assert_eq!(found, ["warn diff/deleted ConfigMap shop/settings"], "{details}");
}

#[test]
fn renamed_child_cascades_over_what_the_new_one_claims() {
    let (old, new) = (application("web", true, ""), application("web-prod", true, ""));
    let all = [CONFIG, CLAIM].concat();
    let trees =
        Trees::new(&[("root/a.yaml", &old), ("web/a.yaml", &all)], &[("root/a.yaml", &new), ("web-prod/a.yaml", &all)]);
    let (found, details) = trees.found();
    assert!(found.iter().any(|line| line.starts_with("deny shared-claim")), "{found:#?}");
    assert!(details.contains("argocd/web-prod"), "{details}");
}

#[test]
fn child_that_is_pointed_elsewhere_or_changes_its_finalizers_is_named() {
    let before = application("web", true, "");
    let cases = [
        (
            application("web", false, ""),
            "warn diff/finalizer Application argocd/web",
            "will leave all its objects behind",
        ),
        (
            before.replace("namespace: shop}", "namespace: bank}"),
            "warn diff/repointed Application argocd/web",
            "another destination",
        ),
        (
            before.replace("project: default", "project: other"),
            "warn diff/repointed Application argocd/web",
            "another project",
        ),
        (before.replace("path: web", "path: api"), "warn diff/repointed Application argocd/web", "another source"),
    ];
    for (after, wanted, text) in cases {
        let trees = Trees::new(&[("root/a.yaml", &before)], &[("root/a.yaml", &after)]);
        let (found, details) = trees.found();
        assert!(found.contains(&wanted.to_owned()) && details.contains(text), "{found:#?} {details}");
    }
    let revision = before.replace("path: web", "path: web, targetRevision: v2");
    let trees = Trees::new(&[("root/a.yaml", &before)], &[("root/a.yaml", &revision)]);
    assert_eq!(trees.found().0, [""; 0]);
}

#[test]
fn set_that_names_its_applications_otherwise_drops_the_old_ones() {
    let set = |template: &str, names: &str| {
        format!(
            "---\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: teams, namespace: argocd}}\nspec:\n  generators: [{{list: {{elements: [{names}]}}}}]\n  template: {{metadata: {{name: '{template}'}}}}\n"
        )
    };
    let folders = [("a-web/a.yaml", CONFIG), ("b-web/a.yaml", ROLE)];
    let base = set("{{name}}-web", "{name: a}, {name: b}");
    let fewer = set("{{name}}-web", "{name: a}");
    let renamed = set("web-{{name}}", "{name: a}, {name: b}");
    let with = |set: &str, folders: &[(&'static str, &'static str)]| -> Vec<(String, String)> {
        let mut files: Vec<(String, String)> =
            folders.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        files.push(("root/a.yaml".to_owned(), set.to_owned()));
        files
    };
    let borrowed = |files: &[(String, String)]| -> Vec<(String, String)> { files.to_vec() };
    let trees = |base: Vec<(String, String)>, target: Vec<(String, String)>| {
        let view = |files: &'static [(String, String)]| {
            files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect::<Vec<_>>()
        };
        Trees::new(&view(borrowed(&base).leak()), &view(borrowed(&target).leak()))
    };
    let (found, details) = trees(with(&base, &folders), with(&fewer, &folders[..1])).found();
    assert!(found.contains(&"deny diff/deleted Application argocd/b-web".to_owned()), "{found:#?}");
    assert!(details.contains("ApplicationSet argocd/teams does not generate it any more"), "{details}");
    assert!(!details.contains("Application argocd/a-web goes"), "{details}");
    let new = [("web-a/a.yaml", CONFIG), ("web-b/a.yaml", ROLE)];
    let (found, details) = trees(with(&base, &folders), with(&renamed, &new)).found();
    assert!(found.iter().any(|line| line.starts_with("warn shared-update/generated ApplicationSet")), "{found:#?}");
    assert!(found.iter().any(|line| line.starts_with("deny shared-claim")), "{found:#?}");
    assert!(
        details.contains("argocd/web-a") && details.contains("cascades before one of another name exists"),
        "{details}"
    );
    let (found, _) = trees(with(&base, &folders), with(&base, &folders)).found();
    assert_eq!(found, [""; 0]);
}
