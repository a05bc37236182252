//! Hooks that run before the rights of their account are there.

use super::{
    manifest::Manifest,
    set::{Found, Set},
};
use crate::{
    catalog::sync_wave::RIGHTS_LATER,
    decision::{Finding, Severity},
    needs::Force,
    object::{ObjectRef, RBAC_GROUP},
    rules::sync_wave::late,
    text::some,
};

/// Looks for bindings of a hook's account, and for their roles, that come later than the hook. Nothing waits for them: the
/// Pod starts without its rights.
pub fn check(set: &Set<'_>, found: &mut Vec<Found>) {
    for (index, hook) in set.manifests.iter().enumerate().filter(|(_, manifest)| manifest.hook.is_some()) {
        let Some(stage) = hook.stage.filter(|stage| !stage.phase.is_deletion()) else { continue };
        let comes_late = |object: &ObjectRef| {
            let own = set.own(hook.application, object)?;
            let at = own.stage?;
            late(&hook.object.kind, stage, &object.kind, Force::Start, at)?;
            (set.context.exists(object) != Some(true)).then_some((object.clone(), at))
        };
        let needs = hook.work.iter().flat_map(|work| &work.needs);
        let accounts = needs.filter(|need| need.object.kind.is("", "ServiceAccount")).map(|need| &need.object);
        let mut missing = Vec::new();
        for binding in accounts.flat_map(|account| bindings(set, hook, account)) {
            // Without its role a binding grants nothing, and without the binding the role does not matter.
            let roles = binding.work.iter().flat_map(|work| &work.needs).map(|need| &need.object);
            let mut roles = roles.filter(|role| role.kind.group == RBAC_GROUP);
            missing.extend(comes_late(&binding.object).or_else(|| roles.find_map(comes_late)));
        }
        missing.sort();
        missing.dedup();
        let Some((first, at)) = missing.first().cloned() else { continue };
        let names: Vec<String> = missing.iter().map(|(object, _)| object.to_string()).collect();
        let mut finding = Finding::new(
            &RIGHTS_LATER,
            Severity::Warn,
            hook.object.clone(),
            "a hook starts before its account has its rights, and nothing waits for them",
        )
        .detail(format!("{stage} runs before its account has the rights of {}, which comes in {at}", some(&names, 3)))
        .remedy(format!("give {} the phase of the hook and a lower sync-wave, or run the hook later", some(&names, 3)));
        finding.regarding = Some(first);
        "/spec".clone_into(&mut finding.field);
        found.push((index, finding));
    }
}

/// The bindings of the same Application that name an account.
fn bindings<'a>(set: &'a Set<'_>, hook: &Manifest, account: &ObjectRef) -> impl Iterator<Item = &'a Manifest> {
    let application = hook.application;
    set.referrers(account).filter(move |user| user.application == application && user.object.kind.group == RBAC_GROUP)
}
