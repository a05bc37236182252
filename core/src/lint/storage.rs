//! Claims that are bound only when a Pod comes, in a wave that ends only when they are bound.

use super::{
    manifest::Manifest,
    set::{Found, Set},
    volume::Storage,
};
use crate::{
    argo::hook::{SYNC_WAVE, Stage},
    catalog::sync_wave::CLAIM_WAITS,
    decision::{Finding, Severity},
    needs::Force,
    object::ObjectRef,
    rules::sync_wave::fixes,
};

/// Whether the claims of a class are bound late, as far as the manifests say.
fn binds_late(set: &Set<'_>, class: Option<&str>) -> Option<bool> {
    let late = |manifest: &Manifest| match manifest.storage {
        Some(Storage::Class { binds_late, .. }) => Some(binds_late),
        _ => None,
    };
    match class {
        Some(name) => set.of(&ObjectRef::new("storage.k8s.io", "StorageClass", "", name)).next_back().and_then(late),
        None => set
            .manifests
            .iter()
            .find(|manifest| matches!(manifest.storage, Some(Storage::Class { is_default: true, .. })))
            .and_then(late),
    }
}

/// Looks for claims that wait for a Pod of a later wave (argoproj/argo-cd#12840): Argo CD takes a claim that is not bound
/// for one that is still progressing, and goes on to the next wave only when everything is healthy.
pub fn check(set: &Set<'_>, found: &mut Vec<Found>) {
    for (index, manifest) in set.manifests.iter().enumerate() {
        let Some(Storage::Claim { class }) = &manifest.storage else { continue };
        let Some(stage) = manifest.stage.filter(|stage| !stage.phase.is_deletion()) else { continue };
        let late = binds_late(set, class.as_deref());
        if late == Some(false) {
            continue;
        }
        let Some((user, at)) = first_user(set, manifest) else { continue };
        if at <= stage {
            continue;
        }
        let exists = set.context.exists(&manifest.object) == Some(true);
        let severity = if late == Some(true) && !exists { Severity::Deny } else { Severity::Warn };
        found.push((index, finding(manifest, severity, (class.as_deref(), late), stage, (user, at))));
    }
}

/// The first object whose Pods use the claim. Pods that no sync waits for do not count.
fn first_user<'a>(set: &'a Set<'_>, claim: &Manifest) -> Option<(&'a Manifest, Stage)> {
    set.referrers(&claim.object)
        .filter(|user| user.application == claim.application)
        .filter(|user| {
            let needs = user.work.iter().flat_map(|work| &work.needs);
            needs.filter(|need| need.object == claim.object).any(|need| !matches!(need.force, Force::Bearable(_)))
        })
        .filter_map(|user| Some((user, user.stage.filter(|stage| !stage.phase.is_deletion())?)))
        .min_by_key(|(_, stage)| *stage)
}

fn finding(
    claim: &Manifest,
    severity: Severity,
    (class, late): (Option<&str>, Option<bool>),
    stage: Stage,
    (user, at): (&Manifest, Stage),
) -> Finding {
    let class = class.map_or_else(|| "the default class".to_owned(), |class| format!("class {class}"));
    let binds = match late {
        Some(_) => format!("{class} binds it only when a Pod uses it"),
        None => format!("if {class} binds only when a Pod comes (WaitForFirstConsumer)"),
    };
    let mut finding = Finding::new(
        &CLAIM_WAITS,
        severity,
        claim.object.clone(),
        "a claim that waits for its first Pod is not healthy before, and Argo CD does not go on to the wave of that Pod: \
         the sync would wait for ever",
    )
    .detail(match late {
        Some(_) => format!("{stage}: {binds}; the first one, of {}, comes in {at}", user.object),
        None => format!("{stage}: {binds}, this wave never ends; the first Pod, of {}, comes in {at}", user.object),
    });
    finding.regarding = Some(user.object.clone());
    if at.phase == stage.phase {
        let way = format!("put the claim into the wave of the Pod: {SYNC_WAVE}: \"{}\"", at.wave);
        finding = finding.remedy(way.clone()).fixed_by(fixes::annotate(
            &claim.meta,
            &[(SYNC_WAVE, at.wave.to_string())],
            way,
        ));
    } else {
        finding = finding.remedy(format!("put the claim into the phase and wave of {}", user.object));
    }
    if claim.meta.annotation(SYNC_WAVE).is_some() {
        return finding.on_annotation(SYNC_WAVE);
    }
    "/metadata/name".clone_into(&mut finding.field);
    finding
}
