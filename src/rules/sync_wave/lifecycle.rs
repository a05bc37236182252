//! Hooks that are made in the right order and still do harm: by how they end, and by when they are deleted.

use super::{
    META,
    subject::{Origin, Subject},
};
use crate::{
    argo::{
        application::cascades,
        hook::{DELETE_POLICY, DeletePolicies, DeletePolicy, Hook, Phase},
    },
    decision::{Finding, Severity},
};

/// Judges a hook by itself.
pub(super) fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((hook, phase)) = subject.hook.as_ref().and_then(|hook| Some((hook, hook.phase()?))) else { return };
    let policies = DeletePolicies::of(subject.meta);
    job(subject, phase, findings);
    deleted(subject, phase, &policies, findings);
    policy_syntax(subject, (hook, phase), &policies, findings);
}

/// A warning about a subject.
pub(super) fn warn(subject: &Subject<'_>, check: &'static str, summary: &str, detail: String) -> Finding {
    Finding::new(&META, Severity::Warn, subject.object.clone(), summary).check(check).detail(detail)
}

fn job(subject: &Subject<'_>, phase: Phase, findings: &mut Vec<Finding>) {
    let Some(job) = subject.work.as_ref().ok().and_then(|work| work.job) else { return };
    let what = if phase.is_deletion() { "the deletion of its Application" } else { "the sync" };
    if !job.deadline {
        findings.push(
            warn(
                subject,
                "no-deadline",
                "a hook Job without activeDeadlineSeconds can keep a sync waiting for ever",
                format!("{phase} Job without activeDeadlineSeconds: if its Pod never starts, {what} waits for ever"),
            )
            .remedy("give the Job spec.activeDeadlineSeconds, a little more than it ever takes"),
        );
    }
    if job.restarts_uncounted && subject.origin == Origin::Manifest {
        findings.push(
            warn(
                subject,
                "no-backoff-limit",
                "a hook Job with restartPolicy OnFailure is restarted in place, up to the default backoffLimit of 6",
                format!(
                    "{phase} Job with restartPolicy OnFailure and no backoffLimit: it fails late and keeps no logs"
                ),
            )
            .remedy("use restartPolicy: Never, or say spec.backoffLimit"),
        );
    }
}

/// What is lost when Argo CD deletes the hook object.
fn deleted(subject: &Subject<'_>, phase: Phase, policies: &DeletePolicies, findings: &mut Vec<Finding>) {
    let effective = policies.effective();
    let recreated = effective.contains(&DeletePolicy::BeforeHookCreation);
    let first = effective.first().map_or("", |policy| policy.as_str());
    let object = &subject.object;
    if object.kind.is("", "PersistentVolumeClaim") {
        let when = if recreated { "at every sync" } else { "after the sync" };
        findings.push(
            warn(
                subject,
                "claim-is-hook",
                "a PersistentVolumeClaim that is a hook is deleted by its hook-delete-policy, and its data with it",
                format!("{phase} hook: {first} deletes the claim {when}, and with it the data"),
            )
            .remedy(format!("make {object} an ordinary object with a low sync-wave instead of a hook")),
        );
    }
    if object.is_application() {
        let along = if cascades(&subject.meta.finalizers) { "and all it deploys" } else { "but not what it deploys" };
        findings.push(
            warn(
                subject,
                "application-is-hook",
                "a child Application that is a hook is deleted by its hook-delete-policy, and cascades",
                format!("child Application as {phase} hook: {first} deletes it at every sync, {along}"),
            )
            .remedy(format!("make {object} an ordinary object and order it by sync-wave")),
        );
    }
    if recreated && !subject.meta.generate_name.is_empty() {
        findings.push(
            warn(
                subject,
                "generated-name",
                "BeforeHookCreation finds the old object by its name; with generateName every sync makes another",
                "generateName with BeforeHookCreation: every sync leaves another object behind".to_owned(),
            )
            .remedy(format!("use a fixed name, or {DELETE_POLICY}: HookSucceeded")),
        );
    }
}

fn policy_syntax(
    subject: &Subject<'_>,
    (hook, phase): (&Hook, Phase),
    policies: &DeletePolicies,
    findings: &mut Vec<Finding>,
) {
    let list = |policies: &[DeletePolicy], spelt: fn(DeletePolicy) -> &'static str| {
        policies.iter().map(|policy| spelt(*policy)).collect::<Vec<_>>().join(", ")
    };
    let added = policies.added_by_helm();
    if !added.is_empty() {
        findings.push(warn(
            subject,
            "policies-add-up",
            "Argo CD applies its own and Helm's delete policies together; neither replaces the other",
            format!(
                "delete policies add up: {} and Helm's {} both apply",
                list(&policies.argo, DeletePolicy::as_str),
                list(&added, DeletePolicy::helm_str)
            ),
        ));
    }
    for (key, value) in &policies.unknown {
        let key = key.rsplit('/').next().unwrap_or(key);
        findings.push(
            warn(
                subject,
                "unknown-policy",
                "Argo CD passes over delete policies that it does not know",
                format!(
                    "{key} `{value}` is unknown and has no effect; what applies is {}",
                    list(&policies.effective(), DeletePolicy::as_str)
                ),
            )
            .remedy(format!("{DELETE_POLICY} knows BeforeHookCreation, HookSucceeded and HookFailed")),
        );
    }
    if hook.idle_skip {
        findings.push(warn(
            subject,
            "idle-skip",
            "Skip counts only where it is the only hook type",
            format!("Skip beside other hook types has no effect: this runs in {phase}"),
        ));
    }
}
