//! What the guard itself works by: its ServiceAccount and the rights of that. Nothing here is refused, because whoever takes
//! the guard away must be able to; whoever does not mean to is told.

use crate::{
    catalog::control_plane::OWN_RIGHTS,
    decision::{Finding, Severity},
    deletion::{Deletion, Explanation},
    inventory::LOCAL,
    kinds::own_rights,
    remedy::{Command, Remedy},
    rules::Context,
};

pub(super) fn check(cx: &Context<'_>, deletion: &Deletion, findings: &mut Vec<Finding>) {
    if matches!(deletion.explanation, Explanation::Cascade(_)) || deletion.is_mere_replacement() {
        return;
    }
    for object in own_rights() {
        let item = deletion.plan.item(cx.inventory.key_of(LOCAL, &object));
        if item.is_none_or(|item| item.fate.is_spared()) {
            continue;
        }
        findings.push(
            Finding::new(&OWN_RIGHTS, Severity::Warn, object.clone(), "cascade-guard works by what would go")
                .detail(format!(
                    "without {object} cascade-guard sees nothing: whatever fails closed is refused until it is back"
                ))
                .remedy(Remedy::run(
                    "to take cascade-guard away, delete this first",
                    Command::new("kubectl delete validatingwebhookconfiguration cascade-guard"),
                )),
        );
    }
}
