//! Many Applications of one ApplicationSet deleted by its controller within a minute: a generator that returned less than
//! it should looks like this, and people need time to see it.

use crate::{
    catalog::shared_claim::BURST,
    decision::{Finding, Severity},
    deletion::Deletion,
    object::{ARGO_GROUP, ObjectRef},
    remedy::{Command, Remedy, type_and_name},
    rules::Context,
};

/// So many deletes in a row are worth a line, whatever the limit.
const MANY: usize = 10;

/// Counts from the inventory, so that every replica and command counts alike.
pub(super) fn check(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    if !deletion.object.is_application() || !is_set_controller(&cx.request.user.username) {
        return;
    }
    let known = cx.inventory.app_named(&deletion.object.namespace, &deletion.object.name);
    let Some(app) = known.and_then(|id| cx.inventory.app(id)) else { return };
    let Some((set, _uid)) = app.generated_by.as_deref().and_then(|set| set.rsplit_once('/')) else { return };
    let set = ObjectRef::new(ARGO_GROUP, "ApplicationSet", &app.namespace, set);
    let going = cx.inventory.siblings(app).iter().filter(|id| known != Some(**id));
    let before = going.filter(|id| cx.inventory.app(**id).is_some_and(|app| app.is_newly_deleted(cx.now))).count();
    let limit = cx.policy.spec.application_sets.max_deletes_per_minute.map(|limit| limit as usize);
    let refused = limit.is_some_and(|limit| before >= limit);
    // Below the limit it is said once, when the number is reached.
    if !refused && before + 1 != MANY {
        return;
    }
    let (severity, detail) = match limit.filter(|_| refused) {
        Some(limit) => (
            Severity::Deny,
            format!(
                "{set} deleted {before} Applications within a minute; the policy allows {limit}, the rest has to wait"
            ),
        ),
        None => (Severity::Warn, format!("{set} deletes {MANY} Applications within a minute")),
    };
    let summary = "many Applications of one ApplicationSet are deleted at once";
    findings.push(
        Finding::new(&BURST, severity, deletion.object.clone(), summary)
            .detail(detail)
            .remedy(Remedy::run(
                "if they are not meant to go, look at its generators; the controller tries again by itself",
                Command::new("kubectl").namespace(&set.namespace).words(["get", &type_and_name(&set), "-o", "yaml"]),
            ))
            .remedy("if they are, raise applicationSets.maxDeletesPerMinute in the policy"),
    );
}

/// Whether this is the controller that generates Applications and deletes those its generators no longer name.
fn is_set_controller(user: &str) -> bool {
    user.starts_with("system:serviceaccount:") && user.ends_with("applicationset-controller")
}
