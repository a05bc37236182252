//! `policy`: a GuardPolicy that cannot be applied is not stored, and one that is in force is not deleted in silence.
//!
//! The schema in the cluster refuses most mistakes while somebody types; some only show when the policy is put together,
//! and an older definition knows less than this program. A guard that restarted over a bad policy would begin with none,
//! which is every rule in audit. So this rule has no mode: it is enforced whatever the policy in force says, and the
//! ceiling, which is there to let deletes through in an emergency, does not reach it.

mod deleted;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Context, Rule};
use crate::{
    admission::{Object, Operation, Request},
    catalog::{
        RuleMeta,
        policy::{META, UNUSABLE},
    },
    decision::{Finding, Severity},
    facts::Facts,
    policy::{POLICY_GROUP, POLICY_KIND, Policy},
    remedy::{Command, Remedy},
};

/// The rule.
pub struct UsablePolicy;

impl Rule for UsablePolicy {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    /// The status is the guard's own to write. A policy may go with whatever is deleted.
    fn applies(&self, request: &Request<'_>) -> bool {
        request.sub_resource.is_empty()
            && (request.target.kind.is(POLICY_GROUP, POLICY_KIND) || request.operation == Operation::Delete)
    }

    fn needs_inventory(&self) -> bool {
        false
    }

    /// Everything about a policy that is written stands in the request.
    fn when_overdue(&self, cx: &Context<'_>, findings: &mut Vec<Finding>) {
        self.check(cx, &mut Facts::closed("there was no time left"), findings);
    }

    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
        if cx.request.operation == Operation::Delete {
            return deleted::check(cx, facts, findings);
        }
        let Some(new) = &cx.request.object else { return };
        // A bad policy that is stored already must still take a label, or lose a finalizer.
        if cx.request.old_object.as_ref().is_some_and(|old| spec(old) == spec(new)) {
            return;
        }
        let Err(error) = Policy::from_object(new.raw.get()) else { return };
        let summary = "the policy cannot be applied as it is written";
        findings.push(
            Finding::new(&UNUSABLE, Severity::Deny, cx.request.target.clone(), summary)
                .detail(error.to_string())
                .remedy("correct that field and apply it again; until then the policy in force stays as it is")
                .remedy(Remedy::run("list every field", Command::new("kubectl explain guardpolicy.spec --recursive"))),
        );
    }
}

/// The text of the spec. The API server writes both objects of a review alike, so equal specs are equal texts.
fn spec<'a>(object: &Object<'a>) -> Option<&'a str> {
    #[derive(Deserialize)]
    struct OnlySpec<'a> {
        #[serde(borrow)]
        spec: &'a RawValue,
    }
    object.decode::<OnlySpec<'a>>().ok().map(|only| only.spec.get())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{World, create, details, update};
    use crate::{
        decision::{Decision, Effect},
        policy::Mode,
    };

    fn policy(spec: &Value) -> Value {
        json!({"apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": "default"},
            "spec": spec})
    }

    fn bad() -> Value {
        policy(&json!({"overrides": [{"match": {"namespaces": ["team-[a"]}, "modes": {}}]}))
    }

    fn judge(review: &Value) -> Decision {
        World::new("rules: {}").judge(review)
    }

    #[test]
    fn bad_policy_is_refused_though_every_rule_is_in_audit() {
        for review in [create("ops", &bad()), update("ops", &policy(&json!({})), &bad())] {
            let decision = judge(&review);
            assert!(!decision.allowed());
            let outcome = &decision.outcomes[0];
            assert_eq!((outcome.finding.rule.id, outcome.effect), ("policy", Effect::Refused));
            assert_eq!(
                (outcome.resolved.mode, outcome.resolved.decided_by.as_str()),
                (Mode::Enforce, "always enforced")
            );
            assert!(
                details(&decision)[0].starts_with("spec.overrides[0].match.namespaces[0]: `team-[a` is no pattern")
            );
        }
    }

    #[test]
    fn ceiling_does_not_let_a_bad_policy_through() {
        assert!(!World::new("rules: {}").under(Mode::Off).judge(&create("ops", &bad())).allowed());
    }

    #[test]
    fn what_the_schema_would_refuse_is_refused_with_its_place() {
        let decision = judge(&create("ops", &policy(&json!({"rules": {"sharedClaim": {"mode": "strict"}}}))));
        let said = &details(&decision)[0];
        assert!(said.contains("spec.rules.sharedClaim.mode") && said.contains("enforce"), "{said}");
    }

    #[test]
    fn good_policy_passes_without_a_word() {
        let good = policy(&json!({"rules": {"sharedClaim": {"mode": "enforce"}}}));
        assert!(judge(&create("ops", &good)).is_plain_allow());
        assert!(judge(&update("ops", &bad(), &good)).is_plain_allow());
    }

    #[test]
    fn write_that_leaves_a_bad_spec_alone_passes() {
        let mut labelled = bad();
        labelled["metadata"]["labels"] = json!({"team": "platform"});
        assert!(judge(&update("ops", &bad(), &labelled)).allowed());
        let mut status = update("guard", &policy(&json!({})), &bad());
        status["request"]["subResource"] = json!("status");
        assert!(judge(&status).is_plain_allow());
    }
}
