//! Objects whose namespace nobody said. They and those that name one may meet in the same namespace, or not.

use std::collections::HashMap;

use super::{
    manifest::Manifest,
    set::{Found, Set},
};
use crate::{
    catalog::sync_wave::NAMESPACE_UNSAID,
    decision::{Finding, Severity},
    needs::Force,
    object::{GroupKind, ObjectRef, is_builtin_cluster_scoped},
    rules::sync_wave::late,
};

/// Manifests by kind and name.
type ByName<'a> = HashMap<(&'a GroupKind, &'a str), Vec<&'a Manifest>>;

/// Says where a namespace that nobody named decides whether an order works, or whether two objects are one.
pub fn check(set: &Set<'_>, found: &mut Vec<Found>) {
    let named = |manifest: &&Manifest| !manifest.object.name.is_empty() && is_namespaced(&manifest.object);
    if !set.manifests.iter().filter(named).any(|manifest| manifest.object.namespace.is_empty()) {
        return;
    }
    let mut by_name: ByName<'_> = HashMap::new();
    for manifest in set.manifests.iter().filter(named) {
        by_name.entry((&manifest.object.kind, &manifest.object.name)).or_default().push(manifest);
    }
    for (index, manifest) in set.manifests.iter().enumerate() {
        let needed = need(set, &by_name, manifest).map(|(other, detail)| (other, detail, ""));
        let other =
            needed.or_else(|| twin(&by_name, manifest).map(|(other, detail)| (other, detail, "/metadata/name")));
        if let Some((other, detail, field)) = other {
            let mut finding = Finding::new(
                &NAMESPACE_UNSAID,
                Severity::Warn,
                manifest.object.clone(),
                "whether two objects meet in one namespace depends on a namespace that no manifest names",
            )
            .detail(detail)
            .remedy("say where objects without a namespace go: -n NAMESPACE, or --app with their Application");
            finding.regarding = Some(other);
            field.clone_into(&mut finding.field);
            found.push((index, finding));
        }
    }
}

fn is_namespaced(object: &ObjectRef) -> bool {
    !is_builtin_cluster_scoped(&object.kind.group, &object.kind.kind)
}

/// The manifests of this name in a namespace that is only known for one of the two.
fn perhaps<'a>(by_name: &ByName<'a>, application: usize, object: &ObjectRef) -> Vec<&'a Manifest> {
    let all = by_name.get(&(&object.kind, object.name.as_str())).into_iter().flatten().copied();
    all.filter(|other| {
        other.application == application && other.object.namespace.is_empty() != object.namespace.is_empty()
    })
    .collect()
}

/// Something this needs that comes too late, if it is in the same namespace.
fn need(set: &Set<'_>, by_name: &ByName<'_>, manifest: &Manifest) -> Option<(ObjectRef, String)> {
    let stage = manifest.stage?;
    let needs = manifest.work.iter().flat_map(|work| &work.needs);
    let needs = needs.filter(|need| !need.optional && !matches!(need.force, Force::Bearable(_)));
    let mut open =
        needs.filter(|need| is_namespaced(&need.object) && set.own(manifest.application, &need.object).is_none());
    open.find_map(|need| {
        let found = perhaps(by_name, manifest.application, &need.object);
        let mut late = found.iter().map(|other| {
            let at = other.stage?;
            late(&manifest.object.kind, stage, &need.object.kind, need.force, at).map(|_| (other, at))
        });
        // One that comes in time may be the one that is meant.
        let (other, at) = late.next()??;
        if late.any(|other| other.is_none()) {
            return None;
        }
        let detail = format!(
            "{stage} needs {} ({}); {} comes in {at}, and whether that is the same object nobody says",
            need.object, need.via, other.object
        );
        Some((other.object.clone(), detail))
    })
}

/// Another object of this name, where one of the two is a hook.
fn twin(by_name: &ByName<'_>, manifest: &Manifest) -> Option<(ObjectRef, String)> {
    let is_open = is_namespaced(&manifest.object) && manifest.object.namespace.is_empty();
    let twins = if is_open { perhaps(by_name, manifest.application, &manifest.object) } else { Vec::new() };
    let other = twins.into_iter().find(|other| other.hook.is_some() || manifest.hook.is_some())?;
    let detail = format!(
        "{} is there as well: in one namespace both are one object, and Argo CD keeps the last of them",
        other.object
    );
    Some((other.object.clone(), detail))
}
