//! What the user configured, checked. Built once from a [`schema::GuardPolicy`]; rules and decisions read it.

mod definition;
pub mod explain;
mod file;
mod labels;
mod matching;
pub mod schema;
mod scope;
pub mod status;

use jiff::{SignedDuration, Timestamp};

use crate::object::ObjectMeta;

pub use self::definition::definition;
pub use self::file::ParseError;
pub use self::labels::Weakening;
pub use self::matching::{Matcher, Subject};
pub use self::schema::{Approvers, GuardPolicy, GuardPolicySpec, Mode, OnUnknown, RuleKey, StatusCondition};
pub(crate) use self::scope::namespace_of;
pub use self::scope::{Place, Scope, ScopeRef, Scopes};
pub use self::status::{Claims, Observed};

/// Name of the one object that counts.
pub const POLICY_NAME: &str = "default";
/// Annotation with the reason to delete in spite of every rule.
pub const BREAK_GLASS: &str = "cascade-guard.io/break-glass";
/// The reason to break the glass that stands on an object, trimmed. A blank one is none: it waives nothing anywhere.
pub fn break_glass_reason(meta: &ObjectMeta) -> Option<&str> {
    meta.annotation(BREAK_GLASS).map(str::trim).filter(|reason| !reason.is_empty())
}

/// API group of the object.
pub const POLICY_GROUP: &str = "cascade-guard.io";
/// Kind of the object.
pub const POLICY_KIND: &str = "GuardPolicy";

/// A policy that can be applied.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The spec it was made from.
    pub spec: GuardPolicySpec,
    /// How far ahead an approval may end.
    pub max_ttl: SignedDuration,
    /// No rule acts more strictly than this.
    pub ceiling: Mode,
    overrides: Vec<(Matcher, schema::Modes)>,
    exemptions: Vec<Exemption>,
    application_namespaces: Matcher,
    argocd_users: Vec<String>,
}

/// A checked exemption.
#[derive(Clone, Debug)]
pub struct Exemption {
    /// Name for messages and reports.
    pub name: String,
    /// Which rules it waives.
    pub rules: Vec<RuleKey>,
    /// When it ends.
    pub until: Timestamp,
    /// Where it applies.
    pub matcher: Matcher,
}

/// Why a policy cannot be applied: the field, what is wrong, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct PolicyError {
    /// Path of the field, such as `spec.overrides[0].match`.
    pub field: String,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

impl PolicyError {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// The mode a rule has for one subject, and which line of the policy said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The mode.
    pub mode: Mode,
    /// Which line decided, for a person.
    pub decided_by: String,
    /// Whether it was an exemption.
    pub exempt: bool,
}

impl Default for Policy {
    /// No policy at all: every rule in audit.
    fn default() -> Self {
        Self {
            spec: GuardPolicySpec::default(),
            max_ttl: SignedDuration::from_hours(24),
            ceiling: Mode::Enforce,
            overrides: Vec::new(),
            exemptions: Vec::new(),
            application_namespaces: Matcher::everything(),
            argocd_users: argocd_users(&GuardPolicySpec::default()),
        }
    }
}

impl Policy {
    /// Every rule in one mode, whatever rules there are.
    pub fn every_rule(mode: Mode) -> Self {
        RuleKey::ALL.iter().fold(Self::default(), |policy, rule| policy.with_mode(*rule, mode))
    }

    /// The same policy with one rule in another mode.
    #[must_use]
    pub fn with_mode(mut self, rule: RuleKey, mode: Mode) -> Self {
        self.spec.rules.set_mode(rule, mode);
        self
    }

    /// Checks a spec.
    ///
    /// # Errors
    /// The first field that cannot be applied.
    pub fn new(spec: GuardPolicySpec) -> Result<Self, PolicyError> {
        let ttl_field = "spec.rules.namespaceApproval.maxTTL";
        let max_ttl: SignedDuration = spec.rules.namespace_approval.max_ttl.parse().map_err(|_| {
            PolicyError::new(
                ttl_field,
                format!("`{}` is no duration; write it as 24h or 90m", spec.rules.namespace_approval.max_ttl),
            )
        })?;
        if !max_ttl.is_positive() {
            return Err(PolicyError::new(ttl_field, "it must be longer than zero"));
        }
        if spec.argocd.namespace.is_empty() {
            return Err(PolicyError::new(
                "spec.argocd.namespace",
                "it must name the namespace of the Argo CD controllers",
            ));
        }
        if let Some(index) = spec.argocd.installations.iter().position(String::is_empty) {
            return Err(PolicyError::new(
                format!("spec.argocd.installations[{index}]"),
                "it must name the namespace of the controllers of an Argo CD",
            ));
        }
        if let Some(index) = spec.argocd.cluster_aliases.iter().position(Vec::is_empty) {
            return Err(PolicyError::new(
                format!("spec.argocd.clusterAliases[{index}]"),
                "it is empty; list the names and URLs of one cluster",
            ));
        }
        for (index, name) in spec.rules.sync_wave.secret_producers.iter().enumerate() {
            if !is_kind(name) {
                return Err(PolicyError::new(
                    format!("spec.rules.syncWave.secretProducers[{index}]"),
                    format!("`{name}` is no kind; write it as Kind.group, such as Password.example.com"),
                ));
            }
        }
        let mut overrides = Vec::new();
        for (index, entry) in spec.overrides.iter().enumerate() {
            let field = format!("spec.overrides[{index}].match");
            overrides.push((Matcher::new(&entry.matches, &field)?, entry.modes.clone()));
        }
        let mut exemptions = Vec::new();
        for (index, entry) in spec.exemptions.iter().enumerate() {
            exemptions.push(exemption(entry, index)?);
        }
        let namespaces =
            schema::Match { namespaces: spec.argocd.application_namespaces.clone(), ..schema::Match::default() };
        let application_namespaces = if namespaces.namespaces.is_empty() {
            Matcher::everything()
        } else {
            Matcher::new(&namespaces, "spec.argocd.applicationNamespaces")?
        };
        let argocd_users = argocd_users(&spec);
        let ceiling = Mode::Enforce;
        Ok(Self { spec, max_ttl, ceiling, overrides, exemptions, application_namespaces, argocd_users })
    }

    /// The same policy under a ceiling.
    #[must_use]
    pub fn with_ceiling(mut self, ceiling: Mode) -> Self {
        self.ceiling = ceiling;
        self
    }

    /// The mode the policy gives a rule where nothing special applies, below the ceiling.
    pub fn base_mode(&self, rule: RuleKey) -> Mode {
        self.configured(rule).min(self.ceiling)
    }

    /// Whether there is any request that this policy could refuse.
    pub fn may_refuse(&self) -> bool {
        let enforces = |mode: Option<Mode>| mode == Some(Mode::Enforce);
        self.ceiling == Mode::Enforce
            && RuleKey::ALL.iter().copied().any(|rule| {
                enforces(Some(self.configured(rule)))
                    || self.overrides.iter().any(|(_, modes)| enforces(modes.of(rule)))
            })
    }

    fn configured(&self, rule: RuleKey) -> Mode {
        self.spec.rules.mode_of(rule)
    }

    /// The mode of `rule` for `subject` at `now`. Exemptions come first, then the first matching override that names the
    /// rule, then the rule itself; the ceiling caps them all.
    pub fn resolve(&self, rule: RuleKey, subject: &Subject<'_>, now: Timestamp) -> Resolved {
        let exemption = self.exemptions.iter().find(|exemption| {
            exemption.rules.contains(&rule) && now < exemption.until && exemption.matcher.matches(subject)
        });
        if let Some(exemption) = exemption {
            let decided_by = format!("exemption `{}` until {}", exemption.name, exemption.until);
            return Resolved { mode: Mode::Off, decided_by, exempt: true };
        }
        let overridden = self.overrides.iter().enumerate().find_map(|(index, (matcher, modes))| {
            let mode = modes.of(rule)?;
            matcher.matches(subject).then(|| (mode, format!("overrides[{index}]")))
        });
        let (mode, decided_by) =
            overridden.unwrap_or_else(|| (self.configured(rule), format!("rules.{}", rule.as_str())));
        if mode > self.ceiling {
            let decided_by = format!("mode ceiling {} (over {decided_by}: {})", self.ceiling.as_str(), mode.as_str());
            return Resolved { mode: self.ceiling, decided_by, exempt: false };
        }
        Resolved { mode, decided_by, exempt: false }
    }

    /// Whether `rule` is off for everybody and everything, so that nothing need be read for it.
    pub fn is_off(&self, rule: RuleKey) -> bool {
        let off = |modes: &schema::Modes| modes.of(rule).is_none_or(|mode| mode == Mode::Off);
        self.base_mode(rule) == Mode::Off
            && (self.ceiling == Mode::Off || self.overrides.iter().all(|(_, modes)| off(modes)))
    }

    /// The exemptions, expired ones included.
    pub fn exemptions(&self) -> &[Exemption] {
        &self.exemptions
    }

    /// Whether Applications of this namespace count.
    pub fn watches_applications_in(&self, namespace: &str) -> bool {
        self.application_namespaces.matches_namespace(namespace) || self.names_installation(namespace)
    }

    /// Namespaces of the Argo CDs that the policy names.
    pub fn named_installations(&self) -> impl Iterator<Item = &str> {
        let argocd = &self.spec.argocd;
        std::iter::once(&argocd.namespace).chain(&argocd.installations).map(String::as_str)
    }

    /// Whether the policy names the Argo CD whose controllers live in `namespace`.
    pub fn names_installation(&self, namespace: &str) -> bool {
        self.named_installations().any(|named| named == namespace)
    }

    /// Whether `user` is one of Argo CD's own identities that sync, prune and cascade, by the policy alone.
    pub fn is_argocd(&self, user: &str) -> bool {
        self.argocd_users.iter().any(|name| name == user)
    }

    /// Those identities.
    pub fn argocd_users(&self) -> &[String] {
        &self.argocd_users
    }

    /// Whether `user` is the namespace controller.
    pub fn is_namespace_controller(&self, user: &str) -> bool {
        self.spec.identities.namespace_controller.iter().any(|name| name == user)
    }

    /// Whether `user` is the garbage collector.
    pub fn is_garbage_collector(&self, user: &str) -> bool {
        self.spec.identities.garbage_collector.iter().any(|name| name == user)
    }

    /// Whether one of `groups` may break the glass.
    pub fn may_break_glass(&self, groups: &[String]) -> bool {
        groups.iter().any(|group| self.spec.break_glass.groups.contains(group))
    }
}

/// Argo CD's own identities that sync, prune and cascade: those that are named, or else the controller where it is installed.
fn argocd_users(spec: &GuardPolicySpec) -> Vec<String> {
    if spec.identities.argocd.is_empty() {
        let namespaces = std::iter::once(&spec.argocd.namespace).chain(&spec.argocd.installations);
        return namespaces.map(|home| format!("system:serviceaccount:{home}:argocd-application-controller")).collect();
    }
    spec.identities.argocd.clone()
}

/// Whether a text has the form `Kind.group`, as `kubectl` writes it. A kind of the core group has no point.
fn is_kind(text: &str) -> bool {
    let (kind, group) = text.split_once('.').map_or((text, None), |(kind, group)| (kind, Some(group)));
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && group.is_none_or(|group| group.split('.').all(label))
}

fn exemption(entry: &schema::Exemption, index: usize) -> Result<Exemption, PolicyError> {
    let field = |name: &str| format!("spec.exemptions[{index}].{name}");
    let until = entry.until.parse().map_err(|_| {
        PolicyError::new(field("until"), format!("`{}` is no time; write it as 2027-01-01T00:00:00Z", entry.until))
    })?;
    if entry.rules.is_empty() {
        return Err(PolicyError::new(field("rules"), "it is empty; name the rules to waive"));
    }
    if entry.reason.trim().is_empty() {
        return Err(PolicyError::new(field("reason"), "it is empty; say why this is exempt"));
    }
    // A label is written by whoever owns the namespace; alone it must not take the guard away.
    if entry.matches.namespace_selector.is_some() && entry.matches.namespaces.is_empty() {
        return Err(PolicyError::new(
            field("match.namespaceSelector"),
            "a label alone does not exempt; name the namespaces as well",
        ));
    }
    let matcher = Matcher::new(&entry.matches, &field("match"))?;
    Ok(Exemption { name: entry.name.clone(), rules: entry.rules.clone(), until, matcher })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(yaml: &str) -> GuardPolicySpec {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn subject<'a>(namespace: &'a str, user: &'a str) -> Subject<'a> {
        Subject { namespace, labels: None, project: None, user }
    }

    const NOW: &str = "2026-11-29T12:00:00Z";

    #[test]
    fn every_rule_has_the_mode_that_is_wanted() {
        let policy = Policy::every_rule(Mode::Enforce).with_mode(RuleKey::SyncWave, Mode::Off);
        for rule in RuleKey::ALL {
            let wanted = if *rule == RuleKey::SyncWave { Mode::Off } else { Mode::Enforce };
            assert_eq!(policy.base_mode(*rule), wanted, "{}", rule.as_str());
        }
    }

    #[test]
    fn rule_that_is_not_named_is_in_audit() {
        let policy = Policy::new(spec("rules: {sharedClaim: {mode: enforce}}")).unwrap();
        assert_eq!(policy.base_mode(RuleKey::SharedClaim), Mode::Enforce);
        assert_eq!(policy.base_mode(RuleKey::SyncWave), Mode::Audit);
    }

    #[test]
    fn first_matching_override_wins_and_the_ceiling_caps() {
        let yaml = "
rules: {sharedClaim: {mode: warn}}
overrides:
- {match: {namespaces: ['team-a-*']}, modes: {syncWave: 'off'}}
- {match: {namespaces: ['team-*']}, modes: {sharedClaim: enforce}}
- {match: {namespaces: ['team-a-x']}, modes: {sharedClaim: audit}}";
        let policy = Policy::new(spec(yaml)).unwrap();
        let now = NOW.parse().unwrap();
        let of = |policy: &Policy, namespace: &str| policy.resolve(RuleKey::SharedClaim, &subject(namespace, "u"), now);
        assert_eq!(of(&policy, "team-a-x").mode, Mode::Enforce);
        assert_eq!(of(&policy, "team-a-x").decided_by, "overrides[1]");
        assert_eq!(of(&policy, "other").mode, Mode::Warn);
        assert_eq!(of(&policy.with_ceiling(Mode::Audit), "team-b").mode, Mode::Audit);
    }

    #[test]
    fn expired_exemption_is_inert() {
        let yaml = "
rules: {namespaceApproval: {mode: enforce}}
exemptions:
- {name: p, match: {namespaces: ['pr-*']}, rules: [namespaceApproval], until: '2026-11-29T13:00:00Z', reason: r}";
        let policy = Policy::new(spec(yaml)).unwrap();
        let at =
            |now: &str| policy.resolve(RuleKey::NamespaceApproval, &subject("pr-1", "u"), now.parse().unwrap()).mode;
        assert_eq!(at(NOW), Mode::Off);
        assert_eq!(at("2026-11-29T13:00:00Z"), Mode::Enforce);
    }

    #[test]
    fn bad_values_are_named_with_their_field() {
        let field = |yaml: &str| Policy::new(spec(yaml)).unwrap_err().field;
        assert_eq!(field("rules: {namespaceApproval: {maxTTL: soon}}"), "spec.rules.namespaceApproval.maxTTL");
        assert_eq!(field("overrides: [{match: {}, modes: {}}]"), "spec.overrides[0].match");
        assert_eq!(
            field(
                "exemptions: [{name: a, match: {namespaceSelector: {matchLabels: {a: b}}}, rules: [syncWave], until: '2027-01-01T00:00:00Z', reason: r}]"
            ),
            "spec.exemptions[0].match.namespaceSelector"
        );
    }

    #[test]
    fn producer_that_is_no_kind_is_named() {
        let of = |name: &str| Policy::new(spec(&format!("rules: {{syncWave: {{secretProducers: ['{name}']}}}}")));
        for good in ["Password.example.com", "ExternalSecret.external-secrets.io", "Secret"] {
            assert!(of(good).is_ok(), "{good}");
        }
        for bad in ["", "password.example.com", "Password.", "Password.Example.com", "example.com/Password", "A b.c"] {
            assert_eq!(of(bad).unwrap_err().field, "spec.rules.syncWave.secretProducers[0]", "{bad}");
        }
    }

    #[test]
    fn only_named_identities_are_argo_cd() {
        let policy = Policy::default();
        assert!(policy.is_argocd("system:serviceaccount:argocd:argocd-application-controller"));
        assert!(!policy.is_argocd("system:serviceaccount:argocd:argocd-server"));
        assert!(!policy.is_argocd("system:serviceaccount:kube-system:argocd-manager"));
    }
}
