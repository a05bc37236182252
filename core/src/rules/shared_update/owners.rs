//! Owners. What names only owners that are not there is deleted by the garbage collector at once, and for most kinds nobody
//! is asked: neither who claims the object, nor whoever wrote the reference. A backup that is restored brings such references
//! along from the cluster it was made of.

#[cfg(test)]
mod tests;

use super::{claimants, is_shared_kind};
use crate::{
    admission::{Operation, Request},
    catalog::shared_update::OWNER_ABSENT,
    decision::{Finding, Severity},
    facts::{Facts, Reading},
    inventory::LOCAL,
    object::{ARGO_GROUP, ObjectMeta, ObjectRef, OwnerReference},
    policy::{RuleKey, Scope},
    remedy::{Command, Remedy, type_and_name},
    rules::Context,
    text::some,
};

/// So many owners are looked for. Nobody names more; what lies beyond counts as not there.
const MAX_OWNERS: usize = 10;

/// Whether the request names owners, or other owners than before. Naming none is what makes an object stay.
pub(super) fn names_owners(request: &Request<'_>) -> bool {
    let Some(new) = &request.object else { return false };
    let before = request.old_object.as_ref().map_or(&[][..], |old| &old.meta.owner_references);
    let is_kind = is_shared_kind(&request.target)
        || (request.target.kind.group == ARGO_GROUP
            && ["Application", "ApplicationSet", "AppProject"].contains(&request.target.kind.kind.as_str()));
    is_kind
        && matches!(request.operation, Operation::Create | Operation::Update)
        && !new.meta.owner_references.is_empty()
        && new.meta.owner_references != before
}

/// Refuses the write if not one of the owners it names is there. Of ServiceAccounts, roles and bindings only those count
/// that an Application claims: others make and collect such objects by the dozen.
pub(super) fn check(cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
    let request = cx.request;
    let Some(new) = request.object.as_ref().filter(|_| names_owners(request)) else { return };
    // The garbage collector only ever takes references away.
    if cx.policy.is_garbage_collector(&request.user.username) {
        return;
    }
    let target = cx.inventory.normalise(request.target.clone());
    let apps = claimants(cx, cx.inventory.key_of(LOCAL, &target));
    if is_shared_kind(&target) && !target.is_namespace() && apps.is_empty() {
        return;
    }
    // Asked all at once.
    let looks: Vec<Option<Owner>> = new
        .meta
        .owner_references
        .iter()
        .take(MAX_OWNERS)
        .map(|reference| look(cx, facts, &target, &new.meta, reference))
        .collect();
    let mut absent = Vec::new();
    for owner in looks {
        match owner {
            None | Some(Owner::Lives) => return,
            Some(Owner::Absent(why)) => absent.push(why),
        }
    }
    let paths: Vec<String> = apps.iter().map(|app| app.path()).collect();
    let claimed = if paths.is_empty() { String::new() } else { format!(" (claimed by {})", some(&paths, 3)) };
    let mut finding = Finding::new(
        &OWNER_ABSENT,
        Severity::Deny,
        target.clone(),
        "the garbage collector would delete this at once, because no owner that it names is there",
    )
    .detail(format!("{target}{claimed} would be owned by {}", some(&absent, 3)))
    .claimed_by(paths)
    .remedy("leave ownerReferences out; what is restored from a backup must not bring them along")
    .remedy(Remedy::run(
        "if it is to go, delete it, so that somebody looks at what it takes",
        Command::new("kubectl delete").word(type_and_name(&target)).namespace(&target.namespace),
    ))
    .remedy(
        "if an owner is there and only cannot be read, give cascade-guard the right: a ClusterRole with `get` of its kind \
         and the label cascade-guard.io/aggregate-to-reader: \"true\"",
    );
    let project = cx.inventory.app_named(&target.namespace, &target.name).filter(|_| target.is_application());
    let project = project.and_then(|id| cx.inventory.app(id)).map(|app| &*app.project);
    finding.scopes = Scope::of(&target, project).into();
    // The garbage collector is asked about Namespaces; of everything else it takes what another Application claims.
    if !target.is_namespace() {
        finding.key = Some(RuleKey::SharedClaim);
    }
    findings.push(finding);
}

enum Owner {
    Lives,
    /// Which owner, and why it does not count.
    Absent(String),
}

/// Looks for an owner as the garbage collector does (`pkg/controller/garbagecollector`): by kind and name, in the object's own
/// namespace, and the UID has to be the same. `None` while the answer is out.
fn look(
    cx: &Context<'_>,
    facts: &mut Facts,
    target: &ObjectRef,
    meta: &ObjectMeta,
    reference: &OwnerReference,
) -> Option<Owner> {
    let OwnerReference { kind, name, uid, .. } = reference;
    let owner = cx.inventory.normalise(ObjectRef::new(reference.group(), kind, &target.namespace, name));
    // What owns itself lives as long as itself.
    if owner == *target && *uid == meta.uid {
        return Some(Owner::Lives);
    }
    // A set that has just been made may be known before it can be read, and the other way round.
    let generates = |namespace: &str| {
        let set = cx.inventory.appset(namespace, name).filter(|_| owner.kind.is(ARGO_GROUP, "ApplicationSet"));
        set.is_some_and(|set| set.meta.uid == *uid && !set.meta.is_terminating())
    };
    if generates(&target.namespace) {
        return Some(Owner::Lives);
    }
    let why = match facts.metadata(&owner)? {
        Reading::Found(found) if found.is_terminating() => "is being deleted itself".to_owned(),
        Reading::Found(found) if found.uid == *uid => return Some(Owner::Lives),
        Reading::Found(_) => format!("is another one now (its UID is not {uid})"),
        Reading::NotFound => "does not exist".to_owned(),
        Reading::Unreadable(reason) | Reading::Forbidden(reason) => format!("cannot be read ({reason})"),
    };
    Some(Owner::Absent(format!("{owner}, which {why}")))
}
