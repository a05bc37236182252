//! The words of an answer. They are read in the Argo CD dashboard and in a terminal at night: what is refused, by which
//! rule, which objects and who claims them, and what to do.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
};

use super::{
    Decision, Effect, Outcome, Severity,
    groups::{groups, label, plain},
    message::{MAX_OBJECTS, message},
};
use crate::{
    admission::{Request, Response},
    text::clip,
};

/// A longer warning is cut; the API server asks for 120 at most.
const MAX_WARNING: usize = 120;
/// So many warnings go out; the last one becomes a count if there are more.
const MAX_WARNINGS: usize = 5;
/// What would be refused is said in so many lines.
const MAX_WOULD_REFUSE: usize = 2;

/// Turns a decision into the answer to `request`.
pub fn render(decision: &Decision, request: &Request<'_>) -> Response {
    let allowed = decision.allowed();
    let message = if allowed { String::new() } else { message(decision, request) };
    Response {
        allowed,
        warnings: warnings(decision, &message),
        message,
        audit_annotations: audit_annotations(decision),
    }
}

/// The warnings, without what the message says anyway.
fn warnings(decision: &Decision, message: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let broken = decision.outcomes.iter().any(|outcome| outcome.effect == Effect::BrokeGlass);
    if let Some(glass) = decision.break_glass.as_ref().filter(|_| broken) {
        lines.push(warning(&format!("cascade-guard: break-glass used ({}); every rule is bypassed", glass.reason)));
    }
    let would_refuse = groups(decision, |outcome| {
        outcome.finding.severity == Severity::Deny && matches!(outcome.effect, Effect::Warned | Effect::BrokeGlass)
    });
    let hidden = would_refuse.len().saturating_sub(MAX_WOULD_REFUSE);
    for group in would_refuse.iter().take(MAX_WOULD_REFUSE) {
        let first = &group.outcomes[0].finding;
        let more = (group.outcomes.len() - 1) + hidden;
        let tail = if more > 0 { format!(" (+{more} more)") } else { String::new() };
        let what = if first.detail.is_empty() { &first.summary } else { &first.detail };
        lines.push(warning_with(&format!("[{}] would deny: {what}", label(group)), &tail));
    }
    let mut said: HashSet<String> = lines.iter().cloned().collect();
    for group in
        groups(decision, |outcome| outcome.finding.severity == Severity::Warn && outcome.effect == Effect::Warned)
    {
        for outcome in group.outcomes {
            let finding = &outcome.finding;
            let text = if finding.detail.is_empty() { &finding.summary } else { &finding.detail };
            if message.contains(&plain(text)) {
                continue;
            }
            let line = warning(&format!("[{}] {text}", finding.rule.id));
            if said.insert(line.clone()) {
                lines.push(line);
            }
        }
    }
    if lines.len() > MAX_WARNINGS {
        let more = lines.len() - (MAX_WARNINGS - 1);
        lines.truncate(MAX_WARNINGS - 1);
        lines.push(format!("cascade-guard: and {more} more warnings"));
    }
    lines
}

/// The API server drops a warning with a control character and cuts long ones.
pub(super) fn warning(text: &str) -> String {
    warning_with(text, "")
}

fn warning_with(text: &str, tail: &str) -> String {
    format!("{}{}", clip(&plain(text), MAX_WARNING - tail.chars().count()), plain(tail))
}

fn audit_annotations(decision: &Decision) -> BTreeMap<String, String> {
    let said: Vec<&Outcome> = decision.recorded().collect();
    let mut annotations = BTreeMap::new();
    let Some(worst) = decision.worst() else { return annotations };
    let mut put = |key: &str, values: Vec<&str>| {
        let mut known = HashSet::new();
        let mut unique: Vec<&str> =
            values.into_iter().filter(|value| !value.is_empty() && known.insert(*value)).collect();
        if !unique.is_empty() {
            let more = unique.len().saturating_sub(MAX_OBJECTS);
            unique.truncate(MAX_OBJECTS);
            let mut text = unique.join(",");
            if more > 0 {
                let _ = write!(text, ",+{more}");
            }
            annotations.insert(key.to_owned(), clip(&plain(&text), 500));
        }
    };
    put("decision", vec![worst.word()]);
    put("mode", vec![worst.resolved.mode.as_str()]);
    put("rule", said.iter().map(|outcome| outcome.finding.rule.id).collect());
    put("claimed-by", said.iter().flat_map(|outcome| outcome.finding.claimants.iter().map(String::as_str)).collect());
    put("approved-by", said.iter().map(|outcome| outcome.finding.approved_by.as_str()).collect());
    let evidence = || said.iter().filter_map(|outcome| outcome.finding.evidence.as_ref());
    put("approved-until", evidence().map(|evidence| evidence.until.as_str()).collect());
    put("reason", evidence().map(|evidence| evidence.reason.as_str()).collect());
    let exempted = said.iter().filter(|outcome| outcome.is_exempted());
    put("exempted-by", exempted.map(|outcome| outcome.resolved.decided_by.as_str()).collect());
    put("object", said.iter().map(|outcome| outcome.finding.detail.as_str()).collect());
    if let Some(glass) = &decision.break_glass {
        annotations.insert("break-glass".to_owned(), clip(&plain(&glass.reason), 200));
    }
    annotations
}
