//! What the labels of a Namespace make of the policy: whoever may change a label must not thereby lift the guard.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Mode, Policy, RuleKey};

/// A rule that a change of labels makes weaker somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weakening {
    /// The rule.
    pub rule: RuleKey,
    /// Its mode before.
    pub from: Mode,
    /// Its mode after.
    pub to: Mode,
    /// The line of the policy that decides after, for a person.
    pub decided_by: String,
}

type Labels = BTreeMap<String, String>;

impl Policy {
    /// The rules that become weaker for the Namespace `namespace`, for some user or project at least, when its labels
    /// change from `old` to `new`: an exemption or a milder override begins to match, or a stricter override ceases to.
    pub fn weakened_by_labels(&self, namespace: &str, old: &Labels, new: &Labels, now: Timestamp) -> Vec<Weakening> {
        if old == new || !self.matchers().any(super::Matcher::reads_labels) {
            return Vec::new();
        }
        let weakening = |rule| {
            let (before, after) = (self.reach(rule, namespace, old, now), self.reach(rule, namespace, new, now));
            let weakest = |reach: &[(Mode, String)]| reach.iter().min_by_key(|(mode, _)| *mode).cloned();
            let strictest = |reach: &[(Mode, String)]| reach.iter().max_by_key(|(mode, _)| *mode).cloned();
            [(weakest(&before), weakest(&after)), (strictest(&before), strictest(&after))]
                .into_iter()
                .filter_map(|(before, after)| Some((before?, after?)))
                .find(|((from, _), (to, _))| to < from)
                .map(|((from, _), (to, decided_by))| Weakening { rule, from, to, decided_by })
        };
        RuleKey::ALL.iter().copied().filter_map(weakening).collect()
    }

    /// Every mode `rule` can have in a Namespace with these labels, with the line of the policy that says so. A line that
    /// also asks for a project or a user may or may not hold; the first that asks for neither ends the search.
    fn reach(&self, rule: RuleKey, namespace: &str, labels: &Labels, now: Timestamp) -> Vec<(Mode, String)> {
        let exempt = self
            .exemptions
            .iter()
            .filter(|exemption| exemption.rules.contains(&rule) && now < exemption.until)
            .map(|exemption| (&exemption.matcher, Mode::Off, format!("exemption `{}`", exemption.name)));
        let overridden =
            self.overrides.iter().enumerate().filter_map(|(index, (matcher, modes))| {
                Some((matcher, modes.of(rule)?, format!("overrides[{index}]")))
            });
        let mut reach = Vec::new();
        for (matcher, mode, line) in exempt.chain(overridden) {
            if matcher.matches_place(namespace, labels) {
                reach.push((mode.min(self.ceiling), line));
                if matcher.is_about_place_only() {
                    return reach;
                }
            }
        }
        reach.push((self.base_mode(rule), format!("rules.{}", rule.as_str())));
        reach
    }

    /// What lifts a rule by some line of the policy, and can be changed unasked while the guard does not answer: labels of
    /// Namespaces other than the guard's own (`manifests/webhooks.yaml`, entry `exempting-labels`), and the project of an
    /// Application. Each in words, in order.
    pub fn changed_unasked(&self) -> Vec<String> {
        let keys = self.matchers().flat_map(super::Matcher::label_keys);
        // The API server writes the name itself.
        let open = keys.filter(|key| !key.starts_with("cascade-guard.io/") && *key != "kubernetes.io/metadata.name");
        let keys: BTreeSet<&str> = open.collect();
        let labels = keys.into_iter().map(|key| format!("label {key}"));
        labels.chain(self.tells_projects_apart().then(|| "the project of an Application".to_owned())).collect()
    }

    /// Whether it matters to any line of the policy in which project an Application is.
    pub fn tells_projects_apart(&self) -> bool {
        self.matchers().any(super::Matcher::reads_projects)
    }

    /// Users that some line of the policy names: it may hold for them alone.
    pub fn named_users(&self) -> impl Iterator<Item = &str> {
        self.matchers().flat_map(super::Matcher::users).map(String::as_str)
    }

    fn matchers(&self) -> impl Iterator<Item = &super::Matcher> {
        let exemptions = self.exemptions.iter().map(|exemption| &exemption.matcher);
        exemptions.chain(self.overrides.iter().map(|(matcher, _)| matcher))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "
rules: {sharedClaim: {mode: warn}, namespaceApproval: {mode: enforce}}
overrides:
- {match: {namespaceSelector: {matchLabels: {env: prod}}}, modes: {sharedClaim: enforce}}
- {match: {namespaceSelector: {matchLabels: {env: lab}}, users: [alice]}, modes: {sharedClaim: 'off'}}
exemptions:
- {name: previews, match: {namespaces: ['pr-*'], namespaceSelector: {matchLabels: {preview: 'true'}}},
   rules: [namespaceApproval], until: '2026-11-29T13:00:00Z', reason: r}";

    fn weakened(namespace: &str, old: &[(&str, &str)], new: &[(&str, &str)], now: &str) -> Vec<(RuleKey, String)> {
        let policy = Policy::new(serde_saphyr::from_str(POLICY).unwrap()).unwrap();
        let labels = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Labels>()
        };
        policy
            .weakened_by_labels(namespace, &labels(old), &labels(new), now.parse().unwrap())
            .into_iter()
            .map(|weakening| (weakening.rule, weakening.decided_by))
            .collect()
    }

    const NOW: &str = "2026-11-29T12:00:00Z";

    #[test]
    fn label_that_exempts_weakens() {
        let found = weakened("pr-1", &[], &[("preview", "true")], NOW);
        assert_eq!(found, [(RuleKey::NamespaceApproval, "exemption `previews`".to_owned())]);
    }

    #[test]
    fn label_outside_the_pattern_or_after_the_end_weakens_nothing() {
        assert_eq!(weakened("shop", &[], &[("preview", "true")], NOW), []);
        assert_eq!(weakened("pr-1", &[], &[("preview", "true")], "2026-11-29T13:00:00Z"), []);
        assert_eq!(weakened("pr-1", &[("preview", "true")], &[("preview", "true"), ("a", "b")], NOW), []);
        assert_eq!(weakened("pr-1", &[("preview", "true")], &[], NOW), []);
    }

    #[test]
    fn what_can_be_changed_unasked_is_named() {
        let unasked = |policy: &str| Policy::new(serde_saphyr::from_str(policy).unwrap()).unwrap().changed_unasked();
        assert_eq!(unasked(POLICY), ["label env", "label preview"]);
        let own = "
overrides:
- {match: {namespaceSelector: {matchLabels: {cascade-guard.io/tier: lab, kubernetes.io/metadata.name: shop}}}, modes: {}}";
        assert_eq!(unasked(own), [""; 0]);
        let expression = "
overrides:
- {match: {projects: [lab], namespaceSelector: {matchExpressions: [{key: team, operator: Exists}]}}, modes: {}}";
        assert_eq!(unasked(expression), ["label team", "the project of an Application"]);
    }

    #[test]
    fn leaving_a_stricter_override_weakens_and_entering_it_does_not() {
        let found = weakened("shop", &[("env", "prod")], &[("env", "test")], NOW);
        assert_eq!(found, [(RuleKey::SharedClaim, "rules.sharedClaim".to_owned())]);
        assert_eq!(weakened("shop", &[("env", "test")], &[("env", "prod")], NOW), []);
    }

    #[test]
    fn what_weakens_for_one_user_weakens() {
        let found = weakened("shop", &[], &[("env", "lab")], NOW);
        assert_eq!(found, [(RuleKey::SharedClaim, "overrides[1]".to_owned())]);
    }
}
