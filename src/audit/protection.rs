//! The protection of Namespaces: exemptions, overrides and a ceiling that weaken it, and approvals that lift it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AuditInput, Options};
use crate::judge::View;
use cascade_guard_core::{
    inventory::{Inventory, LOCAL},
    namespace::approval,
    object::{ObjectMeta, ObjectRef},
    policy::{Mode, Policy, Resolved, RuleKey, Subject},
};

/// The rules that stand between a Namespace and its end.
pub const PROTECTING: [RuleKey; 3] = [RuleKey::NamespaceApproval, RuleKey::SharedClaim, RuleKey::ControlPlane];

/// A Namespace with Applications in it and less protection than the rules give elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unprotected {
    /// Name of the Namespace; empty where the ceiling takes the protection from all of them.
    pub namespace: String,
    /// Key of the rule in the policy.
    pub rule: String,
    /// The mode in force.
    pub mode: Mode,
    /// `exemption`, `override` or `ceiling`.
    pub cause: String,
    /// The line of the policy that decided.
    pub decided_by: String,
    /// Applications that claim something in it or deploy there.
    pub applications: usize,
}

/// Finds the Namespaces without protection. A ceiling that weakens all of them is listed once.
pub(super) fn unprotected<V: View, S>(input: &AuditInput<'_, V, S>, options: &Options) -> Vec<Unprotected> {
    let policy = input.policy;
    input.view.with(|inventory| {
        let inhabitants = inhabitants(inventory);
        let everywhere = PROTECTING.into_iter().filter_map(|rule| {
            // Where nothing matches, only the rule's own mode and the ceiling decide.
            let nowhere = Subject { namespace: "", labels: None, project: None, user: "" };
            let resolved = policy.resolve(rule, &nowhere, input.now);
            (resolved.decided_by.starts_with("mode ceiling"))
                .then(|| row("", rule, &resolved, "ceiling", inhabitants.values().map(BTreeSet::len).sum()))
        });
        let mut found: Vec<Unprotected> = everywhere.collect();
        for (namespace, applications) in &inhabitants {
            let labels = inventory.namespace(namespace).map(|meta| &meta.labels);
            let subject = Subject { namespace, labels, project: None, user: &options.user };
            for rule in PROTECTING {
                let resolved = policy.resolve(rule, &subject, input.now);
                let cause = if resolved.exempt {
                    "exemption"
                } else if resolved.decided_by.starts_with("overrides[") && resolved.mode < Mode::Enforce {
                    "override"
                } else {
                    continue;
                };
                found.push(row(namespace, rule, &resolved, cause, applications.len()));
            }
        }
        found
    })
}

fn row(namespace: &str, rule: RuleKey, resolved: &Resolved, cause: &str, applications: usize) -> Unprotected {
    Unprotected {
        namespace: namespace.to_owned(),
        rule: rule.as_str().to_owned(),
        mode: resolved.mode,
        cause: cause.to_owned(),
        decided_by: resolved.decided_by.clone(),
        applications,
    }
}

/// Namespaces of the guard's own cluster with Applications that deploy or claim something there, by name.
fn inhabitants(inventory: &Inventory) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |namespace: &str, app: String| {
        if inventory.namespace(namespace).is_some_and(|meta| !meta.is_terminating()) {
            found.entry(namespace.to_owned()).or_default().insert(app);
        }
    };
    for (_, app) in inventory.applications().filter(|(_, app)| app.cluster == LOCAL) {
        add(&app.destination.namespace, app.path());
        // An Application's claims are in few buckets, and neighbours often share one.
        let mut last = None;
        for claim in app.claims.iter().filter(|claim| app.claims_class(claim.class)) {
            if last.replace(claim.bucket) != Some(claim.bucket) {
                let bucket = inventory.claims().bucket(claim.bucket);
                if *bucket.namespace != *app.destination.namespace {
                    add(&bucket.namespace, app.path());
                }
            }
        }
    }
    found
}

/// An approval on a Namespace, and whether it is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditedApproval {
    /// Name of the Namespace.
    pub namespace: String,
    /// Who approved.
    pub by: String,
    /// When it ends, as written.
    pub until: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it is valid now.
    pub state: ApprovalValidity,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Whether an approval is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalValidity {
    /// It can never become valid as it is written.
    Broken,
    /// It was valid and has ended.
    Expired,
    /// It is valid, but not for much longer.
    Ending,
    /// It is valid, and the Namespace was not deleted yet.
    Pending,
}

/// Lists every approval; those that need attention come first.
pub(super) fn approvals<V: View, S>(input: &AuditInput<'_, V, S>, options: &Options) -> Vec<AuditedApproval> {
    let namespaces = input.objects.iter().filter(|subject| subject.object.is_namespace());
    let mut found: Vec<AuditedApproval> =
        namespaces.filter_map(|subject| approval_on(&subject.meta, input.now, input.policy, options)).collect();
    found.sort_by(|a, b| (a.state, &a.namespace).cmp(&(b.state, &b.namespace)));
    found
}

fn approval_on(meta: &ObjectMeta, now: Timestamp, policy: &Policy, options: &Options) -> Option<AuditedApproval> {
    let approval = approval::Approval::read(meta);
    if approval.is_absent() {
        return None;
    }
    let problems = approval.problems(meta, now, policy);
    let expired = |problem: &approval::Problem| matches!(problem, approval::Problem::Expired { .. });
    let state = if problems.iter().any(|problem| !expired(problem)) {
        ApprovalValidity::Broken
    } else if !problems.is_empty() {
        ApprovalValidity::Expired
    } else if approval.end().is_some_and(|end| end.duration_since(now) <= options.ending_within) {
        ApprovalValidity::Ending
    } else {
        ApprovalValidity::Pending
    };
    Some(AuditedApproval {
        namespace: meta.name.clone(),
        by: approval.by.to_owned(),
        until: approval.until.to_owned(),
        reason: approval.reason.to_owned(),
        state,
        problems: problems.iter().map(ToString::to_string).collect(),
    })
}

impl AuditedApproval {
    /// The Namespace that carries it.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespace(&self.namespace)
    }
}
