//! A tree against a cluster, and two revisions of a repository.

use std::{fs, path::Path, process::Command};

use crate::support::{CONFIG, ROLE, findings, run, write};

const CLUSTER: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: argoproj.io/v1alpha1
  kind: Application
  metadata: {name: web, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
  spec: {destination: {server: 'https://kubernetes.default.svc', namespace: shop}, syncPolicy: {automated: {prune: true}}}
  status:
    reconciledAt: '2026-11-29T11:00:00Z'
    sync: {status: Synced}
    resources:
    - {version: v1, kind: ConfigMap, namespace: shop, name: settings, status: Synced}
    - {version: v1, kind: Namespace, name: shop, status: Synced}
    - {group: rbac.authorization.k8s.io, version: v1, kind: Role, namespace: shop, name: api, status: Synced}
- apiVersion: argoproj.io/v1alpha1
  kind: Application
  metadata: {name: bank, namespace: argocd}
  spec: {destination: {server: 'https://kubernetes.default.svc', namespace: shop}}
  status:
    reconciledAt: '2026-11-29T11:00:00Z'
    sync: {status: Synced}
    resources: [{version: v1, kind: Secret, namespace: shop, name: db, status: Synced}]
- {apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: '1'}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, uid: '2', resourceVersion: '7'}, data: {a: '1'}}
";

#[test]
fn tree_is_compared_with_what_a_cluster_lists() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cluster.yaml"), CLUSTER).unwrap();
    write(folder.path(), &[("after/web/a.yaml", &[CONFIG, ROLE].concat())]);
    let said = run(folder.path(), &["diff", "after", "-n", "shop", "--snapshot", "cluster.yaml", "-o", "json"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let (found, details) = findings(&said.out);
    assert!(found.contains(&"deny diff/deleted Namespace shop".to_owned()), "{found:#?}");
    assert!(
        found.iter().any(|line| line.starts_with("deny shared-claim")) && details.contains("argocd/bank"),
        "{found:#?}"
    );
    assert!(!found.iter().any(|line| line.contains("ConfigMap")), "{found:#?}");
    write(folder.path(), &[("other/api/a.yaml", CONFIG)]);
    let said = run(folder.path(), &["diff", "other", "--snapshot", "cluster.yaml"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("no Application there has the name of a folder or file of this tree (api)"),
        "{}",
        said.err
    );
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(command.output().unwrap().status.success(), "{arguments:?}");
}

#[test]
fn two_revisions_of_a_repository_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q", "-b", "main"]);
    write(folder.path(), &[("rendered/web/a.yaml", &[CONFIG, ROLE].concat()), ("chart/values.yaml", "a: 1\n")]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-qm", "one"]);
    git(folder.path(), &["checkout", "-qb", "change"]);
    write(folder.path(), &[("rendered/web/a.yaml", CONFIG)]);
    git(folder.path(), &["commit", "-qam", "two"]);
    // What is not committed does not count, and the repository stays as it is.
    write(folder.path(), &[("rendered/web/a.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: later}}")]);
    for (place, tree) in [("", "rendered"), ("rendered", ".")] {
        let said =
            run(&folder.path().join(place), &["diff", "--git", "main..change", tree, "-n", "shop", "-o", "json"]);
        let (found, _) = findings(&said.out);
        assert_eq!(found, ["warn diff/deleted Role shop/api"], "{}", said.err);
        assert!(said.out.contains("\"file\": \"rendered/web/a.yaml\""), "{}", said.out);
    }
    let said = run(folder.path(), &["diff", "--git", "main...HEAD", "rendered", "-n", "shop"]);
    assert!(said.out.contains("Role shop/api"), "{}{}", said.out, said.err);
    assert!(fs::read_to_string(folder.path().join("rendered/web/a.yaml")).unwrap().contains("later"));
    for (range, wanted) in [("main", "main is no A..B"), ("main..gone", "git: "), ("..HEAD", "is no A..B")] {
        let said = run(folder.path(), &["diff", "--git", range, "rendered"]);
        assert!(said.code == 2 && said.err.contains(wanted), "{range}: {}", said.err);
    }
}
