//! A small world for the tests of rules.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    admission::decode,
    decision::{Decision, Effect},
    facts::{Answer, Question, Reading},
    judge::{AtHand, Case, judge_at_hand},
    policy::{Mode, Policy},
    snapshot::Snapshot,
};

/// The time it is in every test.
pub(super) const NOW: &str = "2026-11-29T12:00:00Z";

/// A policy, a cluster, and who may approve in it.
pub(super) struct World {
    policy: Policy,
    snapshot: Snapshot,
    approvers: Option<BTreeSet<String>>,
}

impl World {
    /// An empty cluster under the policy with this spec.
    pub(super) fn new(policy: &str) -> Self {
        let policy = Policy::new(serde_saphyr::from_str(policy).unwrap()).unwrap();
        Self { policy, snapshot: Snapshot::default(), approvers: Some(BTreeSet::new()) }
    }

    /// Under this ceiling.
    pub(super) fn under(mut self, ceiling: Mode) -> Self {
        self.policy = self.policy.with_ceiling(ceiling);
        self
    }

    /// With these objects in it.
    pub(super) fn with(mut self, objects: &[Value]) -> Self {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.snapshot = Snapshot::parse("test", list.to_string()).unwrap();
        self
    }

    /// With the right to approve for one more user.
    pub(super) fn may_approve(mut self, user: &str) -> Self {
        self.approvers.get_or_insert_default().insert(user.to_owned());
        self
    }

    /// Where nobody answers SubjectAccessReviews.
    pub(super) fn without_access_reviews(mut self) -> Self {
        self.approvers = None;
        self
    }

    /// Judges an AdmissionReview.
    pub(super) fn judge(&self, review: &Value) -> Decision {
        let body = review.to_string();
        let request = decode(body.as_bytes()).unwrap();
        let inventory = self.snapshot.inventory(&self.policy, (1, 2));
        judge_at_hand(Case::new(&request, &self.policy, NOW.parse().unwrap()), &inventory, self).decision
    }
}

impl AtHand for World {
    fn reply(&self, question: &Question) -> Answer {
        let Question::Access(access) = question else { return self.snapshot.reply(question) };
        assert_eq!(
            (access.verb.as_str(), access.group.as_str(), access.resource.as_str()),
            ("approve", "cascade-guard.io", "namespacedeletions")
        );
        Answer::Access(match &self.approvers {
            Some(approvers) => Reading::Found(approvers.contains(&access.user.username)),
            None => Reading::Unreadable("no answer".to_owned()),
        })
    }
}

/// What the decision says of single objects, dropped findings aside.
pub(super) fn details(decision: &Decision) -> Vec<String> {
    let said = decision.outcomes.iter().filter(|outcome| outcome.effect != Effect::Dropped);
    said.map(|outcome| outcome.finding.detail.clone()).collect()
}

/// A review of an UPDATE.
pub(super) fn update(user: &str, old: &Value, new: &Value) -> Value {
    review("UPDATE", user, old, new)
}

/// A review of a CREATE.
pub(super) fn create(user: &str, new: &Value) -> Value {
    review("CREATE", user, &Value::Null, new)
}

/// A review of a DELETE.
pub(super) fn delete(user: &str, old: &Value) -> Value {
    review("DELETE", user, old, &Value::Null)
}

fn review(operation: &str, user: &str, old: &Value, new: &Value) -> Value {
    let some = if new.is_null() { old } else { new };
    let api_version = some["apiVersion"].as_str().unwrap();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": operation, "kind": {"group": group, "kind": some["kind"]},
        "name": some["metadata"]["name"], "namespace": some["metadata"]["namespace"],
        "userInfo": {"username": user}, "object": new, "oldObject": old}})
}
