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

fn move_the_hook(subject: &Subject<'_>, stage: Stage, unmet: &[Unmet<'_>], last: Stage) -> Option<String> {
    let object = &subject.object.kind.kind;
    if last.phase.is_deletion() {
        return None;
    }
    let wave = if stage.wave > last.wave { stage.wave } else { last.wave.saturating_add(1) };
    if last.phase == stage.phase {
        let also = if unmet.iter().any(|unmet| unmet.late == Late::Kind) { "" } else { ", after what it needs" };
        return Some(format!("give the {object} {SYNC_WAVE}: \"{wave}\"{also}"));
    }
    let instead = match &subject.hook {
        Some(hook) if hook.helm_only => "; it takes precedence over helm.sh/hook",
        _ => "",
    };
    Some(format!("run the {object} later: {HOOK}: {} with {SYNC_WAVE}: \"{wave}\"{instead}", last.phase))
}

fn move_the_needs(stage: Stage, unmet: &[Unmet<'_>]) -> Option<String> {
    let (claims, movable): (Vec<_>, Vec<_>) = unmet.iter().partition(|unmet| {
        unmet.need.object.kind.is("", "PersistentVolumeClaim") && matches!(unmet.late, Late::Phase { .. })
    });
    let wave = stage.wave.saturating_sub(1);
    let across = movable.iter().any(|unmet| matches!(unmet.late, Late::Phase { .. }));
    if let Some(first) = movable.first() {
        let more = movable.len() - 1;
        let what = if more > 0 { format!("{} and {more} more", first.need.object) } else { first.need.object.to_string() };
        let phase = if across { format!("{HOOK}: {} with ", stage.phase) } else { String::new() };
        return Some(format!("or create {what} earlier: {phase}{SYNC_WAVE}: \"{wave}\""));
    }
    // As a hook it would be deleted, and its data with it, before every sync.
    claims.first().map(|unmet| format!("or create {} outside this Application", unmet.need.object))
}
