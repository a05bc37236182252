//! What must all hold before a revert. Each condition has a name, and the default of every one is no.

use super::{
    circuit::ALL,
    circumstances::Circumstances,
    facts::{Answer, Asked, Change, Facts, Question},
    health::Condition,
    looks::{Applications, digest, holds},
    schema::{AppRef, Expect, Mode, RolloutWatchSpec, RolloutWatchStatus, State},
    settings::Settings,
    source::{Reach, reach},
    updaters::lives_in_cluster,
    view::{View, is_of},
};
use crate::text::{plural, some};

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Why it is not met; `None` if it is.
    pub against: Option<String>,
}

impl Check {
    fn new(name: &'static str, against: Option<String>) -> Self {
        Self { name, against }
    }
}

/// What is judged.
pub(super) struct Failure<'a> {
    pub spec: &'a RolloutWatchSpec,
    pub status: &'a RolloutWatchStatus,
    pub view: &'a View,
    pub tip: &'a str,
    pub condition: &'a Condition,
    /// Whether there was enough time in which it could be judged.
    pub judged: bool,
}

/// All conditions; `None` while something is asked.
pub(super) fn checks(failure: &Failure<'_>, around: &Circumstances<'_>, facts: &mut Facts) -> Option<Vec<Check>> {
    let Failure { spec, status, view, tip, condition, judged } = failure;
    let app = &spec.application;
    let change = match facts.ask(Question::Change(spec.commit.clone()))? {
        Answer::Change(change) => Some(change),
        _ => None,
    };
    let open = around.open.iter().find(|opening| opening.application == ALL || opening.application == app.to_string());
    let branch = facts.surely_contains(tip, &spec.commit)?;
    Some(vec![
        Check::new("mode", (spec.mode != Mode::Arm).then(|| "the trailer says mode=shadow".to_owned())),
        Check::new("armable", armable(app, around.settings)),
        Check::new("reached", status.reached.is_none().then(|| "it was never deployed".to_owned())),
        Check::new("well-before", well_before(spec, status)),
        Check::new("nobody-else", nobody_else(failure, change.as_ref(), around, facts)?),
        Check::new("git-is-truth", lives_in_cluster(view, around.applications, around.updaters)),
        Check::new("prune", prune(failure, change.as_ref(), around, facts)?),
        Check::new(
            "circuit",
            open.map(|opening| format!("the circuit is open for {}: {}", scope(&opening.application), opening.reason)),
        ),
        Check::new("branch", (!branch).then(|| format!("the commit is not in {}", spec.branch))),
        Check::new("lease", (!around.holds_lease).then(|| "this replica does not hold the lease".to_owned())),
        Check::new(
            "ill",
            match condition {
                Condition::Ill(_) => None,
                Condition::Green(_) => Some("it is well".to_owned()),
                Condition::Unclear(why) | Condition::Unjudged(why) => Some(why.clone()),
            },
        ),
        Check::new(
            "judged",
            match condition {
                Condition::Unjudged(why) => Some(why.clone()),
                _ => (!judged).then(|| "for too long it could not be judged".to_owned()),
            },
        ),
        Check::new("first-parent", first_parent(failure, change.as_ref(), facts)?),
    ])
}

fn scope(application: &str) -> &str {
    if application == ALL { "all Applications" } else { application }
}

/// Why the configuration does not let it be armed.
pub fn armable(app: &AppRef, settings: &Settings) -> Option<String> {
    if settings.spec.mode_ceiling != Mode::Arm {
        return Some("the ceiling is shadow".to_owned());
    }
    (!settings.is_armable(app)).then(|| format!("the configuration does not list {app} under arm.applications"))
}

/// It was well before, or the commit is not what broke it.
fn well_before(spec: &RolloutWatchSpec, status: &RolloutWatchStatus) -> Option<String> {
    let Some(before) = &status.before else { return Some("nobody saw it before the commit was deployed".to_owned()) };
    let ill = |name: &str, state: &State| match (state.health.as_str(), state.sync.as_str()) {
        ("Healthy", "Synced") => None,
        ("", _) | (_, "") => Some(format!("nobody saw {name} before the commit was deployed")),
        ("Healthy", sync) => Some(format!("{name} was {sync} before")),
        (health, _) => Some(format!("{name} was {health} before")),
    };
    let children = before.children.iter().filter(|_| spec.expect == Expect::Children);
    ill(&spec.application.to_string(), &before.application)
        .or_else(|| children.map(|(name, state)| ill(name, state)).find_map(|why| why))
}

/// The indices of the sources that are of the repository.
fn sources_of(view: &View, repository: &str) -> Vec<usize> {
    (0..view.sources.len()).filter(|index| is_of(&view.sources[*index], repository)).collect()
}

/// This commit touched what the Application is made of, and nothing else did.
fn nobody_else(
    failure: &Failure<'_>,
    change: Option<&Change>,
    around: &Circumstances<'_>,
    facts: &mut Facts,
) -> Asked<Option<String>> {
    let Failure { spec, status, view, tip, .. } = failure;
    let Some(change) = change else { return Some(Some("Git does not say what the commit changed".to_owned())) };
    let Some(before) = &status.before else {
        return Some(Some("what was deployed before is not known".to_owned()));
    };
    if let Some(why) = other_sources(spec, view, &before.application) {
        return Some(Some(why));
    }
    let mut parts: Vec<(&View, &State)> = vec![(*view, &before.application)];
    let mut touched = false;
    if spec.expect == Expect::Children {
        for (name, state) in &before.children {
            let child = AppRef::parse(name, "").ok().and_then(|child| around.applications.get(&child));
            let Some(child) = child else { continue };
            let of = sources_of(&child.view, &spec.repository);
            let foreign = of.is_empty() && child.view.comparison.revisions != state.deployed;
            if foreign {
                return Some(Some(format!("{name}, which comes from elsewhere, was deployed anew as well")));
            }
            if !of.is_empty() {
                parts.push((child.view.as_ref(), state));
            }
        }
    }
    for (part, state) in parts {
        let of = sources_of(part, &spec.repository);
        let reach = reach(&part.sources, &of, tip, facts)?;
        touched |= reach.includes(&change.paths);
        if let Some(why) = others(spec, tip, part, state, &reach, facts)? {
            return Some(Some(why));
        }
    }
    Some((!touched).then(|| "the commit touched nothing that the Application is made of".to_owned()))
}

/// Commits in the branch that were not deployed before and touched it, this one aside.
fn others(
    spec: &RolloutWatchSpec,
    tip: &str,
    view: &View,
    state: &State,
    reach: &Reach,
    facts: &mut Facts,
) -> Asked<Option<String>> {
    let of = sources_of(view, &spec.repository);
    let deployed: Vec<String> = of.iter().filter_map(|index| state.deployed.get(*index).cloned()).collect();
    if deployed.len() != of.len() || deployed.is_empty() || !deployed.iter().all(|id| super::facts::is_object_id(id)) {
        return Some(Some(format!("what {} had deployed before is not known", view.app)));
    }
    let question = Question::Others { tip: tip.to_owned(), deployed, commit: spec.commit.clone() };
    let Answer::Others(others) = facts.ask(question)? else {
        return Some(Some(format!("Git does not say what else came since {} was deployed before", view.app)));
    };
    let others: Vec<String> = others
        .iter()
        .filter(|other| reach.includes(&other.paths))
        .map(|other| other.commit.get(..10).unwrap_or(&other.commit).to_owned())
        .collect();
    let why = if reach.everything.is_empty() { String::new() } else { format!(" ({})", reach.everything) };
    Some((!others.is_empty()).then(|| {
        let commits = plural(others.len(), "commit");
        format!("{} may be to blame as well: {commits} {}{why}", view.app, some(&others, 3))
    }))
}

/// Another source changed in the same deployment, or the Application itself did.
fn other_sources(spec: &RolloutWatchSpec, view: &View, before: &State) -> Option<String> {
    if digest(&view.sources) != before.sources {
        return Some("the sources in the Application were changed as well".to_owned());
    }
    let now = &view.comparison.revisions;
    let changed =
        view.sources.iter().enumerate().find(|(index, source)| {
            !is_of(source, &spec.repository) && now.get(*index) != before.deployed.get(*index)
        })?;
    Some(format!("another source changed as well: {}", super::repository::without_credentials(&changed.1.repository)))
}

/// With prune a wrong revert deletes.
fn prune(
    failure: &Failure<'_>,
    change: Option<&Change>,
    around: &Circumstances<'_>,
    facts: &mut Facts,
) -> Asked<Option<String>> {
    let Failure { spec, tip, .. } = failure;
    let Some(change) = change else { return Some(Some("Git does not say what the commit changed".to_owned())) };
    let mut removed = Vec::new();
    for observed in around.applications.iter().filter(|observed| observed.view.prunes()) {
        let view = &observed.view;
        let of = sources_of(view, &spec.repository);
        let follows = of.iter().any(|index| view.sources[*index].tracks(&spec.branch, around.is_default_branch));
        if !follows || !reach(&view.sources, &of, tip, facts)?.includes(&change.paths) {
            continue;
        }
        if !around.settings.accepts_prune(&view.app) {
            return Some(Some(format!("{} prunes, and the commit touches it", view.app)));
        }
        match observed.added(&spec.repository, &spec.commit, facts)? {
            Some(added) => removed.extend(added.into_iter().map(|object| (view.app.clone(), object))),
            None => return Some(Some(format!("nobody saw what {} consisted of before", view.app))),
        }
    }
    if removed.is_empty() {
        return Some(None);
    }
    removed.sort();
    removed.dedup();
    Some(match facts.ask(Question::Removal(removed))? {
        Answer::Removal(against) if against.is_empty() => None,
        Answer::Removal(against) => Some(some(&against, 3)),
        _ => Some("nobody can say what the revert would remove".to_owned()),
    })
}

/// A merge the other way round has what was deployed on the wrong side.
fn first_parent(failure: &Failure<'_>, change: Option<&Change>, facts: &mut Facts) -> Asked<Option<String>> {
    let Failure { spec, status, view, .. } = failure;
    let Some(change) = change else { return Some(Some("Git does not name its parents".to_owned())) };
    let Some(first) = change.parents.first() else {
        return Some(Some("it is the first commit of the repository".to_owned()));
    };
    if change.parents.len() < 2 {
        return Some(None);
    }
    let Some(before) = &status.before else {
        return Some(Some("what was deployed before is not known".to_owned()));
    };
    for index in sources_of(view, &spec.repository) {
        let deployed = before.application.deployed.get(index).map_or("", String::as_str);
        if !super::facts::is_object_id(deployed) || !facts.surely_contains(first, deployed)? {
            return Some(Some("the first parent of this merge does not hold what was deployed before".to_owned()));
        }
    }
    Some(None)
}

/// The conditions that can be judged without a commit, for one Application: may it be armed, and if not, why.
pub fn standing(view: &View, applications: &Applications, around: &Circumstances<'_>) -> Vec<Check> {
    let prune = view.prunes() && !around.settings.accepts_prune(&view.app);
    vec![
        Check::new("armable", armable(&view.app, around.settings)),
        Check::new("git-is-truth", lives_in_cluster(view, applications, around.updaters)),
        Check::new("prune", prune.then(|| format!("{} prunes", view.app))),
    ]
}

/// Whether what is deployed now is known to lack the commit: a sync since then deployed something else, or the cluster is in
/// sync with something else.
pub(super) fn is_replaced(view: &View, spec: &RolloutWatchSpec, deployment: &str, facts: &mut Facts) -> Option<bool> {
    if let Some(last) = view.history.last()
        && last.key != deployment
        && holds(last, &spec.repository, &spec.commit, facts)? == Some(false)
    {
        return Some(true);
    }
    let settled = view.is_valid() && view.sync == "Synced" && !view.busy;
    Some(settled && holds(&view.comparison, &spec.repository, &spec.commit, facts)? == Some(false))
}
