//! The policy in force goes, or its definition with it: from then on every rule is in audit, and nobody hears of it until
//! something is gone. Whoever takes the guard away may do so in any order and is told what follows. Where a group is named
//! that may delete in spite of every rule, nobody else may by this way either.

#[cfg(test)]
mod tests;

use crate::{
    catalog::policy::DELETED,
    decision::{Finding, Severity},
    deletion::{Deletion, Explanation},
    facts::{Facts, Reading},
    inventory::LOCAL,
    kinds::own_configuration,
    object::ObjectRef,
    policy::{POLICY_GROUP, POLICY_KIND, POLICY_NAME},
    remedy::{Command, Remedy},
    rules::Context,
};

pub(super) fn check(cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
    let Some(deletion) = cx.deletion else { return };
    let told_before = matches!(deletion.explanation, Explanation::Cascade(_)) || deletion.is_mere_replacement();
    if !deletion.judged || told_before {
        return;
    }
    let policy = ObjectRef::new(POLICY_GROUP, POLICY_KIND, "", POLICY_NAME);
    let definition =
        ObjectRef::new("apiextensions.k8s.io", "CustomResourceDefinition", "", "guardpolicies.cascade-guard.io");
    let Some(object) = [definition, policy].into_iter().find(|object| goes(cx, deletion, object)) else { return };
    let groups = &cx.policy.spec.break_glass.groups;
    let stands_in_the_way =
        !groups.is_empty() && !cx.policy.may_break_glass(&cx.request.user.groups) && cx.policy.may_refuse();
    let severity = if stands_in_the_way {
        let Some(guarding) = guards(cx, facts, deletion) else { return };
        if guarding { Severity::Deny } else { Severity::Warn }
    } else {
        Severity::Warn
    };
    let user = &cx.request.user.username;
    let mut finding = Finding::new(
        &DELETED,
        severity,
        object.clone(),
        "without its policy cascade-guard refuses nothing any more",
    )
    .detail(match severity {
        Severity::Deny => format!(
            "{object} would go, and every rule with it into audit; {user} is in none of the groups that may break \
                     the glass ({})",
            groups.join(", ")
        ),
        Severity::Warn => {
            format!("{object} goes, and every rule with it into audit: deletes are recorded and not refused")
        }
    })
    .remedy(Remedy::run(
        "to refuse nothing for a while, set the ceiling instead",
        Command::new("kubectl -n cascade-guard set env deployment/cascade-guard CASCADE_GUARD_MODE_CEILING=audit"),
    ));
    if severity == Severity::Deny {
        finding = finding.remedy(format!("ask a member of {}", groups.join(", "))).remedy(Remedy::run(
            "to take cascade-guard away, delete this first",
            Command::new("kubectl delete validatingwebhookconfiguration cascade-guard"),
        ));
    }
    findings.push(finding);
}

fn goes(cx: &Context<'_>, deletion: &Deletion, object: &ObjectRef) -> bool {
    deletion.plan.item(cx.inventory.key_of(LOCAL, object)).is_some_and(|item| !item.fate.is_spared())
}

/// Whether the API server goes on asking the guard: its webhook configuration is there and stays. What cannot be read is no
/// reason to keep a policy that nobody may use. `None` while the answer is out.
fn guards(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion) -> Option<bool> {
    let configuration = own_configuration();
    if goes(cx, deletion, &configuration) {
        return Some(false);
    }
    Some(match facts.metadata(&configuration)? {
        Reading::Found(meta) => !meta.is_terminating(),
        Reading::NotFound | Reading::Unreadable(_) | Reading::Forbidden(_) => false,
    })
}
