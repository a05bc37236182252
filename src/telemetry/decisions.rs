//! One log line for every decision that is not a plain allow.
//!
//! Argo CD tries a refused delete again and again. Repeats of the same decision are collapsed: the first is logged at
//! once, the others are counted, and the count follows with the next line or when the window is over. Counters in the
//! metrics are not collapsed.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    admission::Request,
    decision::{Decision, Effect},
    object::ObjectRef,
};

/// For so long repeats of the same decision are only counted.
pub const WINDOW: Duration = Duration::from_secs(600);
/// So many decisions are told apart at a time. What comes beyond is logged without being collapsed.
const MAX_TRACKED: usize = 4096;
/// So many claimants are named in a line.
const MAX_CLAIMANTS: usize = 20;

/// What makes two decisions the same to a reader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Same {
    rule: String,
    decision: &'static str,
    operation: &'static str,
    object: ObjectRef,
    user: String,
}

#[derive(Debug)]
struct Seen {
    since: Instant,
    repeats: u64,
}

/// Logs decisions.
#[derive(Debug, Default)]
pub struct DecisionLog {
    seen: Mutex<HashMap<Same, Seen>>,
}

impl DecisionLog {
    /// Logs the decision on `request`, which came in at `path`, unless it is a plain allow, a dry run or a repeat.
    pub fn record(&self, request: &Request<'_>, decision: &Decision, path: &str, took: Duration, now: Instant) {
        let Some(worst) = decision.worst() else { return };
        if request.dry_run {
            return;
        }
        let same = Same {
            rule: unique(decision.said().map(|outcome| outcome.finding.rule.id), usize::MAX),
            decision: worst.word(),
            operation: request.operation.as_str(),
            object: request.target.clone(),
            user: request.user.username.clone(),
        };
        let Some(repeats) = self.admit(&same, now) else { return };
        let claimants = decision.said().flat_map(|outcome| outcome.finding.claimants.iter().map(String::as_str));
        let claimants = unique(claimants, MAX_CLAIMANTS);
        let checks = unique(decision.said().map(|outcome| outcome.finding.check), usize::MAX);
        let approved_by = unique(decision.said().map(|outcome| outcome.finding.approved_by.as_str()), MAX_CLAIMANTS);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    rule = same.rule,
                    check = checks,
                    decision = same.decision,
                    mode = worst.resolved.mode.as_str(),
                    decided_by = worst.resolved.decided_by,
                    operation = same.operation,
                    kind = %same.object.kind,
                    object = same.object.path(),
                    claimants,
                    approved_by,
                    break_glass = decision.break_glass.as_ref().map_or("", |glass| glass.reason.as_str()),
                    user = same.user,
                    uid = request.uid,
                    path,
                    duration_seconds = took.as_secs_f64(),
                    repeats,
                    "decision"
                )
            };
        }
        if worst.effect >= Effect::BrokeGlass {
            line!(warn);
        } else {
            line!(info);
        }
    }

    /// Says how often decisions were repeated whose window is over. Called now and then, so that no count is lost.
    pub fn sweep(&self, now: Instant) {
        for (same, repeats) in self.expire(now) {
            tracing::info!(
                rule = same.rule,
                decision = same.decision,
                operation = same.operation,
                kind = %same.object.kind,
                object = same.object.path(),
                user = same.user,
                repeats,
                "decision repeated"
            );
        }
    }

    /// Whether to log this decision, and how many like it were left out since the last line.
    fn admit(&self, same: &Same, now: Instant) -> Option<u64> {
        let mut seen = self.seen.lock();
        if let Some(entry) = seen.get_mut(same) {
            if now.duration_since(entry.since) < WINDOW {
                entry.repeats += 1;
                return None;
            }
            entry.since = now;
            return Some(std::mem::take(&mut entry.repeats));
        }
        if seen.len() < MAX_TRACKED {
            seen.insert(same.clone(), Seen { since: now, repeats: 0 });
        }
        Some(0)
    }

    /// Takes out what has not come again for a whole window, and gives back what was repeated within it.
    fn expire(&self, now: Instant) -> Vec<(Same, u64)> {
        let mut seen = self.seen.lock();
        let over: Vec<Same> = seen
            .iter()
            .filter(|(_, entry)| now.duration_since(entry.since) >= WINDOW)
            .map(|(same, _)| same.clone())
            .collect();
        let removed = over.into_iter().filter_map(|same| seen.remove(&same).map(|entry| (same, entry.repeats)));
        removed.filter(|(_, repeats)| *repeats > 0).collect()
    }
}

/// The values, each once, with commas; what is over `max` is counted.
fn unique<'a>(values: impl Iterator<Item = &'a str>, max: usize) -> String {
    let mut found: Vec<&str> = Vec::new();
    for value in values {
        if !value.is_empty() && !found.contains(&value) {
            found.push(value);
        }
    }
    let more = found.len().saturating_sub(max);
    found.truncate(max);
    let text = found.join(",");
    if more > 0 { format!("{text},+{more}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(object: &str) -> Same {
        Same {
            rule: "shared-claim".to_owned(),
            decision: "deny",
            operation: "DELETE",
            object: ObjectRef::application("argocd", object),
            user: "alice".to_owned(),
        }
    }

    #[test]
    fn repeats_are_counted_and_not_lost() {
        let log = DecisionLog::default();
        let start = Instant::now();
        assert_eq!(log.admit(&refusal("a"), start), Some(0));
        assert_eq!(log.admit(&refusal("a"), start), None);
        assert_eq!(log.admit(&refusal("a"), start), None);
        assert_eq!(log.admit(&refusal("b"), start), Some(0));
        assert_eq!(log.admit(&refusal("a"), start + WINDOW), Some(2));
        assert_eq!(log.admit(&refusal("a"), start + WINDOW), None);
        assert_eq!(log.expire(start + WINDOW + WINDOW), vec![(refusal("a"), 1)]);
        assert_eq!(log.admit(&refusal("a"), start + WINDOW + WINDOW), Some(0));
    }

    #[test]
    fn tracked_decisions_are_bounded_and_the_rest_is_logged() {
        let log = DecisionLog::default();
        let start = Instant::now();
        for number in 0..MAX_TRACKED {
            assert_eq!(log.admit(&refusal(&number.to_string()), start), Some(0));
        }
        assert_eq!(log.admit(&refusal("beyond"), start), Some(0));
        assert_eq!(log.admit(&refusal("beyond"), start), Some(0));
        assert_eq!(log.seen.lock().len(), MAX_TRACKED);
    }

    #[test]
    fn values_are_named_once_and_counted_beyond() {
        assert_eq!(unique(["a", "", "b", "a"].into_iter(), 5), "a,b");
        assert_eq!(unique(["a", "b", "c"].into_iter(), 2), "a,b,+1");
    }
}
