//! The file format: `GuardPolicy`, as a custom resource and as a YAML file. Nothing here decides anything;
//! [`super::Policy`] is what a checked file becomes.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::catalog::RuleKey;

/// What the guard decides and how strictly. One object named `default` governs a cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cascade-guard.io",
    version = "v1alpha1",
    kind = "GuardPolicy",
    plural = "guardpolicies",
    shortname = "gpol",
    status = "GuardPolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    crates(kube_core = "::kube_core"),
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#
)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GuardPolicySpec {
    /// Where Argo CD lives.
    pub argocd: ArgoCd,
    /// Mode and options of each rule. A rule that is not named is in audit.
    pub rules: Rules,
    /// Other modes for some objects, projects or users. The first entry that matches wins.
    pub overrides: Vec<Override>,
    /// What is left alone, and until when.
    pub exemptions: Vec<Exemption>,
    /// Who is who among the callers. Exact user names.
    pub identities: Identities,
    /// Who may delete in spite of every rule.
    pub break_glass: BreakGlass,
    /// What ApplicationSets may do at once.
    pub application_sets: ApplicationSets,
}

/// Limits on what the controller of ApplicationSets does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ApplicationSets {
    /// So many Applications of one ApplicationSet may be deleted by its controller within a minute. Without a number there
    /// is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_deletes_per_minute: Option<u32>,
}

/// Where Argo CD lives.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ArgoCd {
    /// Namespace of the Argo CD controllers. Others are found by their ConfigMap argocd-cm.
    pub namespace: String,
    /// Namespaces of further Argo CDs whose controllers are trusted: what is waived for an Application stays waived in their
    /// cascades, and what they replace may go although others claim it.
    pub installations: Vec<String>,
    /// Namespaces that hold Applications, as patterns: Applications anywhere else do not count. Without a pattern all count,
    /// and each Argo CD serves what it says itself.
    pub application_namespaces: Vec<String>,
    /// Each list holds the names and URLs of one physical cluster.
    pub cluster_aliases: Vec<Vec<String>>,
}

impl Default for ArgoCd {
    fn default() -> Self {
        Self {
            namespace: "argocd".to_owned(),
            installations: Vec::new(),
            application_namespaces: Vec::new(),
            cluster_aliases: Vec::new(),
        }
    }
}

/// How strictly a rule acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Not at all.
    Off,
    /// Record only.
    #[default]
    Audit,
    /// Record and tell the client.
    Warn,
    /// Refuse.
    Enforce,
}

impl Mode {
    /// As it is written in a policy, in metrics and in annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Enforce => "enforce",
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Off, Self::Audit, Self::Warn, Self::Enforce]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no mode; use off, audit, warn or enforce"))
    }
}

/// The parts of the policy that have a field for each rule.
macro_rules! fields {
    (
        keyed {$(
            $(#[doc = $doc:literal])*
            $field:ident, $variant:ident, $id:literal {
                key: $key:literal,
                options: $options:ty,
                $($rest:tt)*
            }
        )*}
        other { $($other:tt)* }
    ) => {
        /// Mode and options of each rule.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Rules {
            $($(#[doc = $doc])* pub $field: $options,)*
        }

        impl Rules {
            /// The mode of a rule.
            pub fn mode_of(&self, rule: RuleKey) -> Mode {
                match rule {
                    $(RuleKey::$variant => self.$field.mode,)*
                }
            }

            /// Gives a rule a mode.
            pub fn set_mode(&mut self, rule: RuleKey, mode: Mode) {
                match rule {
                    $(RuleKey::$variant => self.$field.mode = mode,)*
                }
            }
        }

        /// A mode for some rules.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Modes {
            $(
                #[doc = concat!("Mode of `", $id, "`.")]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<Mode>,
            )*
        }

        impl Modes {
            /// The mode of a rule, if one is given.
            pub fn of(&self, rule: RuleKey) -> Option<Mode> {
                match rule {
                    $(RuleKey::$variant => self.$field,)*
                }
            }
        }
    };
}
crate::catalog::with_rules!(fields);

/// A rule without options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OnlyMode {
    /// How strictly it acts.
    pub mode: Mode,
}

/// What to do about something that cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnUnknown {
    /// Treat it as a claim.
    #[default]
    Deny,
    /// Say so and go on.
    Warn,
}

/// Options of `shared-claim`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SharedClaim {
    /// How strictly it acts.
    pub mode: Mode,
    /// What an Application that was never compared means.
    pub on_unknown: OnUnknown,
}

/// Options of `namespace-approval`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NamespaceApproval {
    /// How strictly it acts.
    pub mode: Mode,
    /// How far ahead an approval may end, such as `24h`.
    #[serde(rename = "maxTTL")]
    pub max_ttl: String,
    /// Whether an approval must carry a reason.
    pub require_reason: bool,
    /// Whether the deleter must be another user than the approver.
    pub four_eyes: bool,
    /// What happens when someone else than the namespace controller finalizes a Terminating Namespace.
    pub protect_finalize: Mode,
    /// Who may approve.
    pub approvers: Approvers,
}

impl Default for NamespaceApproval {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            max_ttl: "24h".to_owned(),
            require_reason: false,
            four_eyes: false,
            protect_finalize: Mode::Warn,
            approvers: Approvers::default(),
        }
    }
}

/// Who may write an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approvers {
    /// Service accounts may not.
    People,
    /// Whoever holds the verb.
    #[default]
    Anyone,
}

/// Options of `sync-wave`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SyncWave {
    /// How strictly it acts.
    pub mode: Mode,
    /// Further kinds that produce a Secret of their own name, as `Kind.group`.
    pub secret_producers: Vec<String>,
}

/// What an override or an exemption applies to. Every field that is given must match; in a list one match is enough.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Match {
    /// Patterns for the namespace of the object; for a Namespace its own name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Labels of that namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Patterns for the AppProject of the Application that is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// Exact user names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
}

/// A label selector, as Kubernetes reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelExpression>,
}

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelExpression {
    /// Key of the label.
    pub key: String,
    /// How it is compared.
    pub operator: LabelOperator,
    /// Values to compare with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum LabelOperator {
    /// The value is one of those given.
    In,
    /// There is no such label, or its value is none of those given.
    NotIn,
    /// There is such a label.
    Exists,
    /// There is no such label.
    DoesNotExist,
}

/// Other modes where it matches.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Override {
    /// Where it applies.
    #[serde(rename = "match")]
    pub matches: Match,
    /// The mode of each rule there.
    pub modes: Modes,
}

/// What is left alone, until when and why.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exemption {
    /// Name for messages and reports.
    pub name: String,
    /// Where it applies.
    #[serde(rename = "match")]
    pub matches: Match,
    /// Which rules it waives.
    pub rules: Vec<RuleKey>,
    /// When it ends (RFC 3339). From then on it is inert everywhere.
    pub until: String,
    /// Why.
    pub reason: String,
}

/// Who is who among the callers: exact user names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Identities {
    /// Who empties Terminating Namespaces.
    pub namespace_controller: Vec<String>,
    /// Who removes objects whose owner is gone.
    pub garbage_collector: Vec<String>,
    /// Who syncs, prunes and cascades for Argo CD. Empty means the application controller in the Argo CD namespace.
    pub argocd: Vec<String>,
}

impl Default for Identities {
    fn default() -> Self {
        Self {
            namespace_controller: vec!["system:serviceaccount:kube-system:namespace-controller".to_owned()],
            garbage_collector: vec!["system:serviceaccount:kube-system:generic-garbage-collector".to_owned()],
            argocd: Vec::new(),
        }
    }
}

/// Who may delete in spite of every rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BreakGlass {
    /// Groups whose members may.
    pub groups: Vec<String>,
    /// Whether the reason must stand on the object first.
    pub require_reason: bool,
}

impl Default for BreakGlass {
    fn default() -> Self {
        Self { groups: Vec::new(), require_reason: true }
    }
}

/// What the guard makes of the policy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GuardPolicyStatus {
    /// Generation of the spec that the rest describes.
    pub observed_generation: i64,
    /// The mode really in force for each rule, the ceiling included.
    pub modes: BTreeMap<String, Mode>,
    /// Conditions `Ready`, `ClaimsSynced` and `PolicyAccepted`.
    pub conditions: Vec<StatusCondition>,
}

/// One condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusCondition {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// One sentence.
    pub message: String,
    /// When the status last changed (RFC 3339).
    pub last_transition_time: String,
}
