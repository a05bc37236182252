//! Manifests from public incidents: each file names its source and what is right.

use std::path::Path;

use crate::support::run;

/// The findings of `lint FILE` as they stand in its table, and the exit code.
fn lint(file: &str) -> (i32, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lint");
    let said = run(&folder, &["lint", file], "");
    assert_eq!(said.err, "", "{file}");
    let heads = said.out.lines().filter(|line| line.starts_with(file));
    (said.code, heads.map(|line| line.split_once(": ").unwrap().1.to_owned()).collect())
}

#[test]
fn mode_in_octal_hides_no_deadlock() {
    let error = "error[sync-wave/depends-on-later] Job shop/seed";
    assert_eq!(lint("L50.yaml"), (1, vec![error.to_owned(), error.to_owned()]));
}

#[test]
fn object_of_a_named_namespace_is_not_that_of_the_release() {
    let (code, found) = lint("L51.yaml");
    assert_eq!((code, found), (0, vec!["warning[sync-wave/namespace-unsaid] Job migrate".to_owned()]));
}

#[test]
fn secret_of_a_hook_is_in_use() {
    let (code, found) = lint("L53.yaml");
    assert_eq!(code, 0);
    assert!(found.contains(&"warning[sync-wave/hook-in-use] ExternalSecret store/s3-config".to_owned()), "{found:#?}");
}

#[test]
fn claim_that_waits_for_a_later_pod_is_refused() {
    let (code, found) = lint("L54.yaml");
    assert_eq!((code, found), (1, vec!["error[sync-wave/claim-waits] PersistentVolumeClaim shop/data".to_owned()]));
}
