//! The ways out of an order that cannot work.

use super::{
    dependency::{Late, Unmet},
    subject::Subject,
};
use crate::argo::hook::{HOOK, SYNC_WAVE, Stage};

/// What to do about needs that come too late, the most likely first.
pub(super) fn of(subject: &Subject<'_>, stage: Stage, unmet: &[Unmet<'_>], application: &str) -> Vec<String> {
    let Some(last) = unmet.iter().map(|unmet| unmet.at).max() else { return Vec::new() };
    let mut remedies = Vec::new();
    remedies.extend(move_the_hook(subject, stage, unmet, last));
    remedies.extend(move_the_needs(stage, unmet));
    if !application.is_empty() {
        remedies.push(format!("if Git has changed since: argocd app get {application} --refresh, then sync again"));
    }
    remedies
}

/// A claim often is bound only when a Pod uses it, and until then its own wave does not end: it belongs into the very wave
/// of that Pod.
fn is_claim(unmet: &Unmet<'_>) -> bool {
    unmet.need.object.kind.is("", "PersistentVolumeClaim")
}

fn move_the_hook(subject: &Subject<'_>, stage: Stage, unmet: &[Unmet<'_>], last: Stage) -> Option<String> {
    let object = &subject.object.kind.kind;
    if last.phase.is_deletion() {
        return None;
    }
    let with_claim = unmet.iter().any(|unmet| unmet.at == last && is_claim(unmet));
    let wave = match (stage.wave > last.wave, with_claim) {
        (_, true) => last.wave,
        (true, _) => stage.wave,
        (false, _) => last.wave.saturating_add(1),
    };
    if last.phase == stage.phase {
        return Some(format!("give the {object} {SYNC_WAVE}: \"{wave}\""));
    }
    let instead = match &subject.hook {
        Some(hook) if hook.helm_only => "; it takes precedence over helm.sh/hook",
        _ => "",
    };
    Some(format!("run the {object} later: {HOOK}: {} with {SYNC_WAVE}: \"{wave}\"{instead}", last.phase))
}

fn move_the_needs(stage: Stage, unmet: &[Unmet<'_>]) -> Option<String> {
    let across = |unmet: &Unmet<'_>| matches!(unmet.late, Late::Phase { .. });
    // As a hook a claim would be deleted, and its data with it, before every sync.
    let (claims, movable): (Vec<_>, Vec<_>) = unmet.iter().partition(|unmet| is_claim(unmet) && across(unmet));
    let Some(first) = movable.first() else {
        return claims.first().map(|unmet| format!("or create {} outside this Application", unmet.need.object));
    };
    let wave = if movable.iter().all(|unmet| is_claim(unmet)) { stage.wave } else { stage.wave.saturating_sub(1) };
    let phase = if movable.iter().any(|unmet| across(unmet)) {
        format!("{HOOK}: {} with ", stage.phase)
    } else {
        String::new()
    };
    let object = &first.need.object;
    let more = movable.len() - 1;
    let what = if more > 0 { format!("{object} and {more} more") } else { object.to_string() };
    Some(format!("or create {what} earlier: {phase}{SYNC_WAVE}: \"{wave}\""))
}
