//! What the guard writes into the status of its GuardPolicy. Every replica comes to the same words, so that it does not
//! matter which of them writes.

use jiff::Timestamp;

use super::{
    Policy, RuleKey,
    schema::{GuardPolicyStatus, StatusCondition},
};
use crate::text::some;

/// So many gaps are told, then their number.
const MAX_GAPS: usize = 3;

/// Condition that tells whether the spec, as it is stored, is in force.
pub const POLICY_ACCEPTED: &str = "PolicyAccepted";
/// Condition that tells whether the guard knows what Applications claim.
pub const CLAIMS_SYNCED: &str = "ClaimsSynced";
/// Condition that tells whether the policy says all that cannot be seen of the Argo CDs of the cluster. It sums nothing up:
/// where it does not hold, less is waived or warned of than could be.
pub const INSTALLATIONS_KNOWN: &str = "InstallationsKnown";
/// Condition that sums up the others.
pub const READY: &str = "Ready";

/// Condition that tells whether what lifts a rule is asked about whatever happens. It is there only where it is not so: the
/// policy goes by labels or projects, and changes of these pass while the guard does not answer.
pub const WAIVERS_FAIL_CLOSED: &str = "WaiversFailClosed";

/// The GuardPolicy object as it was last seen, and what became of its spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// UID of the object.
    pub uid: String,
    /// Generation of the spec.
    pub generation: i64,
    /// Why the spec cannot be applied; `None` if it is in force.
    pub rejected: Option<String>,
}

/// Whether the guard knows what Applications claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claims {
    /// Everything is listed and followed.
    Synced,
    /// Something was not listed yet: what, and why.
    NotSynced(String),
    /// Everything was listed once, but something can no longer be followed: what, and why.
    Stale(String),
}

impl GuardPolicyStatus {
    /// The status of the object `observed` while `policy` is in force; `gaps` is what it could say of the Argo CDs of the
    /// cluster and does not. A condition that has the status it had `before` keeps the time of its last transition.
    pub fn of(
        policy: &Policy,
        observed: &Observed,
        claims: &Claims,
        gaps: &[String],
        before: &Self,
        now: Timestamp,
    ) -> Self {
        let accepted = match &observed.rejected {
            None => (true, "Applied", "the spec is in force".to_owned()),
            Some(why) => (
                false,
                "Invalid",
                format!("{why}; the modes above are those of the last good policy, or audit if there was none"),
            ),
        };
        let synced = match claims {
            Claims::Synced => (true, "Synced", "Applications and Namespaces are listed and followed".to_owned()),
            Claims::NotSynced(why) => {
                (false, "NotSynced", format!("deletes are refused where a rule enforces, because {why}"))
            }
            Claims::Stale(why) => (false, "Stale", format!("deletes are judged by what was known before; {why}")),
        };
        let known = match gaps {
            [] => (true, "Known", "every Argo CD is named and every cluster name is resolved".to_owned()),
            [_, ..] => (false, "NotKnown", some(gaps, MAX_GAPS)),
        };
        let ready = match (accepted.0, synced.0) {
            (true, true) => (true, "Guarding", "reviews are judged by this spec and by current claims".to_owned()),
            (false, _) => (false, "PolicyNotAccepted", "see condition PolicyAccepted".to_owned()),
            (true, false) => (false, "ClaimsNotSynced", "see condition ClaimsSynced".to_owned()),
        };
        let condition = |kind: &str, (holds, reason, message): (bool, &str, String)| {
            let status = if holds { "True" } else { "False" };
            let since = before.conditions.iter().find(|old| old.kind == kind && old.status == status);
            StatusCondition {
                kind: kind.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message,
                last_transition_time: since.map_or_else(|| now.to_string(), |old| old.last_transition_time.clone()),
            }
        };
        let unasked = policy.changed_unasked();
        let waivers = (!unasked.is_empty()).then(|| {
            let message = format!(
                "some lines of the policy go by what passes unasked while the guard does not answer: {}; prefer names of \
                 Namespaces, or labels under cascade-guard.io/",
                unasked.join(", ")
            );
            (false, "ChangesPassUnasked", message)
        });
        Self {
            observed_generation: observed.generation,
            modes: RuleKey::ALL
                .iter()
                .copied()
                .map(|rule| (rule.as_str().to_owned(), policy.base_mode(rule)))
                .collect(),
            conditions: [
                Some(condition(READY, ready)),
                Some(condition(CLAIMS_SYNCED, synced)),
                Some(condition(INSTALLATIONS_KNOWN, known)),
                Some(condition(POLICY_ACCEPTED, accepted)),
                waivers.map(|waivers| condition(WAIVERS_FAIL_CLOSED, waivers)),
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Mode;

    const NOW: &str = "2026-11-29T12:00:00Z";
    const LATER: &str = "2026-11-29T13:00:00Z";

    fn status(rejected: Option<&str>, claims: &Claims, before: &GuardPolicyStatus, now: &str) -> GuardPolicyStatus {
        let spec = serde_saphyr::from_str("rules: {sharedClaim: {mode: enforce}, syncWave: {mode: 'off'}}").unwrap();
        let policy = Policy::new(spec).unwrap().with_ceiling(Mode::Warn);
        let observed = Observed { uid: "u".to_owned(), generation: 4, rejected: rejected.map(str::to_owned) };
        GuardPolicyStatus::of(&policy, &observed, claims, &[], before, now.parse().unwrap())
    }

    fn words(status: &GuardPolicyStatus) -> Vec<(&str, &str, &str)> {
        status.conditions.iter().map(|c| (c.kind.as_str(), c.status.as_str(), c.reason.as_str())).collect()
    }

    #[test]
    fn modes_are_those_in_force_under_the_ceiling() {
        let status = status(None, &Claims::Synced, &GuardPolicyStatus::default(), NOW);
        assert_eq!((status.modes["sharedClaim"], status.modes["syncWave"]), (Mode::Warn, Mode::Off));
        assert_eq!((status.modes.len(), status.observed_generation), (RuleKey::ALL.len(), 4));
        assert_eq!(
            words(&status),
            [
                ("Ready", "True", "Guarding"),
                ("ClaimsSynced", "True", "Synced"),
                ("InstallationsKnown", "True", "Known"),
                ("PolicyAccepted", "True", "Applied")
            ]
        );
    }

    #[test]
    fn rejected_policy_and_stale_claims_are_not_ready() {
        let rejected = status(Some("spec.x: bad"), &Claims::Synced, &GuardPolicyStatus::default(), NOW);
        assert_eq!(words(&rejected)[0], ("Ready", "False", "PolicyNotAccepted"));
        assert!(rejected.conditions[3].message.starts_with("spec.x: bad"));
        let stale = Claims::Stale("Applications cannot be watched".to_owned());
        let stale = status(None, &stale, &GuardPolicyStatus::default(), NOW);
        assert_eq!(words(&stale)[..2], [("Ready", "False", "ClaimsNotSynced"), ("ClaimsSynced", "False", "Stale")]);
    }

    #[test]
    fn gaps_are_said_and_leave_the_guard_ready() {
        let observed = Observed { uid: "u".to_owned(), generation: 4, rejected: None };
        let gaps: Vec<String> = (0..5).map(|number| format!("gap {number}")).collect();
        let before = GuardPolicyStatus::default();
        let status =
            GuardPolicyStatus::of(&Policy::default(), &observed, &Claims::Synced, &gaps, &before, NOW.parse().unwrap());
        assert_eq!(words(&status)[0], ("Ready", "True", "Guarding"));
        assert_eq!(words(&status)[2], ("InstallationsKnown", "False", "NotKnown"));
        assert!(status.conditions[2].message.contains("gap 2"), "{status:?}");
        assert!(!status.conditions[2].message.contains("gap 3"), "{status:?}");
    }

    #[test]
    fn policy_that_exempts_by_what_anybody_may_change_in_an_outage_is_told() {
        let status = |spec: &str| {
            let policy = Policy::new(serde_saphyr::from_str(spec).unwrap()).unwrap();
            let observed = Observed { uid: "u".to_owned(), generation: 1, rejected: None };
            GuardPolicyStatus::of(
                &policy,
                &observed,
                &Claims::Synced,
                &[],
                &GuardPolicyStatus::default(),
                NOW.parse().unwrap(),
            )
        };
        let by = |key: &str| {
            format!("overrides: [{{match: {{namespaceSelector: {{matchLabels: {{{key}: lab}}}}}}, modes: {{}}}}]")
        };
        let told = status(&by("env"));
        assert_eq!(words(&told)[4], ("WaiversFailClosed", "False", "ChangesPassUnasked"));
        assert!(told.conditions[4].message.contains("label env"), "{}", told.conditions[4].message);
        assert_eq!(words(&told)[0], ("Ready", "True", "Guarding"));
        assert_eq!(status(&by("cascade-guard.io/tier")).conditions.len(), 4);
    }

    #[test]
    fn time_of_a_condition_moves_only_with_its_status() {
        let first = status(None, &Claims::Synced, &GuardPolicyStatus::default(), NOW);
        assert_eq!(status(None, &Claims::Synced, &first, LATER), first, "nothing to write");
        let second = status(Some("bad"), &Claims::Synced, &first, LATER);
        let times: Vec<_> = second.conditions.iter().map(|c| c.last_transition_time.as_str()).collect();
        assert_eq!(times, [LATER, NOW, NOW, LATER]);
    }
}
