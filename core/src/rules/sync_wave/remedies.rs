//! The ways out of an order that cannot work.

use super::{
    fixes,
    lateness::{Late, Unmet},
    subject::{Origin, Subject},
};
use crate::{
    argo::hook::{HOOK, Phase, SYNC_WAVE, Stage},
    decision::Fix,
    remedy::{Command, Remedy},
};

/// What to do about needs that come too late, the most likely first.
pub(super) fn of(subject: &Subject<'_>, stage: Stage, unmet: &[Unmet<'_>], application: &str) -> Vec<Remedy> {
    let mut remedies: Vec<Remedy> = Vec::new();
    remedies.extend(Move::of(subject, stage, unmet).map(|way| way.text(subject).into()));
    remedies.extend(move_the_needs(stage, unmet).map(Remedy::from));
    // Manifests are not behind Git.
    if !application.is_empty() && subject.origin == Origin::Cluster {
        remedies.push(Remedy::run(
            "if Git has changed since, have it compared, then sync again",
            Command::new("argocd app get").word(application).word("--refresh"),
        ));
    }
    remedies
}

/// The same as a change to the object.
pub(super) fn fix(subject: &Subject<'_>, stage: Stage, unmet: &[Unmet<'_>]) -> Option<Fix> {
    let way = Move::of(subject, stage, unmet)?;
    let mut values = vec![(SYNC_WAVE, way.wave.to_string())];
    values.extend(way.types.as_ref().map(|types| (HOOK, types.clone())));
    Some(fixes::annotate(subject.meta, &values, way.text(subject)))
}

/// A claim often is bound only when a Pod uses it, and until then its own wave does not end: it belongs into the very wave
/// of that Pod.
fn is_claim(unmet: &Unmet<'_>) -> bool {
    unmet.need.object.kind.is("", "PersistentVolumeClaim")
}

/// A later place for what comes too early.
struct Move {
    /// The hook types to write, where the phase changes.
    types: Option<String>,
    wave: i64,
}

impl Move {
    fn of(subject: &Subject<'_>, stage: Stage, unmet: &[Unmet<'_>]) -> Option<Self> {
        let last = unmet.iter().map(|unmet| unmet.at).max()?;
        // What only exists after a sync has failed is nothing to wait for.
        if last.phase >= Phase::SyncFail && last.phase != stage.phase {
            return None;
        }
        let with_claim = unmet.iter().any(|unmet| unmet.at == last && is_claim(unmet));
        let wave = match (stage.wave > last.wave, with_claim) {
            (_, true) => last.wave,
            (true, _) => stage.wave,
            (false, _) => last.wave.saturating_add(1),
        };
        // A hook of several phases keeps those that come late enough.
        let later = subject.hook.iter().flat_map(|hook| &hook.phases).filter(|phase| **phase > last.phase);
        let types: Vec<&str> = [&last.phase].into_iter().chain(later).map(|phase| phase.as_str()).collect();
        Some(Self { types: (last.phase != stage.phase).then(|| types.join(",")), wave })
    }

    fn text(&self, subject: &Subject<'_>) -> String {
        let (object, wave) = (&subject.object.kind.kind, self.wave);
        let Some(types) = &self.types else { return format!("give the {object} {SYNC_WAVE}: \"{wave}\"") };
        let instead = match &subject.hook {
            Some(hook) if hook.helm_only => "; it takes precedence over helm.sh/hook",
            _ => "",
        };
        format!("run the {object} later: {HOOK}: {types} with {SYNC_WAVE}: \"{wave}\"{instead}")
    }
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
