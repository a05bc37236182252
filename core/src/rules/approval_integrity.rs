//! `approval-integrity`: what the other rules rely on may only be written by those it belongs to.
//!
//! An approval is written by the approver who is named in it and who may approve; a label that takes a Namespace out of a
//! rule's reach needs the same right, and so does a project that does it for an Application; the glass is broken by members of the configured groups. Taking any of it away is
//! free to everybody, and so is everything else in the same write.

mod finalize;
mod projects;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

pub use self::projects::foresees;
use super::{Context, Rule};
use crate::{
    admission::{Object, Request},
    catalog::{
        RuleMeta,
        approval_integrity::{self as checks, META},
    },
    decision::{Finding, Severity},
    facts::{AccessQuestion, Facts, Reading},
    namespace::approval::{
        APPROVAL_KEYS, APPROVE_GROUP, APPROVE_RESOURCE, APPROVE_VERB, APPROVED_BY, APPROVED_UID, APPROVED_UNTIL,
        Approval, Problem, how_to_approve, how_to_check_the_right,
    },
    object::ObjectMeta,
    policy::{BREAK_GLASS, RuleKey, Scope, Subject},
    remedy::Remedy,
};

/// The rule.
pub struct ApprovalIntegrity;

impl Rule for ApprovalIntegrity {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn applies(&self, request: &Request<'_>) -> bool {
        request.target.is_namespace() || request.target.is_application() || writes_break_glass(request)
    }

    /// Everything this rule judges stands in the request.
    fn needs_inventory(&self) -> bool {
        false
    }

    /// Whoever may write what is judged here may delete afterwards. All but the right to approve stands in the request,
    /// and a right that is not known is none.
    fn when_overdue(&self, cx: &Context<'_>, findings: &mut Vec<Finding>) {
        self.check(cx, &mut Facts::closed("there was no time left"), findings);
    }

    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
        break_glass(cx, findings);
        projects::check(cx, facts, findings);
        let Some(new) = cx.request.object.as_ref().filter(|_| cx.request.target.is_namespace()) else { return };
        match &cx.request.old_object {
            None => created(cx, &new.meta, findings),
            Some(old) => {
                approval(cx, facts, &old.meta, &new.meta, findings);
                labels(cx, facts, &old.meta, &new.meta, findings);
                if cx.request.sub_resource == "finalize" {
                    finalize::finalize(cx, old, new, findings);
                }
            }
        }
    }
}

// ---- approvals

/// A Namespace that is created with an approval on it is created all the same (its manifest may be a copy), but the
/// approval can never be valid: nobody knew the UID.
fn created(cx: &Context<'_>, new: &ObjectMeta, findings: &mut Vec<Finding>) {
    if let Some(key) = APPROVAL_KEYS.into_iter().find(|key| new.annotation(key).is_some()) {
        findings.push(
            Finding::new(
                &checks::APPROVAL_AT_CREATION,
                Severity::Warn,
                cx.request.target.clone(),
                "an approval that a Namespace is created with never counts",
            )
            .detail(format!("{key} on a new Namespace never counts; approve {} when it is to go", new.name)),
        );
    }
}

fn approval(cx: &Context<'_>, facts: &mut Facts, old: &ObjectMeta, new: &ObjectMeta, findings: &mut Vec<Finding>) {
    let written = |key: &&str| new.annotation(key).is_some() && new.annotation(key) != old.annotation(key);
    if !APPROVAL_KEYS.iter().any(written) {
        return;
    }
    let written = Approval::read(new);
    let user = &cx.request.user.username;
    // The UID of the stored object counts; a client may leave it out of what it sends.
    let mut problems: Vec<String> =
        problems_when_written(written, old, cx.now, cx).iter().map(ToString::to_string).collect();
    if !written.by.is_empty() && written.by != user {
        problems.push(format!("it names {} as approver but {user} writes it; approve in your own name", written.by));
    }
    let mut lacks_right = false;
    match right_to_approve(cx, facts, &old.name) {
        Right::Pending => return,
        Right::Held => {}
        Right::Missing(why) => {
            problems.push(why);
            lacks_right = true;
        }
    }
    for problem in problems {
        let [ours, kubectl] = how_to_approve(old, cx.now, cx.policy);
        let finding = Finding::new(
            &checks::APPROVAL,
            Severity::Deny,
            cx.request.target.clone(),
            "an approval is written whole, in the approver's own name and by someone who may approve",
        )
        .detail(format!("Namespace {}: {problem}", old.name));
        let [first, second] = if lacks_right { how_to_get_the_right(&old.name) } else { [ours, kubectl] };
        findings.push(finding.remedy(first).remedy(second));
    }
}

/// What is wrong with an approval that is being written. One that is not whole is refused at once, so that nobody finds
/// out when the Namespace is to be deleted.
fn problems_when_written(written: Approval<'_>, old: &ObjectMeta, now: Timestamp, cx: &Context<'_>) -> Vec<Problem> {
    if written.is_absent() {
        return [APPROVED_BY, APPROVED_UNTIL, APPROVED_UID].map(Problem::Missing).to_vec();
    }
    written.problems(old, now, cx.policy)
}

/// Whether the caller may approve a deletion.
enum Right {
    Held,
    /// Not held, or not known to be; why, for a person.
    Missing(String),
    /// Nobody has said yet.
    Pending,
}

fn right_to_approve(cx: &Context<'_>, facts: &mut Facts, namespace: &str) -> Right {
    let user = &cx.request.user;
    let name = &user.username;
    let reading = facts.access(AccessQuestion {
        user: user.clone(),
        verb: APPROVE_VERB.to_owned(),
        group: APPROVE_GROUP.to_owned(),
        resource: APPROVE_RESOURCE.to_owned(),
        name: namespace.to_owned(),
    });
    match reading {
        None => Right::Pending,
        Some(Reading::Found(true)) => Right::Held,
        Some(Reading::Found(false) | Reading::NotFound) => Right::Missing(format!(
            "{name} lacks the verb {APPROVE_VERB} on {APPROVE_RESOURCE}.{APPROVE_GROUP} {namespace}"
        )),
        Some(Reading::Unreadable(reason) | Reading::Forbidden(reason)) => {
            Right::Missing(format!("whether {name} may approve its deletion could not be checked: {reason}"))
        }
    }
}

fn how_to_get_the_right(namespace: &str) -> [Remedy; 2] {
    [
        Remedy::run("let somebody do it to whom this says true", how_to_check_the_right(namespace)),
        Remedy::advice(format!(
            "or let a cluster administrator grant you the verb {APPROVE_VERB} on {APPROVE_RESOURCE}.{APPROVE_GROUP} \
             {namespace}: see docs/approvals.md"
        )),
    ]
}

// ---- labels

/// Changing a label so as to become exempt lifts the guard just as an approval does, and longer.
fn labels(cx: &Context<'_>, facts: &mut Facts, old: &ObjectMeta, new: &ObjectMeta, findings: &mut Vec<Finding>) {
    let weaker = cx.policy.weakened_by_labels(&old.name, &old.labels, &new.labels, cx.now);
    if weaker.is_empty() {
        return;
    }
    let Right::Missing(why) = right_to_approve(cx, facts, &old.name) else { return };
    for weakening in weaker {
        let [check, grant] = how_to_get_the_right(&old.name);
        let mut finding = Finding::new(
            &checks::EXEMPTING_LABEL,
            Severity::Deny,
            cx.request.target.clone(),
            "a label that takes a Namespace out of a rule's reach is changed only by someone who may approve its deletion",
        )
        .detail(format!(
            "Namespace {}: {} would be {} instead of {} ({}), and {why}",
            old.name,
            weakening.rule.as_str(),
            weakening.to.as_str(),
            weakening.from.as_str(),
            weakening.decided_by
        ))
        .remedy(check)
        .remedy(grant);
        finding.key = Some(weakening.rule);
        findings.push(finding);
    }
}

// ---- break-glass

/// Whether the request adds or changes the key.
fn writes_break_glass(request: &Request<'_>) -> bool {
    // The deployment controller copies annotations to ReplicaSets; nothing is decided by them.
    if request.target.kind.is("apps", "ReplicaSet") {
        return false;
    }
    let value = |object: &Option<Object<'_>>| {
        object.as_ref().and_then(|object| object.meta.annotation(BREAK_GLASS).map(str::to_owned))
    };
    let new = value(&request.object);
    new.is_some() && new != value(&request.old_object)
}

fn break_glass(cx: &Context<'_>, findings: &mut Vec<Finding>) {
    if !writes_break_glass(cx.request) || cx.policy.may_break_glass(&cx.request.user.groups) {
        return;
    }
    let groups = &cx.policy.spec.break_glass.groups;
    let user = &cx.request.user.username;
    let (who, remedy) = if groups.is_empty() {
        (
            "the policy names no group that may (spec.breakGlass.groups)".to_owned(),
            format!("leave {BREAK_GLASS} out: it has no effect here"),
        )
    } else {
        let groups = groups.join(", ");
        (format!("{user} is in none of its groups ({groups})"), format!("ask a member of {groups}"))
    };
    let mut finding = Finding::new(
        &checks::BREAK_GLASS,
        Severity::Deny,
        cx.request.target.clone(),
        format!("only members of the configured groups may write {BREAK_GLASS}"),
    )
    .detail(format!("{BREAK_GLASS} on {}: {who}", cx.request.target))
    .remedy(remedy);
    finding.key = Some(strictest(cx));
    findings.push(finding);
}

/// The key waives every rule, so it is guarded as strictly as the strictest of them.
fn strictest(cx: &Context<'_>) -> RuleKey {
    let scope = Scope::of(&cx.request.target, None);
    let subject = Subject {
        namespace: &scope.namespace,
        labels: cx.inventory.namespace(&scope.namespace).map(|meta| &meta.labels),
        project: None,
        user: &cx.request.user.username,
    };
    RuleKey::ALL
        .iter()
        .copied()
        .max_by_key(|key| cx.policy.resolve(*key, &subject, cx.now).mode)
        .unwrap_or(RuleKey::NamespaceApproval)
}
