//! A list that does not hold what carries its Application's marker. The cascade goes by the marker, so what the list leaves
//! out goes too, and whoever reads the list does not expect it: somebody may have changed it.
//!
//! Of a live cluster only the markers of Namespaces and of Argo CD's own kinds are known; of a snapshot more are, and the
//! answer is the same.

use crate::{
    argo::hook::Hook,
    catalog::shared_claim::STALE,
    decision::{Finding, Severity},
    deletion::Deletion,
    inventory::LOCAL,
    object::{ARGO_GROUP, ObjectMeta, ObjectRef},
    remedy::{Command, Remedy},
    rules::Context,
    text::{count, some},
};

/// Said where the delete begins, once for each Application whose list is believed.
pub(super) fn check(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    if !deletion.root {
        return;
    }
    for taker in &deletion.plan.takers {
        let Some(app) = taker.id.and_then(|id| cx.inventory.app(id)).filter(|app| app.list_valid()) else { continue };
        if app.cluster != LOCAL {
            continue;
        }
        let is_left_out = |object: &ObjectRef| {
            let key = cx.inventory.key_of(LOCAL, object);
            let known = object.is_namespace() || object.kind.group == ARGO_GROUP;
            let namespace = || cx.inventory.namespace(&object.name).filter(|_| object.is_namespace());
            let is_hook = || namespace().is_some_and(|meta| Hook::of(meta).is_some());
            let goes_anyway = || {
                namespace().is_some_and(ObjectMeta::is_terminating)
                    || cx
                        .inventory
                        .app_by_key(key)
                        .and_then(|id| cx.inventory.app(id))
                        .is_some_and(|app| app.terminating.is_some())
                    || cx.inventory.appset_by_key(key).is_some_and(|set| set.meta.is_terminating())
            };
            known
                && *object != app.object()
                && app.claim(key).is_none()
                && deletion.plan.item(key).is_some_and(|item| !item.fate.is_spared())
                && !is_hook()
                && !goes_anyway()
        };
        let marked = cx.inventory.marked_by(app).into_iter().filter(|object| is_left_out(object));
        let left_out: Vec<String> = marked.map(ToString::to_string).collect();
        if left_out.is_empty() {
            continue;
        }
        let path = app.path();
        findings.push(
            Finding::new(
                &STALE,
                Severity::Warn,
                deletion.object.clone(),
                "a list and the markers on objects contradict each other",
            )
            .detail(format!(
                "{path} does not list {} that its marker is on, and its cascade takes all the same: {}",
                count(left_out.len(), "object"),
                some(&left_out, 3)
            ))
            .remedy(Remedy::run(
                format!("have {path} compared anew, then look at what it lists"),
                Command::new("argocd app get").words([&path, "--hard-refresh"]),
            ))
            .judged_in(deletion.scopes(&deletion.object)),
        );
    }
}
