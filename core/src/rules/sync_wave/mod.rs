//! `sync-wave`: hooks whose phase and wave can never work.
//!
//! A hook that needs what its own Application creates only later hangs a sync without an error. The rule judges hooks on
//! their way into a cluster; [`judge`] is the same judgement over any [`Surroundings`], such as a folder of manifests.

mod cluster;
mod dependency;
pub mod fixes;
mod lateness;
mod lifecycle;
mod remedies;
mod subject;
mod syntax;

use std::collections::HashSet;

use self::cluster::{Cluster, Home, home};
pub use self::{
    cluster::elsewhere,
    lateness::{Late, late},
    subject::{Origin, Plan, Presence, Subject, Surroundings},
};
use super::{Context, Rule};
use crate::{
    admission::{Object, Operation, Request},
    argo::hook::{ANNOTATIONS, DELETE_POLICY, HELM_HOOK, HOOK, Hook, SYNC_WAVE},
    catalog::{
        RuleMeta,
        sync_wave::{META, TOO_MANY_NEEDS, UNREADABLE, UNSEEN},
    },
    decision::{Finding, Severity},
    facts::Facts,
    inventory::App,
    needs::{self, MAX_NEEDS, Need},
    object::ObjectMeta,
    policy::{Place, Scope},
};

/// The rule.
#[derive(Debug)]
pub struct SyncWave;

impl Rule for SyncWave {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn applies(&self, request: &Request<'_>) -> bool {
        let Some(object) = &request.object else { return false };
        let marked = |meta: &ObjectMeta| [HOOK, HELM_HOOK, SYNC_WAVE].iter().any(|key| meta.annotation(key).is_some());
        request.sub_resource.is_empty()
            && marked(&object.meta)
            // Argo CD manages no object that has an owner. A Deployment's annotations are copied to its ReplicaSets.
            && object.meta.owner_references.is_empty()
            && !object.meta.is_terminating()
            && !request.old_object.as_ref().is_some_and(|old| old.meta.is_terminating())
    }

    /// Annotations are judged without one.
    fn needs_inventory(&self) -> bool {
        false
    }

    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
        let request = cx.request;
        let Some(object) = &request.object else { return };
        if Hook::of(&object.meta).is_none() {
            if changes_annotations(request, &object.meta) {
                syntax::check_plain(&request.target.clone().or_generated(&object.meta), &object.meta, findings);
            }
            return;
        }
        let target = request.target.clone().or_generated(&object.meta);
        let mut subject = Subject::new(target, &object.meta, object.raw, Origin::Cluster);
        let change = Change::of(request, &subject);
        if change.is_idle() {
            return;
        }
        let home = home(cx, &subject.object, &object.meta);
        let meant_for_argo = [HOOK, SYNC_WAVE, DELETE_POLICY].iter().any(|key| object.meta.annotation(key).is_some());
        if matches!(home, Home::Unmarked) && !meant_for_argo {
            // A release that Helm itself installs.
            return;
        }
        change.keep_new(&mut subject);
        let mut found = Vec::new();
        judge_alone(&subject, change.annotations, &mut found);
        let runs = subject.stage.is_some();
        if runs && !cx.inventory.is_ready() {
            found.extend(cx.not_ready(&META));
        } else if runs && !found.iter().any(|finding| finding.severity == Severity::Deny) {
            judge_around(cx, facts, &subject, &home, &mut found);
        }
        soften(&subject, &home, &mut found);
        by_project(&home, &mut found);
        findings.append(&mut found);
    }
}

/// Judges a subject and its place among everything else. The caller says what is around it; without that only the subject
/// itself is judged.
pub fn judge(subject: &Subject<'_>, around: Option<&mut dyn Surroundings>, findings: &mut Vec<Finding>) {
    if subject.hook.is_some() {
        judge_alone(subject, true, findings);
    } else {
        syntax::check_plain(&subject.object, subject.meta, findings);
    }
    if let Some(around) = around {
        judge_order(subject, around, findings);
    }
}

/// What the subject alone shows.
fn judge_alone(subject: &Subject<'_>, lifecycle: bool, findings: &mut Vec<Finding>) {
    syntax::check(subject, findings);
    if lifecycle {
        lifecycle::check(subject, findings);
    }
}

/// What only its surroundings show.
fn judge_order(subject: &Subject<'_>, around: &mut dyn Surroundings, findings: &mut Vec<Finding>) {
    let Some(stage) = subject.stage else { return };
    match &subject.work {
        Ok(work) => {
            let needs: Vec<&Need> = work.needs.iter().collect();
            dependency::check(subject, stage, &needs, around, findings);
            if work.more {
                findings.push(too_many_needs(subject));
            }
        }
        Err(problem) => findings.push(lifecycle::warn(
            subject,
            &UNREADABLE,
            "its spec does not have the shape of its kind, so that its needs cannot be read",
            format!("what {} needs cannot be read: {problem}", subject.object),
        )),
    }
}

/// Judges against the Application that the marker names. Where several share that name, only what all of them contradict
/// is refused.
fn judge_around(
    cx: &Context<'_>,
    facts: &mut Facts,
    subject: &Subject<'_>,
    home: &Home<'_>,
    findings: &mut Vec<Finding>,
) {
    let apps = match home {
        Home::Known(apps) => apps.as_slice(),
        Home::Unknown(name) => return findings.push(unseen(subject, &format!("Application {name} is not known here"))),
        Home::Unmarked => return findings.push(unseen(subject, "it names no Application")),
    };
    let (blind, seeing): (Vec<_>, Vec<_>) = apps.iter().partition(|(_, app)| app.never_compared);
    let mut answers: Vec<Vec<Finding>> = Vec::new();
    for (id, app) in seeing {
        let mut found = Vec::new();
        judge_order(subject, &mut Cluster { cx, facts: &mut *facts, id, app }, &mut found);
        for finding in &mut found {
            finding.scopes = Scope::of(&subject.object, Some(&app.project)).into();
        }
        answers.push(found);
    }
    if let Some((_, app)) = blind.first() {
        answers.push(vec![unseen(subject, &format!("Application {} was never compared", app.path()))]);
    }
    let refuses = |found: &Vec<Finding>| found.iter().any(|finding| finding.severity == Severity::Deny);
    if answers.iter().all(refuses) {
        findings.extend(answers.into_iter().next().unwrap_or_default());
        return;
    }
    let alone = answers.len() == 1;
    let said = |finding: &Finding| (finding.check.id, finding.detail.clone());
    let mut known: HashSet<(&str, String)> = findings.iter().map(said).collect();
    for mut finding in answers.into_iter().flatten() {
        if !alone {
            finding.severity = Severity::Warn;
        }
        if known.insert(said(&finding)) {
            findings.push(finding);
        }
    }
}

fn too_many_needs(subject: &Subject<'_>) -> Finding {
    lifecycle::warn(
        subject,
        &TOO_MANY_NEEDS,
        "an object refers to more objects than are judged for one review",
        format!("{} refers to more than {MAX_NEEDS} objects; the others were not judged", subject.object),
    )
}

fn unseen(subject: &Subject<'_>, why: &str) -> Finding {
    lifecycle::warn(
        subject,
        &UNSEEN,
        "the hook was judged by itself: what else its Application creates, and when, could not be seen",
        format!("judged by itself only, not its order against other objects: {why}"),
    )
}

/// Hooks of a deletion are first seen when the deletion waits for them: refusing one then hangs it.
fn soften(subject: &Subject<'_>, home: &Home<'_>, findings: &mut [Finding]) {
    let Home::Known(apps) = home else { return };
    let of_deletion = subject.hook.iter().flat_map(|hook| &hook.phases).any(|phase| phase.is_deletion());
    let waiting = |(_, app): &(_, &App)| app.terminating.is_some();
    if of_deletion && apps.iter().any(waiting) {
        for finding in findings {
            finding.severity = Severity::Warn;
        }
    }
}

/// The project of the hook's Application counts for everything that was found, not only for what its list shows.
fn by_project(home: &Home<'_>, findings: &mut [Finding]) {
    let Home::Known(apps) = home else { return };
    for finding in findings.iter_mut().filter(|finding| !finding.scopes.name_a_project()) {
        let scopes = apps.iter().map(|(_, app)| Scope::of(&finding.object, Some(&app.project))).collect();
        finding.scopes = Place::waived_by_any(scopes).into();
    }
}

/// The object as it was, on UPDATE.
fn updated<'a, 'b>(request: &'a Request<'b>) -> Option<&'a Object<'b>> {
    request.old_object.as_ref().filter(|_| request.operation == Operation::Update)
}

/// Whether an annotation is new or differs that places the object or says when it goes.
fn changes_annotations(request: &Request<'_>, meta: &ObjectMeta) -> bool {
    updated(request).is_none_or(|old| ANNOTATIONS.iter().any(|key| old.meta.annotation(key) != meta.annotation(key)))
}

/// What a request changes that matters here.
struct Change {
    /// Whether an annotation differs that places the object or says when it goes.
    annotations: bool,
    /// What the object needed before.
    before: HashSet<Need>,
    /// Whether it needs something new, or cannot be read.
    needs: bool,
}

impl Change {
    fn of(request: &Request<'_>, subject: &Subject<'_>) -> Self {
        let Some(old) = updated(request) else {
            return Self { annotations: true, before: HashSet::new(), needs: true };
        };
        let annotations = changes_annotations(request, subject.meta);
        let before = Self::before(request, old);
        let needs = match &subject.work {
            Ok(work) => work.needs.iter().any(|need| !before.contains(need)),
            Err(_) => false,
        };
        Self { annotations, before, needs }
    }

    fn before(request: &Request<'_>, old: &Object<'_>) -> HashSet<Need> {
        let work = needs::read(&request.target.kind, &old.meta.namespace, old.raw).unwrap_or_default();
        work.needs.into_iter().collect()
    }

    fn is_idle(&self) -> bool {
        !self.annotations && !self.needs
    }

    /// Where only the needs grew, what was there before is not judged again.
    fn keep_new(&self, subject: &mut Subject<'_>) {
        if let (false, Ok(work)) = (self.annotations, &mut subject.work) {
            work.needs.retain(|need| !self.before.contains(need));
        }
    }
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
