//! Objects that leave a tree, or change in a way that nobody can apply.

use crate::support::{CLAIM, CONFIG, NAMESPACE, ROLE, Trees, application};

#[test]
fn same_trees_bring_nothing() {
    let all = [NAMESPACE, CONFIG, CLAIM, ROLE].concat();
    let trees = Trees::new(&[("web/all.yaml", &all)], &[("web/all.yaml", &all)]);
    assert_eq!(trees.found().0, [""; 0]);
    let said = trees.diff(&[]);
    assert_eq!((said.code, said.out.trim()), (0, "nothing found"));
    // Files may be cut and named otherwise inside an Application.
    let trees = Trees::new(
        &[("web/all.yaml", &all)],
        &[("web/a.yaml", CONFIG), ("web/b/c.yaml", &[NAMESPACE, CLAIM, ROLE].concat())],
    );
    assert_eq!(trees.found().0, [""; 0]);
}

#[test]
fn object_that_goes_is_named_and_fails_only_where_it_is_grave() {
    let trees = Trees::new(&[("web/a.yaml", &[CONFIG, ROLE].concat())], &[("web/a.yaml", ROLE)]);
    let (found, details) = trees.found();
    assert_eq!(found, ["warn diff/deleted ConfigMap shop/settings"]);
    assert!(details.contains("argocd/web prunes it"), "{details}");
    assert_eq!(trees.diff(&[]).code, 0);
    assert_eq!(trees.diff(&["--fail-on", "warn"]).code, 1);
    for (grave, object) in [(CLAIM, "PersistentVolumeClaim shop/data"), (NAMESPACE, "Namespace shop")] {
        let trees = Trees::new(&[("web/a.yaml", &[CONFIG, grave].concat())], &[("web/a.yaml", CONFIG)]);
        let (found, _) = trees.found();
        assert!(found.contains(&format!("deny diff/deleted {object}")), "{found:#?}");
        assert_eq!(trees.diff(&[]).code, 1);
    }
}

#[test]
fn namespace_and_definition_go_as_the_webhook_would_have_it() {
    let other = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\n";
    let trees = Trees::new(
        &[("web/a.yaml", &[NAMESPACE, CONFIG].concat()), ("db/a.yaml", other)],
        &[("web/a.yaml", CONFIG), ("db/a.yaml", other)],
    );
    let (found, details) = trees.found();
    assert!(found.contains(&"deny namespace-approval Namespace shop".to_owned()), "{found:#?}");
    assert!(found.iter().any(|line| line.starts_with("deny shared-claim")), "{found:#?}");
    assert!(details.contains("argocd/db"), "{details}");
    let definition = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: carts.example.com}\nspec: {group: example.com, scope: Namespaced, names: {kind: Cart, plural: carts}}\n";
    let cart = "---\napiVersion: example.com/v1\nkind: Cart\nmetadata: {name: a}\n";
    let trees = Trees::new(
        &[("crds/a.yaml", &[definition, CONFIG].concat()), ("web/a.yaml", cart)],
        &[("crds/a.yaml", CONFIG), ("web/a.yaml", cart)],
    );
    let (found, _) = trees.found();
    assert!(found.contains(&"deny diff/deleted CustomResourceDefinition carts.example.com".to_owned()), "{found:#?}");
    assert!(found.iter().any(|line| line.starts_with("deny shared-claim")), "{found:#?}");
}

#[test]
fn object_that_another_application_goes_on_rendering_is_claimed() {
    let trees = Trees::new(
        &[("old/a.yaml", &[ROLE, CONFIG].concat()), ("new/a.yaml", ROLE)],
        &[("old/a.yaml", CONFIG), ("new/a.yaml", ROLE)],
    );
    let (found, details) = trees.found();
    assert_eq!(found, ["deny shared-claim Role shop/api"], "{details}");
    assert!(details.contains("argocd/new"), "{details}");
}

#[test]
fn what_is_never_pruned_stays() {
    for annotation in ["argocd.argoproj.io/sync-options: Prune=false", "helm.sh/resource-policy: keep"] {
        let kept = format!(
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data, annotations: {{'{}': {}}}}}\n",
            annotation.split_once(": ").unwrap().0,
            annotation.split_once(": ").unwrap().1
        );
        let trees = Trees::new(&[("web/a.yaml", &[CONFIG, &kept].concat())], &[("web/a.yaml", CONFIG)]);
        assert_eq!(trees.found().0, ["warn diff/left-behind PersistentVolumeClaim shop/data"], "{annotation}");
    }
    // A hook is none of a prune's business, and neither is Delete=false.
    let hook =
        "---\napiVersion: v1\nkind: Secret\nmetadata: {name: h, annotations: {argocd.argoproj.io/hook: PreSync}}\n";
    let trees = Trees::new(&[("web/a.yaml", &[CONFIG, hook].concat())], &[("web/a.yaml", CONFIG)]);
    assert_eq!(trees.found().0, [""; 0]);
    let delete = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: h, annotations: {argocd.argoproj.io/sync-options: Delete=false}}\n";
    let trees = Trees::new(&[("web/a.yaml", &[CONFIG, delete].concat())], &[("web/a.yaml", CONFIG)]);
    assert_eq!(trees.found().0, ["warn diff/deleted Secret shop/h"]);
    let never = application("web", true, "  syncPolicy: {syncOptions: [Prune=false]}\n");
    let trees = Trees::new(
        &[("web/a.yaml", &[CONFIG, ROLE].concat()), ("root/a.yaml", &never)],
        &[("web/a.yaml", CONFIG), ("root/a.yaml", &never)],
    );
    assert_eq!(trees.found().0, ["warn diff/left-behind Role shop/api"]);
}

#[test]
fn rights_that_shrink_are_the_shared_update_rule() {
    let narrower = ROLE.replace("[get, update]", "[get]");
    let trees =
        Trees::new(&[("old/a.yaml", ROLE), ("new/a.yaml", ROLE)], &[("old/a.yaml", &narrower), ("new/a.yaml", ROLE)]);
    let (found, details) = trees.found();
    assert_eq!(found, ["deny shared-update Role shop/api"], "{details}");
    // Nobody else relies on it.
    let trees = Trees::new(&[("old/a.yaml", ROLE)], &[("old/a.yaml", &narrower)]);
    assert_eq!(trees.found().0, [""; 0]);
}

#[test]
fn fields_that_cannot_change_are_named() {
    let cases = [
        (CLAIM.to_owned(), CLAIM.replace("10Gi", "5Gi"), "spec.resources.requests.storage (smaller)"),
        (CLAIM.to_owned(), CLAIM.replace("fast", "slow"), "spec.storageClassName"),
        (
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {selector: {matchLabels: {a: b}}}\n".to_owned(),
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {selector: {matchLabels: {a: c}}}\n".to_owned(),
            "spec.selector",
        ),
        (
            "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {containers: [{image: a}]}}}\n".to_owned(),
            "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {containers: [{image: b}]}}}\n".to_owned(),
            "spec.template",
        ),
    ];
    for (old, new, field) in cases {
        let trees = Trees::new(&[("web/a.yaml", &old)], &[("web/a.yaml", &new)]);
        let (found, details) = trees.found();
        assert!(found.len() == 1 && found[0].starts_with("warn diff/replaced"), "{found:#?}");
        assert!(details.contains(field), "{details}");
        let trees =
            Trees::new(&[("web/a.yaml", &old), ("x/a.yaml", &old)], &[("web/a.yaml", &new), ("x/a.yaml", &old)]);
        let (found, _) = trees.found();
        assert!(found.iter().any(|line| line.starts_with("deny diff/replaced")), "{found:#?}");
    }
    let larger = CLAIM.replace("10Gi", "20Gi");
    assert_eq!(Trees::new(&[("web/a.yaml", CLAIM)], &[("web/a.yaml", &larger)]).found().0, [""; 0]);
    let binding = |role: &str| {
        format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: b}}\nroleRef: {{kind: Role, name: {role}}}\nsubjects: []\n"
        )
    };
    let trees = Trees::new(&[("web/a.yaml", &binding("a"))], &[("web/a.yaml", &binding("b"))]);
    assert!(trees.found().0.contains(&"warn diff/replaced RoleBinding shop/b".to_owned()));
}
