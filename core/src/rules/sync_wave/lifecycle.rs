//! Hooks that are made in the right order and still do harm: by how they end, and by when they are deleted.

use super::{
    fixes,
    subject::{Origin, Subject},
};
use crate::{
    argo::{
        application::cascades,
        hook::{DELETE_POLICY, DeletePolicies, DeletePolicy, HELM_DELETE_POLICY, HELM_HOOK, HOOK, Hook, Phase},
    },
    catalog::{
        Check,
        sync_wave::{
            APPLICATION_IS_HOOK, CLAIM_IS_HOOK, DEFINITION_IS_HOOK, GENERATED_NAME, IDLE_SKIP, NAMESPACE_IS_HOOK,
            NO_BACKOFF_LIMIT, NO_DEADLINE, POLICIES_ADD_UP, UNKNOWN_POLICY,
        },
    },
    decision::{Finding, Fix, Severity},
    object::{ObjectMeta, ObjectRef},
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
pub(super) fn warn(subject: &Subject<'_>, check: &'static Check, summary: &str, detail: String) -> Finding {
    Finding::new(check, Severity::Warn, subject.object.clone(), summary).detail(detail)
}

/// The annotation that makes an object a hook.
pub(super) fn hook_key(meta: &ObjectMeta) -> &'static str {
    if meta.annotation(HOOK).is_some() { HOOK } else { HELM_HOOK }
}

fn in_spec(mut finding: Finding, field: &str) -> Finding {
    field.clone_into(&mut finding.field);
    finding
}

fn job(subject: &Subject<'_>, phase: Phase, findings: &mut Vec<Finding>) {
    let Some(job) = subject.work.as_ref().ok().and_then(|work| work.job) else { return };
    let what = if phase.is_deletion() { "the deletion of its Application" } else { "the sync" };
    if !job.deadline {
        let finding = warn(
            subject,
            &NO_DEADLINE,
            "a hook Job without activeDeadlineSeconds can keep a sync waiting for ever",
            format!("{phase} Job without activeDeadlineSeconds: if its Pod never starts, {what} waits for ever"),
        );
        let finding = finding.remedy("give the Job spec.activeDeadlineSeconds, a little more than it ever takes");
        findings.push(in_spec(finding, "/spec"));
    }
    if job.restarts_uncounted && subject.origin == Origin::Manifest {
        let finding = warn(
            subject,
            &NO_BACKOFF_LIMIT,
            "a hook Job with restartPolicy OnFailure is restarted in place, up to the default backoffLimit of 6",
            format!("{phase} Job with restartPolicy OnFailure and no backoffLimit: it fails late and keeps no logs"),
        );
        let policy = ["spec", "template", "spec", "restartPolicy"];
        let finding = finding.remedy("use restartPolicy: Never, or say spec.backoffLimit").fixed_by(fixes::set(
            &policy,
            "Never",
            "let every try have a Pod of its own, whose logs stay",
        ));
        findings.push(in_spec(finding, "/spec/template/spec/restartPolicy"));
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
                &CLAIM_IS_HOOK,
                "a PersistentVolumeClaim that is a hook is deleted by its hook-delete-policy, and its data with it",
                format!("{phase} hook: {first} deletes the claim {when}, and with it the data"),
            )
            .remedy(format!("make {object} an ordinary object with a low sync-wave instead of a hook"))
            .on_annotation(hook_key(subject.meta)),
        );
    }
    if let Some((check, what, with)) = takes_along(object) {
        findings.push(
            warn(
                subject,
                check,
                &format!("a {what} that is a hook is deleted by its hook-delete-policy, and {with} with it"),
                format!("{what} as {phase} hook: {first} deletes it, and with it {with}"),
            )
            .remedy(format!(
                "make {object} an ordinary object: Argo CD creates it before the first object that needs it"
            ))
            .on_annotation(hook_key(subject.meta))
            .fixed_by(fixes::no_hook(subject.meta)),
        );
    }
    if object.is_application() {
        let along = if cascades(&subject.meta.finalizers) { "and all it deploys" } else { "but not what it deploys" };
        findings.push(
            warn(
                subject,
                &APPLICATION_IS_HOOK,
                "a child Application that is a hook is deleted by its hook-delete-policy, and cascades",
                format!("child Application as {phase} hook: {first} deletes it at every sync, {along}"),
            )
            .remedy(format!("make {object} an ordinary object and order it by sync-wave"))
            .on_annotation(hook_key(subject.meta)),
        );
    }
    if recreated && !subject.meta.generate_name.is_empty() {
        findings.push(
            warn(
                subject,
                &GENERATED_NAME,
                "BeforeHookCreation finds the old object by its name; with generateName every sync makes another",
                "generateName with BeforeHookCreation: every sync leaves another object behind".to_owned(),
            )
            .remedy(format!("use a fixed name, or {DELETE_POLICY}: HookSucceeded"))
            .fixed_by(only(
                subject.meta,
                &[DeletePolicy::HookSucceeded],
                "delete the hook when it succeeded",
            )),
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
        let wanted = &policies.argo;
        let finding = warn(
            subject,
            &POLICIES_ADD_UP,
            "Argo CD applies its own and Helm's delete policies together; neither replaces the other",
            format!(
                "delete policies add up: {} and Helm's {} both apply",
                list(&policies.argo, DeletePolicy::as_str),
                list(&added, DeletePolicy::helm_str)
            ),
        );
        findings.push(finding.on_annotation(HELM_DELETE_POLICY).fixed_by(only(
            subject.meta,
            wanted,
            "let only Argo CD's own annotation count",
        )));
    }
    for (annotation, value) in &policies.unknown {
        let key = annotation.rsplit('/').next().unwrap_or(annotation);
        findings.push(
            warn(
                subject,
                &UNKNOWN_POLICY,
                "Argo CD passes over delete policies that it does not know",
                format!(
                    "{key} `{value}` is unknown and has no effect; what applies is {}",
                    list(&policies.effective(), DeletePolicy::as_str)
                ),
            )
            .remedy(format!("{DELETE_POLICY} knows BeforeHookCreation, HookSucceeded and HookFailed"))
            .on_annotation(annotation)
            .fixed_by(only(subject.meta, &policies.effective(), "write down the policies that apply")),
        );
    }
    if hook.idle_skip {
        let finding = warn(
            subject,
            &IDLE_SKIP,
            "Skip counts only where it is the only hook type",
            format!("Skip beside other hook types has no effect: this runs in {phase}"),
        );
        let types: Vec<&str> = hook.phases.iter().map(|phase| phase.as_str()).collect();
        let types = [(HOOK, types.join(","))];
        findings.push(finding.on_annotation(HOOK).fixed_by(fixes::annotate(subject.meta, &types, "leave Skip out")));
    }
}

/// Kinds whose deletion takes more along than the object: the check, the word for it, and what goes with it.
fn takes_along(object: &ObjectRef) -> Option<(&'static Check, &'static str, &'static str)> {
    match (object.kind.group.as_str(), object.kind.kind.as_str()) {
        ("", "Namespace") => Some((&NAMESPACE_IS_HOOK, "Namespace", "everything in it")),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            Some((&DEFINITION_IS_HOOK, "CustomResourceDefinition", "every instance in the cluster"))
        }
        _ => None,
    }
}

/// Argo CD's own annotation with these policies, and Helm's away.
fn only(meta: &ObjectMeta, policies: &[DeletePolicy], description: &str) -> Fix {
    let names: Vec<&str> = policies.iter().map(|policy| policy.as_str()).collect();
    let mut fix = fixes::annotate(meta, &[(DELETE_POLICY, names.join(","))], description);
    fix.patch.0.extend(fixes::without(meta, &[HELM_DELETE_POLICY], "").patch.0);
    fix
}
