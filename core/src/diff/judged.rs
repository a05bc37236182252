//! What the webhook would say of the requests that follow a merge.

use serde_json::{Value, json};

use super::{Changes, Piece, finding, world::World};
use crate::{
    admission::{UserInfo, decode, delete_review},
    argo::application::cascades,
    decision::{Effect, Outcome, Severity},
    deletion::Deletion,
    judge::{Case, Verdict, judge_at_hand},
    object::{ARGO_GROUP, ObjectRef},
    report::ReportFinding,
};

/// Puts requests to the webhook's judgement.
#[derive(Debug)]
pub struct Judge<'w> {
    world: &'w World<'w>,
    user: UserInfo,
}

impl<'w> Judge<'w> {
    /// Over this cluster, in the name of Argo CD.
    pub fn new(world: &'w World<'w>) -> Self {
        let argocd = world.policy.spec.identities.argocd.first();
        let user = UserInfo { username: argocd.cloned().unwrap_or_default(), ..UserInfo::default() };
        Self { world, user }
    }

    /// A DELETE of an object, as the cluster has it. `None` if it is not there, or cannot be read.
    pub fn delete(&self, object: &ObjectRef) -> Option<(Vec<Outcome>, Option<Deletion>)> {
        let raw = self.world.snapshot.json_of(object)?;
        let body = delete_review(object, &raw, &self.user).ok()?;
        let Verdict { decision, deletion } = self.judge(&body)?;
        Some((decision.outcomes.into_iter().filter(|outcome| outcome.effect != Effect::Dropped).collect(), deletion))
    }

    fn judge(&self, body: &[u8]) -> Option<Verdict> {
        let request = decode(body).ok()?;
        let World { inventory, policy, now, snapshot, .. } = self.world;
        Some(judge_at_hand(Case { thorough: true, ..Case::new(&request, policy, *now) }, inventory, snapshot))
    }

    /// Updates of objects that others claim, of Applications and of ApplicationSets.
    pub fn updates(&self, changes: &Changes<'_>, findings: &mut Vec<ReportFinding>) {
        for (folder, old, new) in &changes.changed {
            if old.object.is_application() {
                application(old, new, findings);
            }
            let live =
                self.world.snapshot.json_of(&old.object).and_then(|raw| serde_json::from_str::<Value>(&raw).ok());
            let Some(live) = live else { continue };
            // A sync keeps what it does not set, and writes its own marker.
            let mut wanted = new.value.clone();
            for kept in ["uid", "ownerReferences"] {
                if !live["metadata"][kept].is_null() {
                    wanted["metadata"][kept] = live["metadata"][kept].clone();
                }
            }
            if !live["status"].is_null() {
                wanted["status"] = live["status"].clone();
            }
            let wanted = super::world::marked(wanted, &old.object, &self.world.known[*folder]);
            let object = &old.object;
            let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
                "uid": "diff", "operation": "UPDATE", "dryRun": true,
                "kind": {"group": object.kind.group, "version": "v1", "kind": object.kind.kind},
                "name": object.name, "namespace": object.namespace, "userInfo": self.user,
                "object": wanted, "oldObject": live,
            }});
            let Some(verdict) = self.judge(review.to_string().as_bytes()) else { continue };
            let outcomes = verdict.decision.outcomes.iter().filter(|outcome| outcome.effect != Effect::Dropped);
            findings.extend(
                outcomes
                    .filter(|outcome| outcome.finding.rule.id == "shared-update")
                    .map(|outcome| ReportFinding::new(&outcome.finding).at(new.location.clone())),
            );
        }
    }
}

/// What a changed manifest of an Application means for what it deployed.
fn application(old: &Piece, new: &Piece, findings: &mut Vec<ReportFinding>) {
    let (before, after) = (cascades(&old.meta.finalizers), cascades(&new.meta.finalizers));
    if before != after {
        let (summary, detail) = if after {
            (
                "an Application is given a finalizer by which its deletion takes its objects",
                format!("{} will take all its objects along when it is deleted", new.object),
            )
        } else {
            (
                "an Application loses the finalizer by which its deletion takes its objects",
                format!("{} will leave all its objects behind when it is deleted", new.object),
            )
        };
        let mut found = finding("finalizer", Severity::Warn, new, summary, detail);
        found.remedies.push("check that this is what is meant before the Application is deleted".into());
        findings.push(found);
    }
    let (before, after) = (&old.value["spec"], &new.value["spec"]);
    for (field, what) in [
        ("destination", "what it deployed stays where it is, and nobody manages it any more"),
        ("project", "objects that the new project does not permit are neither synced nor pruned"),
    ] {
        if before[field] != after[field] {
            let summary = "an Application is pointed elsewhere";
            let detail = format!("{} has another {field}: {what}", new.object);
            findings.push(finding("repointed", Severity::Warn, new, summary, detail));
        }
    }
    let sources = |spec: &Value| {
        let list = spec["sources"].as_array().cloned().unwrap_or_else(|| vec![spec["source"].clone()]);
        list.iter()
            .map(|source| [&source["repoURL"], &source["path"], &source["chart"]].map(Clone::clone))
            .collect::<Vec<_>>()
    };
    if sources(before) != sources(after) {
        let summary = "an Application is pointed elsewhere";
        let detail =
            format!("{} has another source: what the old one rendered and the new one does not is pruned", new.object);
        findings.push(finding("repointed", Severity::Warn, new, summary, detail));
    }
}

/// Whether an object is an Application or a set of them.
pub fn deploys(object: &ObjectRef) -> bool {
    object.kind.is(ARGO_GROUP, "Application") || object.kind.is(ARGO_GROUP, "ApplicationSet")
}
