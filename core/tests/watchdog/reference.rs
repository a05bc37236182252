//! What must never happen, worked out slowly and from what really is, not from what the watchdog has seen.

use cascade_guard_core::watchdog::{Mode, Phase, RolloutWatchSpec};

use super::{
    cluster::App,
    repository::{Repository, index},
    watcher::{Push, Stored},
};

/// A push, judged before it happened: `repository` is as it was, with the tip that was pushed onto.
pub fn against(
    push: &Push,
    spec: &RolloutWatchSpec,
    repository: &Repository,
    app: &App,
    before: Option<usize>,
) -> Vec<&'static str> {
    let commit = push.commit;
    let tip = repository.commits[push.revert].parents[0];
    let path = format!("{}/", app.name);
    let touches = |commit: usize| repository.paths(commit).iter().any(|file| file.starts_with(&path));
    let mut against = Vec::new();
    let mut check = |is_wrong: bool, what: &'static str| {
        if is_wrong {
            against.push(what);
        }
    };
    check(spec.mode != Mode::Arm, "a commit in shadow caused a push");
    check(!repository.contains(tip, commit), "the commit was not in the branch");
    check(!repository.reverts(tip, commit).is_empty(), "the commit was reverted already");
    check(!repository.contains(app.deployed(), commit), "what is deployed does not contain it");
    check(!touches(commit), "it did not touch the Application");
    check(app.health == "Healthy", "the Application is Healthy");
    check(app.error, "nobody could judge the Application");
    if let Some(before) = before {
        let own = repository.own(commit);
        let others = repository.between(tip, &[before]).into_iter().filter(|other| !own.contains(other));
        let others = others.filter(|other| repository.commits[*other].paths.iter().any(|file| file.starts_with(&path)));
        check(others.count() > 0, "somebody else touched the Application as well");
        check(repository.contains(before, commit), "it was deployed before");
    } else {
        check(true, "what was deployed before is not known");
    }
    against
}

/// What is wrong at the end of a life.
pub fn at_the_end(stored: &Stored, pushes: &[Push], repository: &Repository) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, (spec, status)) in &stored.watches {
        if status.ended.is_none() || !status.phase.is_final() {
            wrong.push(format!("{name} never ends: {status:?}"));
        }
        let commit = index(&spec.commit).unwrap();
        if repository.commits[commit].reverts.as_ref().is_some_and(|(_, watch)| !watch.is_empty()) {
            wrong.push(format!("{name} watches a revert of the watchdog"));
        }
        let own: Vec<&Push> = pushes.iter().filter(|push| push.watch == *name).collect();
        let arrived = own.iter().any(|push| repository.contains(repository.tip, push.revert));
        if arrived && status.phase != Phase::Reverted {
            wrong.push(format!("{name} takes its own revert for {:?}", status.phase));
        }
        if own.is_empty() && status.phase == Phase::Reverted {
            wrong.push(format!("{name} claims a revert that it never made"));
        }
    }
    for push in pushes {
        let same = pushes.iter().filter(|other| other.commit == push.commit);
        // A force push may have dropped the first; then the second is no second one.
        let kept = same.filter(|other| repository.contains(repository.tip, other.revert));
        if kept.count() > 1 {
            wrong.push(format!("{} was reverted twice", push.watch));
        }
    }
    wrong
}
