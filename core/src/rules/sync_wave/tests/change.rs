//! Updates.

use super::*;

#[test]
fn update_that_touches_nothing_of_the_kind_passes() {
    let world = app(&entry("Secret", "db", 0));
    let old = job(&[("hook", "presync"), ("sync-wave", "x")], &secret("db"));
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    new["metadata"]["labels"] = json!({"a": "b"});
    new["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("other:batch/Job:shop/migrate");
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("i:2");
    new["spec"]["suspend"] = json!(true);
    assert_eq!(update(&world, &old, &new), NOTHING);
    let plain = job(&[("sync-wave", "x")], &json!({}));
    assert_eq!(update(&world, &plain, &plain), NOTHING);
}

#[test]
fn update_that_touches_the_order_is_judged() {
    let world = app(&format!("{},{}", entry("Secret", "db", 0), entry("Secret", "second", 0)));
    let good = job(&[("hook", "PostSync")], &secret("db"));
    let moved = job(&[("hook", "PreSync")], &secret("db"));
    assert_eq!(update(&world, &good, &moved), ["deny depends-on-later"]);
    let malformed = job(&[("hook", "PostSync"), ("sync-wave", "1.0")], &secret("db"));
    assert_eq!(update(&world, &good, &malformed), ["deny malformed-wave"]);
    // Only what is new is judged where the annotations stay.
    let mut grown = moved.clone();
    grown["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "second"}}]);
    assert_eq!(update(&world, &moved, &grown), ["deny depends-on-later"]);
    assert_eq!(update(&world, &grown, &moved), NOTHING);
    assert_eq!(update(&world, &moved, &good), NOTHING);
}

#[test]
fn object_that_is_being_deleted_is_never_refused() {
    let world = app(&entry("Secret", "db", 0));
    let old = job(&[("hook", "PostSync")], &secret("db"));
    let mut new = job(&[("hook", "nonsense"), ("sync-wave", "x")], &secret("db"));
    new["metadata"]["deletionTimestamp"] = json!("2026-11-29T11:00:00Z");
    assert_eq!(update(&world, &old, &new), NOTHING);
}
