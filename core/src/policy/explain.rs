//! Which line of the policy decides, and which others were looked at: for people who wonder why.

use jiff::Timestamp;
use serde::Serialize;

use super::{Policy, Resolved, RuleKey, Subject};

/// The mode of one rule for one subject, with every line of the policy that has to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The mode and the line that decided.
    pub resolved: Resolved,
    /// Every line that names the rule, in the order they are looked at.
    pub lines: Vec<Line>,
}

/// One line of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Where it stands, such as `overrides[0]`.
    pub line: String,
    /// What it says.
    pub says: String,
    /// Whether it counts, and why if not.
    pub verdict: Verdict,
}

/// What a line does for a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It decides.
    Decides,
    /// It matches, but a line before it decided.
    Outranked,
    /// It matches, but its time is over: it does nothing any more.
    Inert,
    /// It is about other objects or users.
    DoesNotMatch,
}

impl Verdict {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decides => "decides",
            Self::Outranked => "matches, but a line before it decided",
            Self::Inert => "matches, but has expired and is inert",
            Self::DoesNotMatch => "does not match",
        }
    }
}

impl Policy {
    /// Explains the mode of `rule` for `subject` at `now`. It is [`Policy::resolve`] that decides.
    pub fn explain(&self, rule: RuleKey, subject: &Subject<'_>, now: Timestamp) -> Explanation {
        let resolved = self.resolve(rule, subject, now);
        let mut decided = false;
        let mut lines = Vec::new();
        let mut verdict = |matches: bool, inert: bool| match (matches, inert, decided) {
            (false, _, _) => Verdict::DoesNotMatch,
            (true, true, _) => Verdict::Inert,
            (true, false, true) => Verdict::Outranked,
            (true, false, false) => {
                decided = true;
                Verdict::Decides
            }
        };
        for exemption in self.exemptions.iter().filter(|exemption| exemption.rules.contains(&rule)) {
            lines.push(Line {
                line: format!("exemption `{}`", exemption.name),
                says: format!("off until {}", exemption.until),
                verdict: verdict(exemption.matcher.matches(subject), exemption.until <= now),
            });
        }
        for (index, (matcher, modes)) in self.overrides.iter().enumerate() {
            let Some(mode) = modes.of(rule) else { continue };
            lines.push(Line {
                line: format!("overrides[{index}]"),
                says: mode.as_str().to_owned(),
                verdict: verdict(matcher.matches(subject), false),
            });
        }
        lines.push(Line {
            line: format!("rules.{}", rule.as_str()),
            says: self.configured(rule).as_str().to_owned(),
            verdict: verdict(true, false),
        });
        if resolved.decided_by.starts_with("mode ceiling") {
            for line in lines.iter_mut().filter(|line| line.verdict == Verdict::Decides) {
                line.verdict = Verdict::Outranked;
            }
            lines.insert(
                0,
                Line {
                    line: "mode ceiling".to_owned(),
                    says: self.ceiling.as_str().to_owned(),
                    verdict: Verdict::Decides,
                },
            );
        }
        Explanation { resolved, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{GuardPolicySpec, Mode};

    fn explained(ceiling: Mode, namespace: &str) -> Explanation {
        let yaml = "
rules: {namespaceApproval: {mode: enforce}}
overrides:
- {match: {namespaces: ['pr-*']}, modes: {namespaceApproval: warn}}
- {match: {namespaces: ['pr-1']}, modes: {namespaceApproval: audit}}
- {match: {namespaces: ['pr-1']}, modes: {syncWave: audit}}
exemptions:
- {name: old, match: {namespaces: ['pr-*']}, rules: [namespaceApproval], until: '2026-01-01T00:00:00Z', reason: r}
- {name: shop, match: {namespaces: [shop]}, rules: [namespaceApproval], until: '2027-01-01T00:00:00Z', reason: r}";
        let policy =
            Policy::new(serde_saphyr::from_str::<GuardPolicySpec>(yaml).unwrap()).unwrap().with_ceiling(ceiling);
        let subject = Subject { namespace, labels: None, project: None, user: "alice" };
        policy.explain(RuleKey::NamespaceApproval, &subject, "2026-11-29T12:00:00Z".parse().unwrap())
    }

    fn verdicts(explanation: &Explanation) -> Vec<(&str, Verdict)> {
        explanation.lines.iter().map(|line| (line.line.as_str(), line.verdict)).collect()
    }

    #[test]
    fn expired_exemption_is_named_as_inert_and_the_first_override_decides() {
        let explanation = explained(Mode::Enforce, "pr-1");
        assert_eq!(explanation.resolved.mode, Mode::Warn);
        assert_eq!(
            verdicts(&explanation),
            [
                ("exemption `old`", Verdict::Inert),
                ("exemption `shop`", Verdict::DoesNotMatch),
                ("overrides[0]", Verdict::Decides),
                ("overrides[1]", Verdict::Outranked),
                ("rules.namespaceApproval", Verdict::Outranked),
            ]
        );
    }

    #[test]
    fn exactly_one_line_decides_and_it_is_the_one_resolve_names() {
        for ceiling in [Mode::Off, Mode::Audit, Mode::Warn, Mode::Enforce] {
            for namespace in ["pr-1", "pr-2", "shop", "other", ""] {
                let explanation = explained(ceiling, namespace);
                let deciding: Vec<&Line> =
                    explanation.lines.iter().filter(|line| line.verdict == Verdict::Decides).collect();
                assert_eq!(deciding.len(), 1, "{namespace} under {ceiling:?}");
                let by = &explanation.resolved.decided_by;
                assert!(by.starts_with(&deciding[0].line), "{by} is not {}", deciding[0].line);
            }
        }
    }
}
