//! Whether an Application is well: the three things that are judged apart are "deployed", "well" and "stably so".

use jiff::Timestamp;

use super::{
    facts::{Asked, Facts},
    looks::{Applications, holds},
    schema::{AppRef, Expect, RolloutWatchSpec},
    view::{View, is_of},
};
use crate::text::some;

/// How it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Everything is well; its health last changed then.
    Green(Option<Timestamp>),
    /// Something is ill: Degraded, Progressing or Missing.
    Ill(String),
    /// It is not well, but that is no illness: out of sync, an operation that runs, suspended.
    Unclear(String),
    /// Nobody can judge it.
    Unjudged(String),
}

/// Whether the commit was deployed: a sync at it, or at a later one, has succeeded, or a valid comparison found the cluster
/// in sync with it. `Some(None)` where it was not, and a revision is not known to Git.
pub fn is_deployed(view: &View, repository: &str, commit: &str, facts: &mut Facts) -> Asked<Option<bool>> {
    let operation = &view.operation;
    let synced = (operation.phase == "Succeeded" && operation.whole).then_some(&operation.deploys);
    let compared = (view.is_valid() && view.sync == "Synced").then_some(&view.comparison);
    let mut unknown = false;
    for deployed in view.history.iter().rev().chain(synced).chain(compared) {
        match holds(deployed, repository, commit, facts)? {
            Some(true) => return Some(Some(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Some(if unknown { None } else { Some(false) })
}

/// How the Application of a watch is, with its children where they are expected to be well too.
pub fn condition(
    spec: &RolloutWatchSpec,
    view: &View,
    applications: &Applications,
    is_default_branch: bool,
    facts: &mut Facts,
) -> Option<Condition> {
    let own = own_condition(view, spec, facts)?;
    let Expect::Children = spec.expect else { return Some(own) };
    let mut transition = match own {
        Condition::Unjudged(_) => return Some(own),
        Condition::Green(transition) => transition,
        _ => None,
    };
    let (mut ill, mut unclear, mut unjudged) = (Vec::new(), Vec::new(), Vec::new());
    match own {
        Condition::Ill(why) => ill.push(why),
        Condition::Unclear(why) => unclear.push(why),
        _ => {}
    }
    for child in applications.below(&view.app) {
        match child_condition(&child, spec, applications, is_default_branch, facts)? {
            Condition::Green(since) => transition = transition.max(since),
            Condition::Ill(why) => ill.push(why),
            Condition::Unclear(why) => unclear.push(why),
            Condition::Unjudged(why) => unjudged.push(why),
        }
    }
    let worst = if !ill.is_empty() {
        Condition::Ill(some(&ill, 3))
    } else if !unjudged.is_empty() {
        Condition::Unjudged(some(&unjudged, 3))
    } else if !unclear.is_empty() {
        Condition::Unclear(some(&unclear, 3))
    } else {
        Condition::Green(transition)
    };
    Some(worst)
}

fn own_condition(view: &View, spec: &RolloutWatchSpec, facts: &mut Facts) -> Option<Condition> {
    if let Some(why) = &view.distrust {
        return Some(Condition::Unjudged(format!("{}: {why}", view.app)));
    }
    Some(match holds(&view.comparison, &spec.repository, &spec.commit, facts)? {
        None => Condition::Unjudged(format!("{} was compared at a revision that Git does not know", view.app)),
        Some(false) => Condition::Unclear(format!("{} was compared at a revision without the commit", view.app)),
        Some(true) => seen(view),
    })
}

/// A child that lies in the repository and follows the branch must have looked at the commit: before, it still shows what it
/// was like before. One that is not there or was never deployed is not judged.
fn child_condition(
    child: &AppRef,
    spec: &RolloutWatchSpec,
    applications: &Applications,
    is_default_branch: bool,
    facts: &mut Facts,
) -> Option<Condition> {
    let Some(observed) = applications.get(child) else {
        return Some(Condition::Unjudged(format!("{child} does not exist")));
    };
    let view = &observed.view;
    if let Some(why) = &view.distrust {
        return Some(Condition::Unjudged(format!("{child}: {why}")));
    }
    let follows = |source: &super::source::Source| {
        is_of(source, &spec.repository) && source.tracks(&spec.branch, is_default_branch)
    };
    if view.sources.iter().any(follows) {
        if holds(&view.comparison, &spec.repository, &spec.commit, facts)? != Some(true) {
            return Some(Condition::Unjudged(format!("{child} has not compared the commit")));
        }
        if is_deployed(view, &spec.repository, &spec.commit, facts)? != Some(true) {
            return Some(Condition::Unjudged(format!("{child} has not deployed the commit")));
        }
    } else if view.last_deployed().is_none() {
        return Some(Condition::Unjudged(format!("{child} was never deployed")));
    }
    Some(seen(view))
}

/// What a valid comparison shows.
fn seen(view: &View) -> Condition {
    let app = &view.app;
    match view.health.as_str() {
        "Degraded" | "Progressing" | "Missing" => Condition::Ill(format!("{app} is {}", view.health)),
        "Healthy" if view.busy => Condition::Unclear(format!("an operation on {app} is running")),
        "Healthy" if !view.ill.is_empty() => {
            Condition::Unclear(format!("{app} is Healthy, but lists {}", some(&view.ill, 3)))
        }
        "Healthy" if view.sync == "Synced" => Condition::Green(view.health_since),
        "Healthy" => Condition::Unclear(format!("{app} is {}", view.sync)),
        "" => Condition::Unclear(format!("the health of {app} is not known")),
        other => Condition::Unclear(format!("{app} is {other}")),
    }
}
