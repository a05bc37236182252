//! What the annotations of an object alone show: types and waves that Argo CD cannot read.

use super::{fixes, fixes::rounded, subject::Subject};
use crate::{
    argo::hook::{HELM_WEIGHT, HOOK, Hook, Phase, SYNC_WAVE, Wave},
    catalog::sync_wave::{MALFORMED_WAVE, MALFORMED_WEIGHT, UNKNOWN_HOOK},
    decision::{Finding, Fix, Severity},
    object::{ObjectMeta, ObjectRef},
};

/// Judges the annotations of a hook. The wave of a hook that never runs does not matter.
pub(super) fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    unknown_types(subject, findings);
    if subject.stage.is_none() {
        return;
    }
    let wave = Wave::of(subject.meta);
    if let Some(text) = wave.malformed {
        findings.push(malformed_wave((&subject.object, subject.meta), Severity::Deny, text, wave.value));
    }
    if let Some(text) = wave.malformed_weight {
        findings.push(
            Finding::new(
                &MALFORMED_WEIGHT,
                Severity::Warn,
                subject.object.clone(),
                "the hook weight is no whole number",
            )
            .detail(format!("{HELM_WEIGHT} `{text}` is no whole number; Argo CD takes the wave to be {}", wave.value))
            .remedy(format!("write {HELM_WEIGHT} as digits with an optional sign, such as \"-5\""))
            .on_annotation(HELM_WEIGHT)
            .fixed_by(whole_number(subject.meta, HELM_WEIGHT, text, wave.value)),
        );
    }
}

/// Judges the wave of an object that is no hook. Argo CD applies it all the same, only not when its author thinks.
pub(super) fn check_plain(object: &ObjectRef, meta: &ObjectMeta, findings: &mut Vec<Finding>) {
    let wave = Wave::of(meta);
    if let Some(text) = wave.malformed {
        findings.push(malformed_wave((object, meta), Severity::Warn, text, wave.value));
    }
}

fn whole_number(meta: &ObjectMeta, key: &str, text: &str, value: i64) -> Fix {
    match rounded(text) {
        Some(number) => fixes::annotate(meta, &[(key, number)], format!("write {key} as a whole number")),
        None => fixes::annotate(meta, &[(key, value.to_string())], "write down the wave that Argo CD takes it to be"),
    }
}

fn malformed_wave((object, meta): (&ObjectRef, &ObjectMeta), severity: Severity, text: &str, value: i64) -> Finding {
    let summary = format!(
        "{SYNC_WAVE} is no whole number; Argo CD does not complain, it silently falls back to the Helm weight and then to 0"
    );
    let hint = rounded(text).map_or_else(
        || format!("write {SYNC_WAVE} as digits with an optional sign, such as \"-1\" or \"5\""),
        |number| format!("write a whole number, such as {SYNC_WAVE}: \"{number}\"; waves may have gaps"),
    );
    Finding::new(&MALFORMED_WAVE, severity, object.clone(), summary)
        .detail(format!("sync-wave `{text}` is no whole number; Argo CD takes it to be {value}"))
        .remedy(hint)
        .on_annotation(SYNC_WAVE)
        .fixed_by(whole_number(meta, SYNC_WAVE, text, value))
}

fn unknown_types(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(hook) = &subject.hook else { return };
    if hook.unknown.is_empty() && (hook.phase().is_some() || hook.skipped || hook.only_for_helm) {
        return;
    }
    let named: Vec<String> = hook.unknown.iter().map(|(_, value)| format!("`{value}`")).collect();
    let key = hook.unknown.first().map_or(HOOK, |(key, _)| key);
    let named = if named.is_empty() { "an empty list".to_owned() } else { named.join(", ") };
    let (summary, consequence) = if hook.phase().is_some() {
        (
            "Argo CD passes over hook types that it does not know, and runs the hook only in those it does",
            "is no hook type and is passed over",
        )
    } else if hook.skipped {
        ("Argo CD passes over hook types that it does not know", "is no hook type; only Skip counts")
    } else {
        (
            "Argo CD leaves a hook without a valid type out of every sync: it is neither applied nor listed, and nobody is told",
            "is no hook type: Argo CD would never run this",
        )
    };
    // `Skip` keeps the object out of every sync, whatever stands beside it: there is nothing to protect.
    let severity = if hook.skipped { Severity::Warn } else { Severity::Deny };
    let meant: Vec<&str> = hook.unknown.iter().filter_map(|(_, value)| meant(value)).map(Phase::as_str).collect();
    let mut finding = Finding::new(&UNKNOWN_HOOK, severity, subject.object.clone(), summary)
        .detail(format!("{key}: {named} {consequence}"))
        .on_annotation(key)
        .fixed_by(known_types(subject.meta, hook));
    if !meant.is_empty() {
        finding = finding.remedy(format!("write {HOOK}: {}; capitals count", meant.join(",")));
    }
    findings.push(finding.remedy(
        "Argo CD's types are PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete and Skip; separate several by commas",
    ));
}

/// Only types that Argo CD knows: those that are valid, and what was most likely meant by the others.
fn known_types(meta: &ObjectMeta, hook: &Hook) -> Option<Fix> {
    let mut phases = hook.phases.clone();
    phases.extend(hook.unknown.iter().filter_map(|(_, value)| meant(value)));
    phases.sort_unstable();
    phases.dedup();
    let types: Vec<&str> = if hook.skipped { vec!["Skip"] } else { phases.into_iter().map(Phase::as_str).collect() };
    (!types.is_empty()).then(|| fixes::annotate(meta, &[(HOOK, types.join(","))], "name only types that Argo CD knows"))
}

/// The type that someone who wrote this most likely meant.
fn meant(value: &str) -> Option<Phase> {
    let letters: String =
        value.chars().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_lowercase()).collect();
    match letters.as_str() {
        "preinstall" | "preupgrade" => Some(Phase::PreSync),
        "postinstall" | "postupgrade" => Some(Phase::PostSync),
        other => Phase::ALL.into_iter().find(|phase| phase.as_str().eq_ignore_ascii_case(other)),
    }
}
