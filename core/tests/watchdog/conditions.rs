//! Each condition for a revert by itself: a world in which all are met, and one thing that is otherwise.

use cascade_guard_core::{
    object::ObjectRef,
    watchdog::{
        Applications, Circumstances, Mode, Phase, RolloutWatchSpec, RolloutWatchStatus, Settings, Step, View,
        circumstances::Sibling,
        facts::{Answer, Facts, Question},
        judge::judge,
        schema::{AppRef, Expect, Opening},
        updaters::ImageUpdater,
    },
};
use jiff::{SignedDuration, Timestamp};

use super::{
    cluster::{App, URL},
    repository::{Commit, Repository, id},
    watcher::settings,
};

/// A commit that is deployed and makes its Application ill.
struct Scene {
    repository: Repository,
    /// What the Applications look like, at which second.
    looks: Vec<(i64, View)>,
    spec: RolloutWatchSpec,
    settings: &'static str,
    updaters: Vec<ImageUpdater>,
    open: Vec<Opening>,
    siblings: Vec<Sibling>,
    holds_lease: bool,
    /// What is answered about removals; `None` if nobody can say.
    removal: Option<Vec<String>>,
    /// Seconds at which it is judged.
    at: Vec<i64>,
}

fn epoch() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn second(second: i64) -> Timestamp {
    epoch() + SignedDuration::from_secs(second)
}

fn commit(repository: &mut Repository, paths: &[&str]) -> usize {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    let parents = if repository.commits.is_empty() { Vec::new() } else { vec![repository.tip] };
    repository.tip = repository.add(Commit { parents, paths, ..Commit::default() });
    repository.tip
}

impl Scene {
    fn new() -> Self {
        let mut repository = Repository::default();
        let first = commit(&mut repository, &["web/d", "api/d"]);
        let bad = commit(&mut repository, &["web/d"]);
        let mut app = App::new("web", first, second(-100));
        let mut looks = vec![(0, app.view())];
        app.compared = bad;
        app.sync = "OutOfSync";
        app.running = Some((bad, second(2)));
        looks.push((2, app.view()));
        app.running = None;
        app.history.push(bad);
        app.sync = "Synced";
        app.become_("Degraded", second(4));
        looks.push((4, app.view()));
        let spec = RolloutWatchSpec {
            repository: URL.to_owned(),
            branch: "main".to_owned(),
            commit: id(bad),
            application: AppRef::new("argocd", "web"),
            mode: Mode::Arm,
            expect: Expect::Healthy,
            deadline: 60,
            stable: 10,
            seen: Some(second(1)),
            problem: String::new(),
        };
        Self {
            repository,
            looks,
            spec,
            settings: "",
            updaters: Vec::new(),
            open: Vec::new(),
            siblings: Vec::new(),
            holds_lease: true,
            removal: None,
            at: vec![1, 2, 3, 4, 30, 50, 65],
        }
    }

    /// Changes every look at the Application from a second on.
    fn edit(mut self, from: i64, change: impl Fn(&mut View)) -> Self {
        self.looks.iter_mut().filter(|(at, _)| *at >= from).for_each(|(_, view)| change(view));
        self
    }

    fn end(&self) -> Result<RolloutWatchStatus, RolloutWatchStatus> {
        let settings = match self.settings {
            PRUNE => parsed("applications: ['**'], acceptPrune: [web]"),
            ONE_NAMESPACE => parsed("applications: ['*']"),
            other => settings(other),
        };
        let (mut applications, mut facts) = (Applications::default(), Facts::default());
        let mut status = RolloutWatchStatus::default();
        let mut looks = self.looks.iter().peekable();
        let tip = id(self.repository.tip);
        for at in &self.at {
            while let Some((when, view)) = looks.next_if(|(when, _)| when <= at) {
                applications.observe(view.clone(), second(*when));
            }
            let around = Circumstances {
                settings: &settings,
                applications: &applications,
                updaters: &self.updaters,
                readable: true,
                tip: Some(&tip),
                revert_tip: None,
                is_default_branch: true,
                fresh: true,
                siblings: &self.siblings,
                open: &self.open,
                holds_lease: self.holds_lease,
                gap: SignedDuration::from_secs(120),
                now: second(*at),
            };
            loop {
                match judge("web-watch", &self.spec, &status, &around, &mut facts) {
                    Step::Ask => {
                        for question in facts.open.clone() {
                            let answer = match &question {
                                Question::Removal(_) => self.removal.clone().map_or(Answer::Unknown, Answer::Removal),
                                other => self.repository.answer(other),
                            };
                            facts.answer(question, answer);
                        }
                    }
                    Step::Fetch => unreachable!("every look is fresh"),
                    Step::Keep(next) => {
                        status = next;
                        break;
                    }
                    Step::Revert(status) => return Ok(status),
                }
            }
        }
        Err(status)
    }

    /// The conditions that are not met; empty where it is reverted.
    fn unmet(&self) -> Vec<String> {
        match self.end() {
            Ok(status) => {
                assert!(status.unmet.is_empty() && status.conditions.len() == 13);
                Vec::new()
            }
            Err(status) => {
                assert_eq!(status.phase, Phase::WouldRevert, "{status:?}");
                assert!(status.ended.is_some());
                status.unmet
            }
        }
    }
}

#[test]
fn where_all_are_met_it_is_reverted() {
    assert_eq!(Scene::new().unmet(), [] as [&str; 0]);
}

#[test]
fn mode_is_that_of_the_commit() {
    let mut scene = Scene::new();
    scene.spec.mode = Mode::Shadow;
    assert_eq!(scene.unmet(), ["mode"]);
}

#[test]
fn armable_is_what_the_configuration_lists_under_its_ceiling() {
    assert_eq!(Scene { settings: ", modeCeiling: shadow", ..Scene::new() }.unmet(), ["armable"]);
    let mut other = Scene::new().edit(0, |view| view.app.namespace = "team".to_owned());
    other.spec.application.namespace = "team".to_owned();
    // The pattern for the other settings is for one namespace only.
    other.settings = ONE_NAMESPACE;
    assert_eq!(other.unmet(), ["armable"]);
}

#[test]
fn well_before_needs_somebody_who_saw_it() {
    let ill = Scene::new().edit(0, |view| view.health = "Degraded".to_owned());
    assert_eq!(ill.unmet(), ["well-before"]);
    let out_of_sync = Scene::new().edit(0, |_| ());
    let mut looks = out_of_sync.looks;
    looks[0].1.sync = "OutOfSync".to_owned();
    let scene = Scene { looks, ..Scene::new() };
    assert_eq!(scene.unmet(), ["well-before"]);
    // Nobody looked before it was deployed.
    let mut late = Scene::new();
    late.looks = vec![late.looks.remove(2)];
    let unmet = late.unmet();
    assert!(unmet.contains(&"well-before".to_owned()), "{unmet:?}");
}

#[test]
fn nobody_else_means_no_other_commit_that_touched_it() {
    let with = |paths: &[&str]| {
        let mut scene = Scene::new();
        commit(&mut scene.repository, paths);
        scene.unmet()
    };
    assert_eq!(with(&["web/d"]), ["nobody-else"], "a fix that is not deployed yet");
    assert_eq!(with(&["api/d", "docs/x"]), [] as [&str; 0]);
    assert_eq!(with(&["web2/d"]), [] as [&str; 0]);
    // Every commit counts where the source can reach anything.
    let mut anywhere = Scene::new().edit(0, |view| {
        let plugin = view.sources.iter().map(|source| {
            let mut source = source.clone();
            source.is_plugin = true;
            source
        });
        view.sources = plugin.collect();
    });
    commit(&mut anywhere.repository, &["api/d"]);
    assert_eq!(anywhere.unmet(), ["nobody-else"]);
    // The Application was edited as well.
    let edited = Scene::new().edit(2, |view| {
        let edited = view.sources.iter().map(|source| {
            let mut source = source.clone();
            source.text.push_str(" edited");
            source
        });
        view.sources = edited.collect();
    });
    assert_eq!(edited.unmet(), ["nobody-else"]);
}

#[test]
fn nobody_else_means_that_the_commit_touched_it() {
    let mut scene = Scene::new();
    scene.repository.commits[1].paths = vec!["docs/x".to_owned()];
    assert_eq!(scene.unmet(), ["nobody-else"]);
}

#[test]
fn git_is_truth_unless_an_updater_writes_into_the_cluster() {
    let updater = |method: &str| {
        ImageUpdater::read(&serde_json::json!({
            "metadata": {"name": "u", "namespace": "argocd"},
            "spec": {"writeBackConfig": {"method": method}, "applicationRefs": [{"namePattern": "web"}]},
        }))
    };
    assert_eq!(Scene { updaters: vec![updater("argocd")], ..Scene::new() }.unmet(), ["git-is-truth"]);
    assert_eq!(Scene { updaters: vec![updater("git")], ..Scene::new() }.unmet(), [] as [&str; 0]);
    let unknown = vec![ImageUpdater::unreadable("forbidden")];
    assert_eq!(Scene { updaters: unknown, ..Scene::new() }.unmet(), ["git-is-truth"]);
    let annotated = Scene::new().edit(0, |view| view.updated_in_place = true);
    assert_eq!(annotated.unmet(), ["git-is-truth"]);
}

#[test]
fn prune_is_refused_unless_accepted_and_the_plan_says_nothing_against_it() {
    let object = |name: &str| ObjectRef::new("", "ConfigMap", "web", name);
    let pruning = |removal: Option<Vec<String>>, settings: &'static str| {
        let mut scene = Scene::new();
        for (at, view) in &mut scene.looks {
            let mut objects = vec![object("old")];
            if *at >= 4 {
                objects.push(object("new"));
            }
            view.objects = Some(objects.into());
        }
        Scene { settings, removal, ..scene }.unmet()
    };
    assert_eq!(pruning(Some(Vec::new()), ""), ["prune"]);
    assert_eq!(pruning(None, PRUNE), ["prune"], "nobody can say");
    assert_eq!(pruning(Some(vec!["another claims it".to_owned()]), PRUNE), ["prune"]);
    assert_eq!(pruning(Some(Vec::new()), PRUNE), [] as [&str; 0]);
}

/// Stands for settings that let nothing of other namespaces be armed.
const ONE_NAMESPACE: &str = "only argocd";
/// Stands for settings that accept prune.
const PRUNE: &str = ", acceptPrune";

fn parsed(arm: &str) -> Settings {
    let head = "apiVersion: cascade-guard.io/v1alpha1\nkind: WatchdogConfiguration\n";
    Settings::parse(&format!("{head}spec: {{arm: {{{arm}}}}}\n")).unwrap()
}

#[test]
fn circuit_is_open_for_the_application_or_for_all() {
    let open = |application: &str| {
        let opening = Opening { application: application.to_owned(), since: Some(epoch()), reason: "x".to_owned() };
        Scene { open: vec![opening], ..Scene::new() }.unmet()
    };
    assert_eq!(open("argocd/web"), ["circuit"]);
    assert_eq!(open("*"), ["circuit"]);
    assert_eq!(open("argocd/api"), [] as [&str; 0]);
}

#[test]
fn lease_is_held() {
    assert_eq!(Scene { holds_lease: false, ..Scene::new() }.unmet(), ["lease"]);
}

#[test]
fn ill_is_no_matter_of_being_out_of_sync_or_suspended() {
    for (health, sync, busy) in [
        ("Healthy", "OutOfSync", false),
        ("Suspended", "Synced", false),
        ("Healthy", "Synced", true),
        ("", "Synced", false),
    ] {
        let scene = Scene::new().edit(4, |view| {
            view.health = health.to_owned();
            view.sync = sync.to_owned();
            view.busy = busy;
        });
        assert_eq!(scene.unmet(), ["ill"], "{health} {sync} {busy}");
    }
    for health in ["Progressing", "Missing"] {
        assert_eq!(Scene::new().edit(4, |view| view.health = health.to_owned()).unmet(), [] as [&str; 0]);
    }
}

#[test]
fn judged_is_waited_for_once_more() {
    let mut scene = Scene::new().edit(4, |view| view.distrust = Some("its last comparison failed".to_owned()));
    // The sync that brought it has succeeded, so it counts as deployed.
    let waiting = scene.end().unwrap_err();
    assert_eq!((waiting.phase, waiting.ended), (Phase::Reached, None), "{waiting:?}");
    scene.at.extend([100, 130]);
    let unmet = scene.unmet();
    assert_eq!(unmet, ["ill", "judged"]);
}

#[test]
fn first_parent_of_a_merge_holds_what_was_deployed() {
    for (wrong_way, unmet) in [(false, vec![]), (true, vec!["first-parent"])] {
        let mut scene = Scene::new();
        let mut repository = Repository::default();
        let root = commit(&mut repository, &["docs/x"]);
        let deployed =
            repository.add(Commit { parents: vec![root], paths: vec!["api/d".to_owned()], ..Commit::default() });
        let topic =
            repository.add(Commit { parents: vec![root], paths: vec!["web/d".to_owned()], ..Commit::default() });
        let parents = if wrong_way { vec![topic, deployed] } else { vec![deployed, topic] };
        repository.tip = repository.add(Commit { parents, ..Commit::default() });
        if wrong_way {
            // What it brought the other way round touches the Application too, so that this alone is against it.
            repository.commits[deployed].paths = vec!["web/d".to_owned()];
            repository.commits[topic].paths = vec!["api/d".to_owned()];
        }
        let merge = repository.tip;
        scene.spec.commit = id(merge);
        for (at, view) in &mut scene.looks {
            let at_merge = *at >= 2;
            let set = |revisions: &mut Vec<String>, merged: bool| {
                *revisions = vec![id(if merged { merge } else { deployed })];
            };
            set(&mut view.comparison.revisions, at_merge);
            set(&mut view.operation.deploys.revisions, at_merge);
            let last = view.history.len() - 1;
            for (index, entry) in view.history.iter_mut().enumerate() {
                set(&mut entry.revisions, *at >= 4 && index == last);
            }
        }
        scene.repository = repository;
        assert_eq!(scene.unmet(), unmet);
    }
}

#[test]
fn another_watch_of_the_commit_reverts_it_once() {
    let sibling = |reverted, intends| Sibling { name: "other".to_owned(), reverted, intends };
    let settled = Scene { siblings: vec![sibling(true, false)], ..Scene::new() }.end().unwrap_err();
    assert_eq!(settled.phase, Phase::Superseded);
    assert!(settled.message.contains("other"));
    let waits = Scene { siblings: vec![sibling(false, true)], ..Scene::new() }.end().unwrap_err();
    assert_eq!((waits.phase, waits.ended), (Phase::Reached, None), "what the other does is waited for");
}
