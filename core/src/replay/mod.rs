//! Judges recorded requests by a policy: what it would have refused, and what another policy would change.

mod cluster;
mod read;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

pub use self::{
    cluster::{Judge, ReplayedCluster},
    read::{Event, EventObject, ReadError, Recorded, Recording, read},
};
use crate::{
    admission::{self, Request},
    decision::{Decision, Outcome, render},
    judge::{Case, judge_at_hand},
    object::ObjectRef,
    snapshot::Snapshot,
};

/// What came of a replay.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// How many requests were judged.
    pub judged: usize,
    /// How many could not be, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, usize>,
    /// Decisions under the policy, by rule and decision. A request that nothing was found about counts as `allow`.
    pub decisions: Vec<Tally>,
    /// The same under the other policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions_against: Vec<Tally>,
    /// What the policy would refuse.
    pub refused: Vec<Row>,
    /// What the other policy would answer differently.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// How often a rule decided something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Rule id; empty for plain allows.
    pub rule: String,
    /// `allow`, `warn`, `would-deny`, `break-glass` or `deny`.
    pub decision: &'static str,
    /// In how many requests.
    pub requests: usize,
}

/// A request and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// File and number.
    pub place: String,
    /// Operation.
    pub operation: &'static str,
    /// What it is about.
    pub object: ObjectRef,
    /// Who made it.
    pub user: String,
    /// What became of it.
    pub verdict: Verdict,
}

/// An answer, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// `allow`, `warn`, `would-deny`, `break-glass` or `deny`.
    pub decision: &'static str,
    /// Rules that had something to say.
    pub rules: Vec<String>,
    /// What each of them decided: where one refuses, another may only warn.
    pub by_rule: BTreeMap<String, &'static str>,
    /// What those said whose word the decision is.
    pub details: Vec<String>,
}

impl Verdict {
    /// The rules whose word the decision is.
    pub fn deciding(&self) -> Vec<&str> {
        let all = self.by_rule.iter().filter(|(_, word)| **word == self.decision);
        all.map(|(rule, _)| rule.as_str()).collect()
    }
}

/// A request that the other policy answers differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The request under the policy.
    #[serde(flatten)]
    pub row: Row,
    /// What the other policy makes of it.
    pub against: Verdict,
}

/// Replays requests. With `build` the cluster follows what was admitted; without, it stays as it is.
pub fn replay(
    requests: &[Recorded],
    cluster: &mut ReplayedCluster,
    policy: &mut Judge,
    mut against: Option<&mut Judge>,
    build: bool,
    now: Timestamp,
) -> Replay {
    let mut result = Replay::default();
    let (mut tally, mut tally_against) = (BTreeMap::new(), BTreeMap::new());
    for recorded in requests {
        let request = match admission::decode(&recorded.review) {
            Ok(request) => request,
            Err(error) => {
                *result.left_out.entry(format!("{error}")).or_default() += 1;
                continue;
            }
        };
        let at = recorded.at.unwrap_or(now);
        let verdict = answer(&request, cluster.snapshot(), policy, at);
        result.judged += 1;
        count(&mut tally, &verdict);
        let row = || Row {
            place: recorded.place.clone(),
            operation: request.operation.as_str(),
            object: request.target.clone(),
            user: request.user.username.clone(),
            verdict: verdict.clone(),
        };
        if verdict.decision == "deny" {
            result.refused.push(row());
        }
        if let Some(other) = against.as_deref_mut() {
            let other = answer(&request, cluster.snapshot(), other, at);
            count(&mut tally_against, &other);
            if other.decision != verdict.decision || other.rules != verdict.rules {
                result.changes.push(Change { row: row(), against: other });
            }
        }
        if build && recorded.admitted {
            match cluster.apply(&request, at) {
                Ok(Some(object)) => {
                    policy.follow(cluster, &object);
                    if let Some(other) = against.as_deref_mut() {
                        other.follow(cluster, &object);
                    }
                }
                Ok(None) => {}
                Err(error) => *result.left_out.entry(format!("not part of the world: {error}")).or_default() += 1,
            }
        }
    }
    result.decisions = tallies(tally);
    result.decisions_against = tallies(tally_against);
    result
}

type Tallies = BTreeMap<(String, &'static str), usize>;

fn count(tally: &mut Tallies, verdict: &Verdict) {
    if verdict.rules.is_empty() {
        *tally.entry((String::new(), verdict.decision)).or_default() += 1;
    }
    for (rule, word) in &verdict.by_rule {
        *tally.entry((rule.clone(), *word)).or_default() += 1;
    }
}

fn tallies(tally: Tallies) -> Vec<Tally> {
    tally.into_iter().map(|((rule, decision), requests)| Tally { rule, decision, requests }).collect()
}

fn answer(request: &Request<'_>, source: &Snapshot, judged_by: &Judge, at: Timestamp) -> Verdict {
    let Judge { policy, inventory } = judged_by;
    let decision = judge_at_hand(Case::new(request, policy, at), inventory, source).decision;
    verdict(&decision, request)
}

/// The decision in the words that the audit annotations use.
fn verdict(decision: &Decision, request: &Request<'_>) -> Verdict {
    let annotations = render(decision, request).audit_annotations;
    let word = annotations.get("decision").map(String::as_str);
    let decided = ["deny", "break-glass", "would-deny", "warn"].into_iter().find(|known| Some(*known) == word);
    let decided = decided.unwrap_or("allow");
    let mut rules: Vec<String> = Vec::new();
    let mut strongest: BTreeMap<&str, &Outcome> = BTreeMap::new();
    let mut details = Vec::new();
    // An approval that let it pass is evidence, and nothing that two policies differ in.
    for outcome in decision.said().filter(|outcome| outcome.finding.evidence.is_none()) {
        let finding = &outcome.finding;
        let id = finding.rule.id;
        if !rules.iter().any(|rule| rule == id) {
            rules.push(id.to_owned());
        }
        let weight = |outcome: &Outcome| (outcome.effect, outcome.finding.severity);
        if strongest.get(id).is_none_or(|before| weight(outcome) > weight(before)) {
            strongest.insert(id, outcome);
        }
        if outcome.word() == decided {
            details.push(if finding.detail.is_empty() { finding.summary.clone() } else { finding.detail.clone() });
        }
    }
    details.truncate(5);
    let by_rule = strongest.into_iter().map(|(rule, outcome)| (rule.to_owned(), outcome.word())).collect();
    Verdict { decision: decided, rules, by_rule, details }
}
