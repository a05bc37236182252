//! `namespace-approval`: a Namespace goes only after someone who may say so has said so.

use super::{Context, Rule, shared_claim::of_replacing_sync};
use crate::{
    admission::Request,
    catalog::{
        Check, RuleMeta,
        namespace_approval::{APPROVED, CONTENT, META, NOT_APPROVED, NOT_READ, OBSTACLE},
    },
    decision::{Evidence, Finding, Severity},
    deletion::{Deletion, Explanation, Item, Stored, Via},
    facts::{Facts, Reading},
    inventory::LOCAL,
    namespace::{
        approval::{Approval, Problem, problems_at_delete, remedies},
        content,
    },
    object::{ObjectMeta, ObjectRef},
    policy::Mode,
};

/// What it does: refuses the delete of a Namespace, alone or inside any deletion plan, that carries no valid approval.
///
/// Why that is bad: everything in a Namespace goes with it, whoever put it there, and a deletion cannot be taken back.
///
/// How to proceed: approve the Namespace (`cascade-guard approve`), then delete it before the approval ends.
pub(super) struct NamespaceApproval;

impl Rule for NamespaceApproval {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn applies(&self, request: &Request<'_>) -> bool {
        request.sub_resource.is_empty()
    }

    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
        let Some(deletion) = cx.deletion else { return };
        if !deletion.judged {
            return;
        }
        let before = findings.len();
        let mut looked_into = 0;
        let few = deletion.plan.namespaces().len() <= LOOKED_INTO;
        for item in &deletion.plan.items {
            if !item.kind.is("", "Namespace") || item.fate.is_spared() {
                continue;
            }
            if item.cluster != LOCAL {
                findings.push(elsewhere(cx, deletion, item));
                continue;
            }
            let object = match &item.object {
                Some(object) => object.clone(),
                None => ObjectRef::namespace("?"),
            };
            let meta = if item.via == Via::Root { Some(Ok(deletion.meta.clone())) } else { read(cx, facts, &object) };
            match meta {
                None => {}
                Some(Ok(meta)) if meta.is_terminating() || was_taken(deletion, item, &meta) => {}
                Some(Ok(meta)) => {
                    let mut refusal = judge(cx, deletion, &object, &meta);
                    // Whoever deletes many Namespaces at once is not kept waiting for what is in each of them.
                    let reading = looked_into < LOOKED_INTO || cx.thorough;
                    if reading && (refusal.is_some() || (deletion.root && (few || item.via == Via::Root))) {
                        looked_into += 1;
                        look_into(cx, facts, deletion, &meta, refusal.as_mut(), findings);
                    }
                    findings.extend(refusal.or_else(|| evidence(deletion, &object, &meta)));
                }
                Some(Err(reason)) => {
                    let mut finding = Finding::new(&NOT_APPROVED, Severity::Deny, object.clone(), SUMMARY)
                        .detail(format!("{object}: whether it was approved cannot be read ({reason})"))
                        .remedy("try again; if it stays so, look at the log of cascade-guard");
                    finding.scopes = deletion.scopes(&object);
                    findings.push(finding);
                }
            }
        }
        let refusals = findings[before..].iter().filter(|finding| finding.severity == Severity::Deny).count();
        if refusals > 1 {
            // Of many Namespaces the names matter more than a second way to approve each.
            for finding in &mut findings[before..] {
                finding.remedies.truncate(1);
            }
        }
    }
}

/// The content of so many Namespaces is looked at for one answer.
const LOOKED_INTO: usize = 2;

const SUMMARY: &str = "a Namespace that was not approved would be deleted, with everything in it";

/// Metadata of a Namespace of a plan, or why it cannot be read; `None` while the answer is out.
pub(super) fn read(cx: &Context<'_>, facts: &mut Facts, object: &ObjectRef) -> Option<Result<ObjectMeta, String>> {
    Some(match cx.inputs().live(facts, object)? {
        Reading::Found(meta) => Ok((*meta).clone()),
        // An Application lists it as synced, or it would have been spared: list and read contradict.
        Reading::NotFound => Ok(ObjectMeta { name: object.name.clone(), ..ObjectMeta::default() }),
        Reading::Unreadable(reason) | Reading::Forbidden(reason) => Err(reason),
    })
}

/// Whether a Namespace that was not found has gone with the deletion that takes this object along: there is nothing left
/// to approve, and a refusal would only strand what else is to go.
pub(super) fn was_taken(deletion: &Deletion, item: &Item, meta: &ObjectMeta) -> bool {
    let below = match deletion.explanation {
        Explanation::Cascade(_) => true,
        // The set that generated the Application is going, or gone.
        Explanation::Direct | Explanation::Collected => !deletion.root && deletion.object.is_application(),
        Explanation::Prune(_) | Explanation::Replacement(_) | Explanation::Swept => false,
    };
    below && item.via != Via::Root && meta.uid.is_empty()
}

/// The refusal of a Namespace that is not approved; `None` if it is.
fn judge(cx: &Context<'_>, deletion: &Deletion, object: &ObjectRef, meta: &ObjectMeta) -> Option<Finding> {
    let problems = problems(cx, deletion, meta);
    if problems.is_empty() {
        return None;
    }
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let mut finding = Finding::new(&NOT_APPROVED, Severity::Deny, object.clone(), SUMMARY)
        .detail(format!("{object}: {}", said.join("; ")));
    finding.remedies = match of_replacing_sync(cx, deletion) {
        // An approval would let the Namespace go, which is not what a sync is for.
        Some(remedy) => vec![remedy],
        None => remedies(meta, cx.now, cx.policy, &problems),
    };
    finding.scopes = deletion.scopes(object);
    Approval::read(meta).by.clone_into(&mut finding.approved_by);
    Some(finding)
}

/// Who answers for a Namespace that goes.
fn evidence(deletion: &Deletion, object: &ObjectRef, meta: &ObjectMeta) -> Option<Finding> {
    let approval = Approval::read(meta);
    if approval.is_absent() {
        return None;
    }
    let reason = if approval.reason.is_empty() { String::new() } else { format!(" ({})", approval.reason) };
    let mut finding = Finding::new(&APPROVED, Severity::Warn, object.clone(), "a Namespace goes that was approved")
        .detail(format!("{object}: {} approved its deletion until {}{reason}", approval.by, approval.until));
    approval.by.clone_into(&mut finding.approved_by);
    finding.evidence = Some(Evidence { until: approval.until.to_string(), reason: approval.reason.to_string() });
    finding.scopes = deletion.scopes(object);
    Some(finding)
}

/// What keeps the approval on a Namespace from counting for this delete; nothing if it counts.
///
/// Below an admitted cascade an approval that was valid when the cascade (or one further up that took it along) began is
/// enough, so that one which ends half-way strands nothing. One that was written later, because the cascade came to rest at
/// this Namespace, counts from now on like any other: seen from the beginning it would only end too far ahead.
pub(super) fn problems(cx: &Context<'_>, deletion: &Deletion, meta: &ObjectMeta) -> Vec<Problem> {
    let at = |time| problems_at_delete(meta, time, cx.policy, &cx.request.user.username);
    if deletion.began.iter().any(|began| *began < cx.now && at(*began).is_empty()) {
        return Vec::new();
    }
    at(cx.now)
}

/// Adds what is in a Namespace and what would keep it from going: to the refusal, or as warnings to whoever may delete it.
/// Nothing is read for an answer that nobody hears, nor before the plan itself is known.
fn look_into(
    cx: &Context<'_>,
    facts: &mut Facts,
    deletion: &Deletion,
    meta: &ObjectMeta,
    refusal: Option<&mut Finding>,
    findings: &mut Vec<Finding>,
) {
    let object = ObjectRef::namespace(&meta.name);
    let warning = |check: &'static Check, detail: String| {
        let mut finding =
            Finding::new(check, Severity::Warn, object.clone(), "what is in the Namespace").detail(detail);
        finding.scopes = deletion.scopes(&object);
        finding
    };
    if cx.mode_of(&warning(&CONTENT, String::new())) == Mode::Off {
        return;
    }
    let raw = cx.stored.map(Stored::raw).filter(|_| deletion.object == object);
    let Some(content) = content::survey(cx.inventory, facts, meta, raw, cx.thorough) else {
        return;
    };
    // Whoever deletes something else hears only of the data and the addresses that go with an approved Namespace.
    let is_part = refusal.is_none() && deletion.object != object;
    if is_part && content.precious.is_empty() && content.bound_volumes.is_some() && content.load_balancers.is_some() {
        return;
    }
    if !is_part {
        findings.extend(content.obstacles().into_iter().map(|line| warning(&OBSTACLE, line)));
    }
    if let Some(refusal) = refusal {
        refusal.notes = content.notes(&meta.name);
        return;
    }
    findings.extend(content.taken_along(&meta.name).map(|line| warning(&CONTENT, line)));
    let not_all = |line| warning(&NOT_READ, format!("what is in Namespace {} was not all read: {line}", meta.name));
    findings.extend(content.unread().map(not_all));
}

/// A Namespace on another cluster: nobody here can read its approval.
fn elsewhere(cx: &Context<'_>, deletion: &Deletion, item: &Item) -> Finding {
    let (label, cluster) = (item.label(), cx.inventory.cluster_name(item.cluster));
    Finding::new(&NOT_APPROVED, Severity::Warn, deletion.object.clone(), "a Namespace on another cluster goes too")
        .detail(format!("{label} on {cluster} goes too; only the guard of that cluster can ask for an approval"))
        // A Namespace of that name is judged alike on every cluster.
        .judged_in(deletion.scopes(item.object.as_ref().unwrap_or(&deletion.object)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::rules::testing::{World, delete, details};

    fn namespace(annotations: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "shop", "uid": "7", "annotations": annotations}})
    }

    #[test]
    fn namespace_goes_when_it_is_approved_and_not_before() {
        let judged = |annotations: &Value| {
            let shop = namespace(annotations);
            let world = World::new("rules: {namespaceApproval: {mode: enforce}}").with(std::slice::from_ref(&shop));
            world.judge(&delete("alice", &shop))
        };
        let refused = judged(&json!({}));
        assert!(!refused.allowed() && details(&refused)[0].starts_with("Namespace shop: "), "{refused:?}");
        let approved = judged(&json!({
            "cascade-guard.io/deletion-approved-by": "bob", "cascade-guard.io/deletion-approved-uid": "7",
            "cascade-guard.io/deletion-approved-until": "2026-11-29T13:00:00Z",
            "cascade-guard.io/deletion-reason": "CHG-1",
        }));
        assert!(approved.allowed(), "{approved:?}");
    }
}
