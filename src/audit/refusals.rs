//! Deletes that would be refused now, and why. Every Application, ApplicationSet and Namespace is judged by the same
//! rules as a review.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{AuditInput, Options, Step, deletion};
use crate::judge::{Source, View, judge};
use cascade_guard_core::{
    decision::{Decision, Effect, Outcome, Severity},
    judge::Case,
    object::{ARGO_GROUP, KnownObject, ObjectRef},
    policy::Mode,
    remedy::Remedy,
};

/// So many sentences are kept of one refusal; the rest is counted.
const MAX_DETAILS: usize = 5;

/// A delete that would be refused by one rule, or would be if the rule enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// What would be deleted.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Rule id.
    pub rule: Cow<'static, str>,
    /// Which of its checks; empty where it has only one.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub check: Cow<'static, str>,
    /// The mode in force.
    pub mode: Mode,
    /// The line of the policy that decided it.
    pub decided_by: String,
    /// Whether the delete would really be refused, not only recorded or warned of.
    pub refused: bool,
    /// Whether this is what the guard is for, and nothing to mend: a Namespace that nobody approved stays, and so does
    /// one that Applications live in.
    pub expected: bool,
    /// What was found.
    pub summary: String,
    /// About which objects, five at most.
    pub details: Vec<String>,
    /// About how many.
    pub count: usize,
    /// Applications that claim any of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claimants: Vec<String>,
    /// The way out.
    pub remedies: Vec<Remedy>,
}

pub(super) async fn find<V: View, S: Source>(
    input: &AuditInput<'_, V, S>,
    options: &Options,
    progress: &(dyn Fn(Step) + Sync),
) -> Vec<Refusal> {
    let roots: Vec<&KnownObject> =
        input.objects.iter().filter(|subject| is_root(&subject.object) && !subject.meta.is_terminating()).collect();
    let done = AtomicUsize::new(0);
    let tick = || {
        let done = done.fetch_add(1, Ordering::Relaxed);
        if done.is_multiple_of(BATCH) {
            progress(Step { what: "deletes", done, total: roots.len() });
        }
    };
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part = roots.len().div_ceil(cores).max(MIN_PART);
    let mut found = if roots.len() > part && input.view.is_fixed() && input.source.is_at_hand() {
        on_every_core(input, options, roots.chunks(part), &tick)
    } else {
        of(input, options, &roots, &tick).await
    };
    found.sort_by(|a, b| {
        let rank = |refusal: &Refusal| (refusal.expected, !refusal.refused, std::cmp::Reverse(refusal.count));
        (rank(a), &a.object, &a.rule).cmp(&(rank(b), &b.object, &b.rule))
    });
    found
}

/// Fewer deletes are not worth a thread.
const MIN_PART: usize = 500;

/// Judges deletes against an inventory that does not change, a part of them on each core. No verdict depends on
/// another.
fn on_every_core<'a, V: View, S: Source>(
    input: &AuditInput<'_, V, S>,
    options: &Options,
    parts: impl Iterator<Item = &'a [&'a KnownObject]>,
    tick: &(dyn Fn() + Sync),
) -> Vec<Refusal> {
    let found_in = move |part: &[&KnownObject]| futures::executor::block_on(of(input, options, part, tick));
    thread::scope(|scope| {
        let parts: Vec<_> = parts.map(|part| (part, scope.spawn(move || found_in(part)))).collect();
        // A thread that could not do its part leaves it to this one.
        parts.into_iter().flat_map(|(part, thread)| thread.join().unwrap_or_else(|_| found_in(part))).collect()
    })
}

/// What is to be said of the deletes of `roots`, in their order.
async fn of<V: View, S: Source>(
    input: &AuditInput<'_, V, S>,
    options: &Options,
    roots: &[&KnownObject],
    tick: &(dyn Fn() + Sync),
) -> Vec<Refusal> {
    let mut found = Vec::new();
    for subject in roots {
        tick();
        let decision = foresee(input, subject, options).await;
        collect(&subject.object, &decision, &mut found);
    }
    found
}

/// The bar moves this often.
const BATCH: usize = 50;

fn is_root(object: &ObjectRef) -> bool {
    object.is_application() || object.is_namespace() || object.kind.is(ARGO_GROUP, "ApplicationSet")
}

/// Judges the DELETE of one object, with the same limit of reads as a review has.
async fn foresee<V: View, S: Source>(
    input: &AuditInput<'_, V, S>,
    subject: &KnownObject,
    options: &Options,
) -> Decision {
    let request = deletion(&subject.object, &options.user);
    let case = Case { known: Some(&subject.meta), ..Case::new(&request, input.policy, input.now) };
    judge(case, input.view, input.source, || Duration::from_secs(60)).await
}

/// One entry a rule and check.
pub(super) fn collect(object: &ObjectRef, decision: &Decision, found: &mut Vec<Refusal>) {
    let first = found.len();
    let denied = decision
        .outcomes
        .iter()
        .filter(|outcome| outcome.finding.severity == Severity::Deny && outcome.effect != Effect::Dropped);
    for outcome in denied {
        let at = found[first..]
            .iter()
            .position(|refusal| refusal.rule == outcome.finding.rule.id && refusal.check == outcome.finding.check.id);
        match at {
            Some(at) => add(&mut found[first + at], outcome),
            None => found.push(refusal(object, outcome)),
        }
    }
}

fn refusal(object: &ObjectRef, outcome: &Outcome) -> Refusal {
    let finding = &outcome.finding;
    let mut refusal = Refusal {
        object: object.clone(),
        rule: finding.rule.id.into(),
        check: finding.check.id.into(),
        mode: outcome.resolved.mode,
        decided_by: outcome.resolved.decided_by.clone(),
        refused: false,
        expected: object.is_namespace(),
        summary: finding.summary.clone(),
        details: Vec::new(),
        count: 0,
        claimants: Vec::new(),
        remedies: Vec::new(),
    };
    add(&mut refusal, outcome);
    refusal
}

fn add(refusal: &mut Refusal, outcome: &Outcome) {
    let finding = &outcome.finding;
    refusal.count += 1;
    refusal.refused |= outcome.effect == Effect::Refused;
    if outcome.resolved.mode > refusal.mode {
        refusal.mode = outcome.resolved.mode;
        refusal.decided_by.clone_from(&outcome.resolved.decided_by);
    }
    if refusal.details.len() < MAX_DETAILS && !finding.detail.is_empty() {
        refusal.details.push(finding.detail.clone());
    }
    for claimant in &finding.claimants {
        if let Err(at) = refusal.claimants.binary_search(claimant) {
            refusal.claimants.insert(at, claimant.clone());
        }
    }
    for remedy in finding.remedies.iter().take(MAX_DETAILS) {
        if refusal.remedies.len() < MAX_DETAILS && !refusal.remedies.contains(remedy) {
            refusal.remedies.push(remedy.clone());
        }
    }
}
