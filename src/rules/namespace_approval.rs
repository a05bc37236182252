//! `namespace-approval`: a Namespace goes only after someone who may say so has said so.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    Context, Deletion, Rule, RuleMeta,
    approval::{Approval, how_to_approve, problems_at_delete},
};
use crate::{
    admission::{Operation, Request},
    decision::{Finding, Severity},
    facts::Reading,
    inventory::LOCAL,
    object::{ObjectMeta, ObjectRef},
    plan::{Explanation, Fate, Via},
    policy::RuleKey,
};

static META: RuleMeta = RuleMeta {
    id: "namespace-approval",
    key: RuleKey::NamespaceApproval,
    summary: "a Namespace goes only with a valid approval on it",
    docs: "docs/rules/namespace-approval.md",
    operations: &[Operation::Delete],
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

    fn check(&self, cx: &Context<'_>, findings: &mut Vec<Finding>) {
        let Some(deletion) = cx.deletion() else { return };
        if !deletion.judged {
            return;
        }
        for item in &deletion.plan.items {
            if !item.kind.is("", "Namespace") || matches!(item.fate, Fate::Spared(_)) {
                continue;
            }
            if item.cluster != LOCAL {
                findings.push(elsewhere(cx, deletion, item.label().as_str(), cx.inventory.cluster_name(item.cluster)));
                continue;
            }
            let object = match &item.object {
                Some(object) => object.clone(),
                None => ObjectRef::namespace("?"),
            };
            let meta = if item.via == Via::Root { Some(Ok(deletion.meta.clone())) } else { read(cx, &object) };
            match meta {
                None => {}
                Some(Ok(meta)) if meta.is_terminating() => {}
                Some(Ok(meta)) => judge(cx, deletion, &object, &meta, findings),
                Some(Err(reason)) => {
                    let mut finding = Finding::new(&META, Severity::Deny, object.clone(), SUMMARY)
                        .detail(format!("{object}: whether it was approved cannot be read ({reason})"))
                        .remedy("try again; if it stays so, look at the log of cascade-guard");
                    finding.scopes = deletion.scopes(&object);
                    findings.push(finding);
                }
            }
        }
    }
}

const SUMMARY: &str = "a Namespace that was not approved would be deleted, with everything in it";

fn read(cx: &Context<'_>, object: &ObjectRef) -> Option<Result<ObjectMeta, String>> {
    Some(match cx.facts.metadata(object)? {
        Reading::Found(meta) => Ok((*meta).clone()),
        // An Application lists it as synced, or it would have been spared: list and read contradict.
        Reading::NotFound => Ok(ObjectMeta { name: object.name.clone(), ..ObjectMeta::default() }),
        Reading::Unreadable(reason) | Reading::Forbidden(reason) => Err(reason),
    })
}

fn judge(cx: &Context<'_>, deletion: &Deletion, object: &ObjectRef, meta: &ObjectMeta, findings: &mut Vec<Finding>) {
    let problems = problems_at_delete(meta, judged_at(cx, deletion), cx.policy, &cx.request.user.username);
    if problems.is_empty() {
        return;
    }
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let mut finding = Finding::new(&META, Severity::Deny, object.clone(), SUMMARY).detail(format!(
        "{object}: {}{}",
        problems.join("; "),
        inhabitants(cx, &object.name)
    ));
    finding.remedies.extend(how_to_approve(meta, cx.now, cx.policy));
    finding.scopes = deletion.scopes(object);
    Approval::read(meta).by.clone_into(&mut finding.approved_by);
    findings.push(finding);
}

/// Below an admitted cascade an approval is judged at the time the cascade began, so that one which ends half-way strands
/// nothing.
fn judged_at(cx: &Context<'_>, deletion: &Deletion) -> Timestamp {
    match deletion.explanation {
        Explanation::Cascade(id) => {
            cx.inventory.app(id).and_then(|app| app.terminating).map_or(cx.now, |began| began.min(cx.now))
        }
        _ => cx.now,
    }
}

/// Who lives in a Namespace: Applications that claim something there or deploy there.
fn inhabitants(cx: &Context<'_>, namespace: &str) -> String {
    let inventory = cx.inventory;
    let mut apps: BTreeSet<String> = BTreeSet::new();
    let mut objects = 0;
    for (id, bucket) in inventory.claims().in_namespace(LOCAL, namespace) {
        for app in bucket.apps().filter_map(|app| inventory.app(app)) {
            objects += app.claims.iter().filter(|claim| claim.bucket == id && app.claims_class(claim.class)).count();
            apps.insert(app.path());
        }
    }
    let deploying = inventory.applications_to(namespace).iter().filter_map(|id| inventory.app(*id));
    apps.extend(deploying.filter(|app| app.cluster == LOCAL).map(crate::inventory::App::path));
    if apps.is_empty() {
        return String::new();
    }
    let count = apps.len();
    let named: Vec<String> = apps.into_iter().take(3).collect();
    let more = if count > named.len() { format!(" and {} more", count - named.len()) } else { String::new() };
    format!("; {objects} claimed objects of {}{more} are in it", named.join(", "))
}

/// A Namespace on another cluster: nobody here can read its approval.
fn elsewhere(cx: &Context<'_>, deletion: &Deletion, label: &str, cluster: &str) -> Finding {
    let mut finding =
        Finding::new(&META, Severity::Warn, deletion.object.clone(), "a Namespace on another cluster goes too")
            .detail(format!("{label} on {cluster} goes too; only the guard of that cluster can ask for an approval"));
    finding.scopes = deletion.scopes(&cx.request.target);
    finding
}
