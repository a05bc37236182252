//! What holds for every world.

use serde_json::Value;

use crate::{
    json::text,
    judged::{Answer, Judged},
    model::is_undecided,
    run::{Fault, Outcome},
    same::{renamed, shuffled, with_a_claimant, with_something_unrelated},
    world::World,
};

/// Compares two answers: their verdicts, the rules that refuse, and with `words` what they say.
fn compare(what: &str, before: &Answer, after: &Answer, words: bool) -> Outcome {
    let rules = |answer: &Answer| answer.rules.iter().copied().collect::<Vec<_>>().join(" and ");
    let kind = if before.allowed != after.allowed || before.rules != after.rules {
        format!("{what}: refused by ({}) becomes refused by ({})", rules(before), rules(after))
    } else if words && before.said != after.said {
        format!("{what}: other words")
    } else {
        return Outcome::Holds;
    };
    let (was, is) = (before.allowed, after.allowed);
    let story = format!("before, allowed is {was}:\n{}\nafter, allowed is {is}:\n{}", before.said, after.said);
    Outcome::Broken(Fault { kind, story })
}

fn review(world: &World) -> Option<Answer> {
    Judged::new(world)?.review(world)
}

/// "review, plan and audit agree"
pub fn agree(world: &World, judged: &Judged, answer: &Answer) -> Outcome {
    // Both foresee a delete that says nothing of how.
    let simple = World { propagation: String::new(), ..world.clone() };
    let asked = if world.propagation == "Orphan" { judged.review(&simple) } else { None };
    let review = asked.as_ref().unwrap_or(answer);
    let (Some(plan), Some(audit)) = (judged.plan(&simple), judged.audit(&simple)) else { return Outcome::Silent };
    match compare("plan", review, &plan, false) {
        Outcome::Holds => compare("audit", review, &audit, false),
        broken => broken,
    }
}

/// An Application more is not unrelated to its definition, its project, or the Namespace it lives in.
fn is_unrelated_to_applications(root: &Value) -> bool {
    let (kind, name) = (text(root, "/kind"), text(root, "/metadata/name"));
    !["CustomResourceDefinition", "AppProject"].contains(&kind) && (kind, name) != ("Namespace", "argocd")
}

/// What makes another world of one.
type Change<'a> = &'a dyn Fn(&World) -> World;

/// "order of lists, objects and Applications never matters; an unrelated object changes nothing; renaming everything
/// consistently changes nothing": all at once, and where that changes something, one after the other.
pub fn stays_the_same(world: &World, _: &Judged, answer: &Answer) -> Outcome {
    if is_undecided(world) {
        return Outcome::Silent;
    }
    let unrelated = is_unrelated_to_applications(world.root());
    let more = |world: &World| if unrelated { with_something_unrelated(world) } else { world.clone() };
    let all = || review(&renamed(&shuffled(&more(world))));
    let is_same = |other: &Answer| other.allowed == answer.allowed && other.rules == answer.rules;
    match all() {
        None => return Outcome::Silent,
        Some(other) if is_same(&other) => return Outcome::Holds,
        Some(_) => {}
    }
    let changes: [(&str, Change<'_>); 3] =
        [("another order", &shuffled), ("something unrelated", &more), ("other names", &renamed)];
    for (what, change) in changes {
        let Some(other) = review(&change(world)) else { return Outcome::Silent };
        if let Outcome::Broken(fault) = compare(what, answer, &other, false) {
            return Outcome::Broken(fault);
        }
    }
    all().map_or(Outcome::Silent, |other| compare("another order and other names", answer, &other, false))
}

/// "for shared-claim, a further claimant that runs no operation and lists nothing for pruning never turns a refusal into an
/// admission"
pub fn claimant_admits_nothing(world: &World, _: &Judged, answer: &Answer) -> Outcome {
    if !answer.rules.contains("shared-claim") {
        return Outcome::Silent;
    }
    match review(&with_a_claimant(world)) {
        Some(after) if after.rules.contains("shared-claim") => Outcome::Holds,
        Some(after) => compare("another claimant", answer, &after, false),
        None => Outcome::Silent,
    }
}
