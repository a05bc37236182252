//! The rules there are, each declared once: its id, its policy key, what it judges, and its checks.
//!
//! Everything that has to name every rule is made from this table: the keys and fields of the policy and of its
//! definition, labels of metrics, the pages that reports carry, rules in SARIF, and what may be ignored with a reason.
//! [`crate::rules`] says how each of them judges.

use std::fmt;

use crate::admission::Operation;

/// What a rule is called and what it is about.
#[derive(Debug)]
pub struct RuleMeta {
    /// Stable id, as it stands in messages, metrics and annotations.
    pub id: &'static str,
    /// Its key in the policy; `None` for a rule that no policy can weaken.
    pub key: Option<RuleKey>,
    /// One line for people.
    pub summary: &'static str,
    /// Its page, below the root of the repository.
    pub docs: &'static str,
    /// The page itself, in Markdown: whoever reads a report in a code scanner has no repository at hand.
    pub page: &'static str,
    /// The operations it judges.
    pub operations: &'static [Operation],
    /// What it checks, in the order of its page, the three that every rule has aside.
    pub checks: &'static [&'static Check],
    /// The check that fails while the inventory is not complete.
    pub not_ready: &'static Check,
    /// The check that fails when the time to judge was over.
    pub overdue: &'static Check,
    /// The check that warns where a cascade will come to rest, because only the one who asks is let through.
    pub halfway: &'static Check,
}

impl RuleMeta {
    /// Its check of this id.
    pub fn check(&self, id: &str) -> Option<&'static Check> {
        self.checks.iter().find(|check| check.id == id).copied()
    }
}

/// One thing that a rule checks.
pub struct Check {
    /// The rule.
    pub rule: &'static RuleMeta,
    /// Stable id within the rule, such as `malformed-wave`; empty for what the rule is named after.
    pub id: &'static str,
}

impl PartialEq for Check {
    fn eq(&self, other: &Self) -> bool {
        (self.rule.id, self.id) == (other.rule.id, other.id)
    }
}

impl Eq for Check {}

/// A check and its rule name each other, so only their ids are shown.
impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `rule/check`, as it stands in messages; the rule alone for what the rule is named after.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.id)?;
        if self.id.is_empty() { Ok(()) } else { write!(f, "/{}", self.id) }
    }
}

/// Hands the table to `$then`.
///
/// `keyed` rules have a key, and so a field, of their own in the policy: the name of the module in camel case, as it is
/// written behind `key`. `options` is the type of the field. `other` rules go by another rule's key, or by none.
macro_rules! with_rules {
    ($then:path) => {
        $then! {
            keyed {
                /// Deletes that take what another Application claims.
                shared_claim, SharedClaim, "shared-claim" {
                    key: "sharedClaim",
                    options: SharedClaim,
                    summary: "a delete must not take what another Application still claims",
                    operations: [Delete],
                    checks: [
                        CLAIMED "",
                        TOO_LARGE "too-large",
                        UNKNOWN "unknown",
                        STALE "stale",
                        OWN_PRUNE "own-prune",
                        UNCLAIMED "unclaimed",
                        FINALIZER "finalizer",
                        BURST "burst",
                        PERHAPS_HERE "unresolved-cluster",
                    ],
                }
                /// Updates that take something away from an object several Applications claim.
                shared_update, SharedUpdate, "shared-update" {
                    key: "sharedUpdate",
                    options: OnlyMode,
                    summary: "Updates that take something away from an object several Applications claim",
                    operations: [Create, Update],
                    checks: [
                        TAKEN_AWAY "",
                        PRUNE "prune",
                        PRUNE_STOPS "prune-stops",
                        REPOINTED "repointed",
                        GENERATED "generated",
                        OWNER_ABSENT "owner-absent",
                        HIDDEN "hidden",
                        UNREADABLE "unreadable",
                    ],
                }
                /// Namespaces that go without an approval.
                namespace_approval, NamespaceApproval, "namespace-approval" {
                    key: "namespaceApproval",
                    options: NamespaceApproval,
                    summary: "a Namespace goes only with a valid approval on it",
                    operations: [Delete],
                    checks: [NOT_APPROVED "", APPROVED "approved", OBSTACLE "obstacle", CONTENT "content", NOT_READ "not-read"],
                }
                /// Hooks whose phase and wave can never work.
                sync_wave, SyncWave, "sync-wave" {
                    key: "syncWave",
                    options: SyncWave,
                    summary: "Hooks whose phase and wave can never work",
                    operations: [Create, Update],
                    checks: [
                        MALFORMED_WAVE "malformed-wave",
                        UNKNOWN_HOOK "unknown-hook",
                        DEPENDS_ON_LATER "depends-on-later",
                        WAVE_CONTRADICTS_PHASE "wave-contradicts-phase",
                        ANNOTATION_NO_TEXT "annotation-no-text",
                        SAME_NAME "same-name",
                        EARLIER_INSTALL "earlier-install",
                        NOBODY_CREATES "nobody-creates",
                        PRODUCER_LATER "producer-later",
                        PRODUCER_ELSEWHERE "producer-elsewhere",
                        OTHER_APPLICATION "other-application",
                        COMES_LATER "comes-later",
                        PERHAPS_LATER "perhaps-later",
                        UNKNOWN_ORDER "unknown-order",
                        BEING_DELETED "being-deleted",
                        NOT_READ "not-read",
                        REMOVED_FIRST "removed-first",
                        UNSEEN "unseen",
                        NO_DEADLINE "no-deadline",
                        NO_BACKOFF_LIMIT "no-backoff-limit",
                        GENERATED_NAME "generated-name",
                        CLAIM_IS_HOOK "claim-is-hook",
                        APPLICATION_IS_HOOK "application-is-hook",
                        NAMESPACE_IS_HOOK "namespace-is-hook",
                        DEFINITION_IS_HOOK "definition-is-hook",
                        HOOK_IN_USE "hook-in-use",
                        POLICIES_ADD_UP "policies-add-up",
                        UNKNOWN_POLICY "unknown-policy",
                        IDLE_SKIP "idle-skip",
                        MALFORMED_WEIGHT "malformed-weight",
                        UNREADABLE "unreadable",
                        TOO_MANY_NEEDS "too-many-needs",
                        MOVED_FORWARD "moved-forward",
                        NAMESPACE_BY_OPTION "namespace-by-option",
                        NAMESPACE_MISSING "namespace-missing",
                        NAMESPACE_UNSAID "namespace-unsaid",
                        RIGHTS_LATER "rights-later",
                        CLAIM_WAITS "claim-waits",
                        MISSPELT "misspelt",
                        BAD_IGNORE "bad-ignore",
                    ],
                }
                /// Workloads that lose their ServiceAccount or its rights.
                runtime_dependency, RuntimeDependency, "runtime-dependency" {
                    key: "runtimeDependency",
                    options: OnlyMode,
                    summary: "Pods that stay keep their ServiceAccount and its rights",
                    operations: [Delete],
                    checks: [RIGHTS_LOST "", NOT_READ "not-read"],
                }
                /// Argo CD's own definitions, projects and namespaces.
                control_plane, ControlPlane, "control-plane" {
                    key: "controlPlane",
                    options: OnlyMode,
                    summary: "what Argo CD stands on (definitions, projects, clusters, its namespaces) is not taken from under it",
                    operations: [Create, Update, Delete],
                    checks: [
                        DEFINITION "definition",
                        DEFINITION_CHANGED "definition-changed",
                        ROUTE "route",
                        OWN_RIGHTS "own-rights",
                        PROJECT "project",
                        PROJECT_ORDER "project-order",
                        NAMESPACE "namespace",
                        CLUSTER_SECRET "cluster-secret",
                    ],
                }
            }
            other {
                approval_integrity, "approval-integrity" {
                    key: [NamespaceApproval],
                    summary: "Approvals, exempting labels and the break-glass key are written only by those who may",
                    operations: [Create, Update],
                    checks: [
                        APPROVAL "approval",
                        APPROVAL_AT_CREATION "approval-at-creation",
                        EXEMPTING_LABEL "exempting-label",
                        EXEMPTING_PROJECT "exempting-project",
                        BREAK_GLASS "break-glass",
                        FINALIZE "finalize",
                    ],
                }
                policy, "policy" {
                    key: [],
                    summary: "A GuardPolicy that cannot be applied is not stored, and one that is in force is not deleted in silence",
                    operations: [Create, Update, Delete],
                    checks: [UNUSABLE "", DELETED "deleted"],
                }
            }
        }
    };
}
pub(crate) use with_rules;

/// The declaration of one rule, in a module of its name.
macro_rules! declare {
    (@key) => { None };
    (@key $key:ident) => { Some(super::RuleKey::$key) };
    ($module:ident, $id:literal, [$($key:ident)?], $summary:literal, [$($operation:ident)*], [$($check:ident $check_id:literal)*]) => {
        #[doc = concat!("The declaration of `", $id, "`.")]
        pub mod $module {
            use super::{Check, Operation, RuleMeta};

            /// What the rule is called and about.
            pub static META: RuleMeta = RuleMeta {
                id: $id,
                key: declare!(@key $($key)?),
                summary: $summary,
                docs: concat!("docs/rules/", $id, ".md"),
                page: include_str!(concat!("../../docs/rules/", $id, ".md")),
                operations: &[$(Operation::$operation),*],
                checks: &[$(&$check),*],
                not_ready: &NOT_READY,
                overdue: &OVERDUE,
                halfway: &HALFWAY,
            };
            $(
                #[doc = concat!("Check `", $check_id, "`; without an id what the rule is named after.")]
                pub static $check: Check = Check { rule: &META, id: $check_id };
            )*
            /// The inventory is not complete.
            pub static NOT_READY: Check = Check { rule: &META, id: "not-ready" };
            /// The time to judge was over.
            pub static OVERDUE: Check = Check { rule: &META, id: "overdue" };
            /// A cascade will come to rest.
            pub static HALFWAY: Check = Check { rule: &META, id: "halfway" };
        }
    };
}

macro_rules! declare_all {
    (
        keyed {$(
            $(#[doc = $doc:literal])*
            $module:ident, $variant:ident, $id:literal {
                key: $key:literal,
                options: $options:ty,
                summary: $summary:literal,
                operations: [$($operation:ident),*],
                checks: [$($check:ident $check_id:literal),* $(,)?],
            }
        )*}
        other {$(
            $other:ident, $other_id:literal {
                key: [$($other_key:ident)?],
                summary: $other_summary:literal,
                operations: [$($other_operation:ident),*],
                checks: [$($other_check:ident $other_check_id:literal),* $(,)?],
            }
        )*}
    ) => {
        /// The key of a rule in the policy.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
        )]
        #[serde(rename_all = "camelCase")]
        pub enum RuleKey {
            $($(#[doc = $doc])* $variant,)*
        }

        impl RuleKey {
            /// Every key, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As it is written in a policy.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)*
                }
            }
        }

        $(declare!($module, $id, [$variant], $summary, [$($operation)*], [$($check $check_id)*]);)*
        $(declare!(
            $other, $other_id, [$($other_key)?], $other_summary, [$($other_operation)*], [$($other_check $other_check_id)*]
        );)*

        /// Every rule there is.
        pub static ALL: &[&RuleMeta] = &[$(&$module::META,)* $(&$other::META,)*];
    };
}
with_rules!(declare_all);
