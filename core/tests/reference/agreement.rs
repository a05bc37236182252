//! The core says what the reference model says.

use std::collections::BTreeSet;

use crate::{
    judged::{Answer, Judged},
    model::decide,
    run::{Fault, Outcome},
    world::World,
};

/// Whether the DELETE may pass, and which rules refuse it.
pub fn agrees(world: &World, _: &Judged, answer: &Answer) -> Outcome {
    let verdict = decide(world);
    if answer.allowed == verdict.allowed() {
        return Outcome::Holds;
    }
    let verb = |allowed| if allowed { "allows" } else { "refuses" };
    let rules = |rules: &BTreeSet<&str>| rules.iter().copied().collect::<Vec<_>>().join(" and ");
    let kind = format!(
        "the model {} it ({:?}; {}), the core {} it ({})",
        verb(verdict.allowed()),
        verdict.why,
        rules(&verdict.rules()),
        verb(answer.allowed),
        rules(&answer.rules),
    );
    Outcome::Broken(Fault { kind, story: format!("{verdict}the core {} it\n{}", verb(answer.allowed), answer.said) })
}
