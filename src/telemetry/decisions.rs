//! One log line for every decision that is not a plain allow.
//!
//! Argo CD tries a refused delete again and again. Repeats of the same decision are collapsed: the first is logged at
//! once, the others are counted, and the count follows with the next line or when the window is over. Counters in the
//! metrics are not collapsed. Bodies that cannot be judged are collapsed likewise.

use std::time::{Duration, Instant};

use super::repeats::Repeats;
use cascade_guard_core::{
    admission::Request,
    decision::{Decision, Effect},
    object::ObjectRef,
};

pub use super::repeats::WINDOW;

/// So many decisions are told apart at a time. What comes beyond is logged without being collapsed.
const MAX_TRACKED: usize = 4096;
/// So many kinds of bad bodies are told apart at a time. What comes beyond is collapsed into one: whoever sends them can
/// think of ever new ones.
const MAX_BODIES: usize = 32;
/// So many claimants are named in a line.
const MAX_CLAIMANTS: usize = 20;

/// What makes two decisions the same to a reader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Same {
    rule: String,
    check: String,
    decision: &'static str,
    operation: &'static str,
    object: ObjectRef,
    user: String,
}

/// What makes two bodies that could not be judged the same to a reader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BadBody {
    path: String,
    reason: String,
}

/// Logs decisions.
#[derive(Debug, Default)]
pub struct DecisionLog {
    seen: Repeats<Same, MAX_TRACKED>,
    bodies: Repeats<BadBody, MAX_BODIES>,
    other_bodies: Repeats<(), 1>,
}

impl DecisionLog {
    /// Logs the decision on `request`, which came in at a path, from a client that has shown a certificate of this name (empty
    /// where nobody is asked for one, so that anybody may have sent it), unless it is a plain allow, a dry run or a repeat.
    pub fn record(&self, request: &Request<'_>, decision: &Decision, from: (&str, &str), took: Duration, now: Instant) {
        let (path, client) = from;
        let Some(worst) = decision.worst() else { return };
        if request.dry_run {
            return;
        }
        let same = Same {
            rule: unique(decision.recorded().map(|outcome| outcome.finding.rule.id), usize::MAX),
            check: unique(decision.recorded().map(|outcome| outcome.finding.check.id), usize::MAX),
            decision: worst.word(),
            operation: request.operation.as_str(),
            object: request.target.clone(),
            user: request.user.username.clone(),
        };
        let Some(repeats) = self.seen.admit(&same, now) else { return };
        let claimants = decision.recorded().flat_map(|outcome| outcome.finding.claimants.iter().map(String::as_str));
        let claimants = unique(claimants, MAX_CLAIMANTS);
        let approved_by =
            unique(decision.recorded().map(|outcome| outcome.finding.approved_by.as_str()), MAX_CLAIMANTS);
        let evidence = || decision.recorded().filter_map(|outcome| outcome.finding.evidence.as_ref());
        let approved_until = unique(evidence().map(|evidence| evidence.until.as_str()), MAX_CLAIMANTS);
        let reason = unique(evidence().map(|evidence| evidence.reason.as_str()), MAX_CLAIMANTS);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    rule = same.rule,
                    check = same.check,
                    decision = same.decision,
                    mode = worst.resolved.mode.as_str(),
                    decided_by = worst.resolved.decided_by,
                    operation = same.operation,
                    kind = %same.object.kind,
                    object = same.object.path(),
                    claimants,
                    approved_by,
                    approved_until,
                    reason,
                    break_glass = decision.break_glass.as_ref().map_or("", |glass| glass.reason.as_str()),
                    user = same.user,
                    uid = request.uid,
                    path,
                    client,
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

    /// Logs a body that came in at `path` and is no review, for a reason that quotes nothing of it, unless it is a repeat.
    pub fn record_no_review(&self, path: &str, reason: &str, now: Instant) {
        if let Some((others, repeats)) = self.admit_body(path, reason, now) {
            tracing::warn!(path, reason, repeats, others, "a body was no AdmissionReview; it was answered with 400");
        }
    }

    /// Logs a review that came in at `path` and does not make sense, for a reason that quotes nothing of it, unless it is
    /// a repeat.
    pub fn record_malformed(&self, path: &str, uid: &str, reason: &str, now: Instant) {
        if let Some((others, repeats)) = self.admit_body(path, reason, now) {
            tracing::error!(path, uid, reason, repeats, others, "a review does not make sense and could not be judged");
        }
    }

    /// Whether to log this body; whether it stands for others as well, and how many were left out since the last line.
    fn admit_body(&self, path: &str, reason: &str, now: Instant) -> Option<(bool, u64)> {
        let body = BadBody { path: path.to_owned(), reason: reason.to_owned() };
        if self.bodies.has_room_for(&body) {
            return self.bodies.admit(&body, now).map(|repeats| (false, repeats));
        }
        self.other_bodies.admit(&(), now).map(|repeats| (true, repeats))
    }

    /// Says how often decisions were repeated whose window is over. Called now and then, so that no count is lost.
    pub fn sweep(&self, now: Instant) {
        for (body, repeats) in self.bodies.expire(now) {
            tracing::info!(path = body.path, reason = body.reason, repeats, "bad body repeated");
        }
        for ((), repeats) in self.other_bodies.expire(now) {
            tracing::info!(repeats, "more bad bodies, of different kinds");
        }
        for (same, repeats) in self.seen.expire(now) {
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

    #[test]
    fn bad_bodies_are_told_once_each_and_however_many_there_are_the_log_stays_short() {
        let log = DecisionLog::default();
        let now = Instant::now();
        assert_eq!(log.admit_body("/validate", "it ends too soon", now).map(|(_, repeats)| repeats), Some(0));
        assert_eq!(log.admit_body("/validate", "it ends too soon", now), None);
        let told = (0..1000).filter(|number| log.admit_body(&format!("/validate/{number}"), "x", now).is_some());
        // The last one stands for all that found no room.
        assert_eq!(told.count(), MAX_BODIES);
        let (_, repeats) = log.admit_body("/validate", "it ends too soon", now + WINDOW).unwrap();
        assert_eq!(repeats, 1);
    }

    #[test]
    fn values_are_named_once_and_counted_beyond() {
        assert_eq!(unique(["a", "", "b", "a"].into_iter(), 5), "a,b");
        assert_eq!(unique(["a", "b", "c"].into_iter(), 2), "a,b,+1");
    }
}
