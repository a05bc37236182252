//! Answers to requests that could not be judged at all: a review that does not make sense, a fault of our own.

use super::render::warning;
use crate::{admission::Response, policy::Policy, text::clip};

/// The answer to a request that no rule could look at, because of `reason`.
///
/// A delete cannot be undone and is refused, unless the policy refuses nothing at all; anything else only earns a
/// warning.
pub fn unjudged(delete: bool, policy: &Policy, reason: &str) -> Response {
    if delete && policy.may_refuse() {
        let message = clip(
            &format!(
                "cascade-guard denied this delete, because it cannot tell what would go with it: {reason}.\n\
                 What to do:\n\
                 - try again; if it stays so, look into the log of cascade-guard and report it as a fault:\n    \
                 kubectl -n cascade-guard logs deploy/cascade-guard"
            ),
            1000,
        );
        return Response { message, ..Response::default() };
    }
    let line = warning(&format!("cascade-guard could not judge this request and lets it pass: {reason}"));
    Response { allowed: true, warnings: vec![line], ..Response::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Mode;

    fn enforcing() -> Policy {
        let spec = serde_saphyr::from_str("rules: {syncWave: {mode: enforce}}").unwrap();
        Policy::new(spec).unwrap()
    }

    #[test]
    fn only_a_delete_is_refused() {
        let refused = unjudged(true, &enforcing(), "it is nonsense");
        assert!(!refused.allowed && refused.message.contains("it is nonsense"));
        let passed = unjudged(false, &enforcing(), "it is\nnonsense");
        assert!(passed.allowed && passed.warnings[0].ends_with("it is nonsense"));
    }

    #[test]
    fn policy_that_refuses_nothing_refuses_no_unjudged_delete() {
        assert!(unjudged(true, &Policy::default(), "why").allowed);
        assert!(unjudged(true, &enforcing().with_ceiling(Mode::Audit), "why").allowed);
    }
}
