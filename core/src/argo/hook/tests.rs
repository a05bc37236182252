//! One test for every line of the facts about hooks and waves.

use super::*;

fn meta(annotations: &[(&str, &str)]) -> ObjectMeta {
    ObjectMeta {
        annotations: annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..ObjectMeta::default()
    }
}

fn phases(annotations: &[(&str, &str)]) -> Option<Vec<Phase>> {
    Hook::of(&meta(annotations)).map(|hook| hook.phases)
}

use Phase::{PostDelete, PostSync, PreDelete, PreSync, Sync, SyncFail};

#[test]
fn argo_list_is_trimmed_and_its_empty_and_repeated_items_are_dropped() {
    assert_eq!(phases(&[(HOOK, " PreSync ,, PostSync,PreSync ")]), Some(vec![PreSync, PostSync]));
}

#[test]
fn argo_types_are_case_sensitive() {
    for (value, wanted) in [
        ("PreSync", Some(PreSync)),
        ("Sync", Some(Sync)),
        ("PostSync", Some(PostSync)),
        ("SyncFail", Some(SyncFail)),
        ("PreDelete", Some(PreDelete)),
        ("PostDelete", Some(PostDelete)),
        ("presync", None),
        ("PRESYNC", None),
        ("Presync", None),
        ("pre-install", None),
        ("skip", None),
    ] {
        let hook = Hook::of(&meta(&[(HOOK, value)])).unwrap();
        assert_eq!(hook.phase(), wanted, "{value}");
        assert_eq!(hook.unknown.is_empty(), wanted.is_some(), "{value}");
    }
}

#[test]
fn deletion_phases_may_stand_in_a_list() {
    assert_eq!(phases(&[(HOOK, "PostDelete, PreDelete")]), Some(vec![PreDelete, PostDelete]));
    assert_eq!(phases(&[(HOOK, "PreDelete,PreSync")]), Some(vec![PreSync, PreDelete]));
}

#[test]
fn helm_types_become_phases() {
    for (value, wanted) in [
        ("pre-install", vec![PreSync]),
        ("pre-upgrade", vec![PreSync]),
        ("pre-install,pre-upgrade", vec![PreSync]),
        ("post-install", vec![PostSync]),
        ("post-upgrade", vec![PostSync]),
        ("post-install, pre-upgrade", vec![PreSync, PostSync]),
        ("pre-delete", vec![PreDelete]),
        ("post-delete", vec![PostDelete]),
        ("test", vec![]),
        ("test-success", vec![]),
        ("test-failure", vec![]),
        ("pre-rollback,post-rollback", vec![]),
    ] {
        let hook = Hook::of(&meta(&[(HELM_HOOK, value)])).unwrap();
        assert_eq!(hook.phases, wanted, "{value}");
        assert!(hook.unknown.is_empty() && hook.helm_only, "{value}");
    }
}

#[test]
fn misspelt_helm_type_is_unknown() {
    let hook = Hook::of(&meta(&[(HELM_HOOK, "pre-instal,post-install")])).unwrap();
    assert_eq!(hook.phases, [PostSync]);
    assert_eq!(hook.unknown, [(HELM_HOOK, "pre-instal".to_owned())]);
}

#[test]
fn crd_install_alone_is_no_hook() {
    assert_eq!(phases(&[(HELM_HOOK, "crd-install")]), None);
    assert_eq!(phases(&[(HELM_HOOK, "crd-install,pre-install")]), Some(vec![PreSync]));
}

#[test]
fn object_without_a_hook_annotation_is_no_hook() {
    assert_eq!(phases(&[(SYNC_WAVE, "3"), (DELETE_POLICY, "HookSucceeded")]), None);
}

#[test]
fn argo_key_makes_a_hook_whatever_its_value() {
    for value in ["", " , ", "garbage"] {
        assert_eq!(phases(&[(HOOK, value)]), Some(vec![]), "{value}");
    }
}

#[test]
fn valid_argo_types_win_over_helm() {
    assert_eq!(phases(&[(HOOK, "Sync"), (HELM_HOOK, "post-install")]), Some(vec![Sync]));
    let hook = Hook::of(&meta(&[(HOOK, "Sync"), (HELM_HOOK, "nonsense")])).unwrap();
    assert!(hook.unknown.is_empty() && !hook.helm_only);
}

#[test]
fn helm_types_count_where_no_argo_type_is_valid() {
    let hook = Hook::of(&meta(&[(HOOK, "presync"), (HELM_HOOK, "pre-install")])).unwrap();
    assert_eq!(hook.phases, [PreSync]);
    assert_eq!(hook.unknown, [(HOOK, "presync".to_owned())]);
    assert_eq!(phases(&[(HOOK, ""), (HELM_HOOK, "post-install")]), Some(vec![PostSync]));
}

#[test]
fn deletion_looks_at_both_annotations() {
    assert_eq!(phases(&[(HOOK, "PreSync"), (HELM_HOOK, "pre-delete,pre-install")]), Some(vec![PreSync, PreDelete]));
    assert_eq!(phases(&[(HOOK, "PreDelete"), (HELM_HOOK, "post-install")]), Some(vec![PostSync, PreDelete]));
}

#[test]
fn hook_without_a_valid_type_is_never_applied() {
    assert_eq!(Stage::of(&meta(&[(HOOK, "garbage")])), None);
    assert_eq!(Stage::of(&meta(&[(HELM_HOOK, "test")])), None);
}

#[test]
fn skip_counts_only_alone() {
    let of = |value: &str| Hook::of(&meta(&[(HOOK, value), (HELM_HOOK, "pre-install,pre-delete")])).unwrap();
    assert!(of("Skip").skipped && of("Skip").phases.is_empty());
    assert!(of("Skip,Skip").skipped);
    assert!(of("Skip,typo").skipped);
    let beside = of("Skip,PreSync");
    assert!(!beside.skipped && beside.idle_skip);
    assert_eq!(beside.phases, [PreSync, PreDelete]);
    assert_eq!(Stage::of(&meta(&[(HOOK, "Skip")])), None);
}

#[test]
fn earliest_phase_of_a_list_counts() {
    assert_eq!(Stage::of(&meta(&[(HOOK, "PostSync,PreSync,Sync")])), Some(Stage::new(PreSync, 0)));
    assert_eq!(Stage::of(&meta(&[(HOOK, "SyncFail,PostSync")])), Some(Stage::new(PostSync, 0)));
    assert_eq!(Stage::of(&meta(&[])), Some(Stage::new(Sync, 0)));
}

#[test]
fn wave_is_what_atoi_reads() {
    for (text, wanted) in [
        ("0", Some(0)),
        ("5", Some(5)),
        ("-5", Some(-5)),
        ("+5", Some(5)),
        ("007", Some(7)),
        ("-0", Some(0)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("99999999999999999999", None),
        ("", None),
        (" ", None),
        (" 1", None),
        ("1 ", None),
        ("1\n", None),
        ("1.0", None),
        ("0.5", None),
        ("0x1", None),
        ("1e3", None),
        ("1_000", None),
        ("+", None),
        ("-", None),
        ("--1", None),
        ("+-1", None),
        ("five", None),
        ("\u{0663}", None),
        ("\u{ff11}", None),
    ] {
        assert_eq!(atoi(text), wanted, "{text:?}");
    }
}

#[test]
fn wave_falls_back_to_the_helm_weight_and_then_to_zero() {
    let of = |annotations: &[(&str, &str)]| Wave::of(&meta(annotations)).value;
    assert_eq!(of(&[(SYNC_WAVE, "2"), (HELM_WEIGHT, "7")]), 2);
    assert_eq!(of(&[(SYNC_WAVE, "1.0"), (HELM_WEIGHT, "7")]), 7);
    assert_eq!(of(&[(SYNC_WAVE, ""), (HELM_WEIGHT, "-7")]), -7);
    assert_eq!(of(&[(HELM_WEIGHT, "7")]), 7);
    assert_eq!(of(&[(SYNC_WAVE, "x"), (HELM_WEIGHT, "y")]), 0);
    assert_eq!(of(&[]), 0);
}

#[test]
fn malformed_numbers_are_kept_as_written() {
    let meta = meta(&[(SYNC_WAVE, "1.0"), (HELM_WEIGHT, " 7")]);
    let wave = Wave::of(&meta);
    assert_eq!((wave.value, wave.malformed, wave.malformed_weight), (0, Some("1.0"), Some(" 7")));
}

#[test]
fn helm_weight_counts_without_any_hook() {
    assert_eq!(Stage::of(&meta(&[(HELM_WEIGHT, "-3")])), Some(Stage::new(Sync, -3)));
}

#[test]
fn delete_policies_of_both_families_add_up() {
    use DeletePolicy::{BeforeHookCreation, HookFailed, HookSucceeded};
    let of = |annotations: &[(&str, &str)]| DeletePolicies::of(&meta(annotations));
    let both = of(&[(DELETE_POLICY, "BeforeHookCreation"), (HELM_DELETE_POLICY, "hook-succeeded, hook-failed")]);
    assert_eq!(both.effective(), [BeforeHookCreation, HookSucceeded, HookFailed]);
    assert_eq!(both.added_by_helm(), [HookSucceeded, HookFailed]);
    let same = of(&[(DELETE_POLICY, "BeforeHookCreation"), (HELM_DELETE_POLICY, "before-hook-creation")]);
    assert!(same.added_by_helm().is_empty());
    let helm = of(&[(HELM_DELETE_POLICY, "hook-succeeded")]);
    assert_eq!(helm.effective(), [HookSucceeded]);
    assert!(helm.added_by_helm().is_empty());
}

#[test]
fn default_delete_policy_applies_where_none_is_valid() {
    for annotations in
        [&[][..], &[(DELETE_POLICY, "")], &[(DELETE_POLICY, "BeforeHookCreated")], &[(DELETE_POLICY, "hook-succeeded")]]
    {
        let policies = DeletePolicies::of(&meta(annotations));
        assert_eq!(policies.effective(), [DeletePolicy::BeforeHookCreation], "{annotations:?}");
    }
    let misspelt = DeletePolicies::of(&meta(&[(DELETE_POLICY, "HookSucceeded,hookfailed")]));
    assert_eq!(misspelt.effective(), [DeletePolicy::HookSucceeded]);
    assert_eq!(misspelt.unknown, [(DELETE_POLICY, "hookfailed".to_owned())]);
}

#[test]
fn phases_come_in_order_of_time() {
    assert!(Phase::ALL.is_sorted());
    assert_eq!(Stage::new(PreSync, 5).cmp(&Stage::new(Sync, 2)), std::cmp::Ordering::Less);
    assert_eq!(Stage::new(PreSync, 5).to_string(), "PreSync wave 5");
    assert_eq!(Stage::new(PostDelete, 5).to_string(), "PostDelete");
}
