//! What git is asked: trailers, cursors, history.

use cascade_guard::watchdog::{
    git::Git,
    history::{answer, candidates},
};
use cascade_guard_core::watchdog::{
    Phase,
    facts::{Answer, Question},
    trailer::{Message, wishes},
};

use super::{
    argo::App,
    developer::Developer,
    stage::{Stage, git},
};

const URL: &str = "https://git.example.com/org/shop.git";

fn world() -> (Stage, Developer, Git) {
    let stage = Stage::new(URL, "", "");
    let developer = Developer::new(&stage);
    let git = Git::local(&developer.clone);
    (stage, developer, git)
}

#[tokio::test]
async fn trailers_are_those_that_git_finds() {
    let (_stage, developer, git) = world();
    let keys = ["Watchdog".to_owned()];
    let long = "Signed-off-by: a <a@example.com>";
    for (message, good, bad) in [
        ("s\n\nWatchdog: app=web".to_owned(), 1, 0),
        ("s\n\nbody\n\nwatchdog: app=web\nReviewed-by: x".to_owned(), 1, 0),
        (format!("s\n\nWatchdog: app=web\n{long}\n(cherry picked from commit 0123)"), 1, 0),
        ("s\n\nWatchdog: app=web\n  deadline=60\n  stable=10".to_owned(), 1, 0),
        ("s\n\nWatchdog: app=web\n\nCo-authored-by: x <x@example.com>".to_owned(), 0, 1),
        ("s\n\nsome words\nWatchdog: app=web".to_owned(), 0, 1),
        ("s\n---\n\nWatchdog: app=web".to_owned(), 1, 0),
        ("s\n\nWatchdog: app=web\n---\nnotes".to_owned(), 0, 1),
        ("s\n\nWatchdog: app=web colour=red".to_owned(), 0, 1),
        ("s\n\nthe watchdog: it watches".to_owned(), 0, 0),
    ] {
        let commit = developer.commit(&[], &message);
        let found = candidates(&git, None, &commit, &keys).await.unwrap();
        let wishes: Vec<_> = found
            .iter()
            .flat_map(|found| wishes(Message { text: &found.text, trailers: &found.trailers }, &keys, "argocd"))
            .collect();
        let right = wishes.iter().filter(|wish| wish.is_ok()).count();
        assert_eq!((right, wishes.len() - right), (good, bad), "{message}: {wishes:?}");
    }
}

#[tokio::test]
async fn restart_misses_no_commit_and_judges_none_twice() {
    let (mut stage, developer, _) = world();
    let old = developer.watched("before the first look", "shadow");
    stage.cycle().await.unwrap();
    assert!(stage.memory.watches.lock().is_empty(), "history is not judged: {old}");
    let mut commits = Vec::new();
    for index in 0..4 {
        commits.push(developer.watched(&format!("v{index}"), "shadow"));
        if index % 2 == 0 {
            stage.restart();
        }
        if index != 1 {
            stage.pass(1.0);
            stage.cycle().await.unwrap();
        }
    }
    stage.cycle().await.unwrap();
    assert_eq!(stage.memory.watches.lock().len(), commits.len());
    let told = stage.memory.watches.lock().values().map(|kept| kept.version.clone()).collect::<Vec<_>>();
    assert_eq!(told.len(), 4);
}

#[tokio::test]
async fn force_push_that_drops_the_cursor_begins_anew_at_the_tip() {
    let (mut stage, developer, _) = world();
    stage.cycle().await.unwrap();
    let dropped = developer.watched("one", "shadow");
    let app = App::well("web", URL, &developer.git(&["rev-parse", "HEAD^"]), stage.now);
    stage.show(&app.object());
    stage.cycle().await.unwrap();
    developer.git(&["reset", "--quiet", "--hard", "HEAD^"]);
    developer.watched("rewritten", "shadow");
    stage.cycle().await.unwrap();
    let watches = stage.memory.watches.lock().clone();
    assert_eq!(watches.len(), 1, "the new tip is where reading begins");
    let status = &watches[&format!("web-{}", &dropped[..10])].status;
    assert_eq!(status.phase, Phase::Superseded, "{status:?}");
    developer.watched("next", "shadow");
    stage.cycle().await.unwrap();
    assert_eq!(stage.memory.watches.lock().len(), 2);
}

#[tokio::test]
async fn commits_that_a_merge_brought_are_not_somebody_elses() {
    let (_stage, developer, git) = world();
    let deployed = developer.head();
    developer.git(&["checkout", "--quiet", "-b", "topic"]);
    developer.commit(&[("web/a", "1")], "topic");
    developer.git(&["checkout", "--quiet", "main"]);
    let beside = developer.commit(&[("web/b", "1")], "beside");
    developer.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "topic"]);
    let merge = developer.head();
    let question = Question::Others { tip: merge.clone(), deployed: vec![deployed], commit: merge.clone() };
    let Answer::Others(others) = answer(&git, &question).await else { panic!("no answer") };
    assert_eq!(others.iter().map(|other| other.commit.as_str()).collect::<Vec<_>>(), [beside.as_str()]);
    let Answer::Change(change) = answer(&git, &Question::Change(merge)).await else { panic!("no answer") };
    assert_eq!((change.paths, change.parents.len()), (vec!["web/a".to_owned()], 2));
}

#[tokio::test]
async fn revert_of_the_merge_that_brought_a_commit_is_found() {
    let (_stage, developer, git) = world();
    developer.git(&["checkout", "--quiet", "-b", "topic"]);
    let brought = developer.commit(&[("web/a", "1")], "topic");
    developer.git(&["checkout", "--quiet", "main"]);
    let before = developer.commit(&[("x", "1")], "beside");
    developer.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "topic"]);
    developer.git(&["revert", "--no-edit", "-m", "1", "HEAD"]);
    let revert = developer.head();
    let reverts = async |commit: &str| {
        let question = Question::Reverts { tip: revert.clone(), commit: commit.to_owned() };
        match answer(&git, &question).await {
            Answer::Reverts(found) => found.into_iter().map(|found| found.commit).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reverts(&brought).await, std::slice::from_ref(&revert));
    assert!(reverts(&before).await.is_empty(), "that one was there before the merge");
}

#[tokio::test]
async fn folders_that_reach_outside_are_found() {
    let (_stage, developer, git) = world();
    developer.commit(
        &[
            ("plain/a.yaml", "see https://example.com/../x"),
            ("own/kustomization.yaml", "resources: [a.yaml]"),
            ("up/kustomization.yaml", "resources: [../base]"),
            ("far/kustomization.yaml", "resources: [github.com/org/repo//base?ref=main]"),
            ("chart/Chart.yaml", "dependencies: [{repository: 'file://../lib'}]"),
            ("charts/Chart.yaml", "dependencies: [{repository: 'https://charts.example.com'}]"),
        ],
        "folders",
    );
    std::os::unix::fs::symlink("../web", developer.clone.join("plain/link")).unwrap();
    let before = developer.head();
    let linked = developer.commit(&[], "a link");
    for (revision, path, outside) in [
        (&before, "plain", false),
        (&linked, "plain", true),
        (&before, "own", false),
        (&before, "up", true),
        (&before, "far", true),
        (&before, "chart", true),
        (&before, "charts", false),
        (&before, "nowhere", false),
        (&before, "", true),
    ] {
        let question = Question::Outside { revision: revision.clone(), path: path.to_owned() };
        assert_eq!(answer(&git, &question).await, Answer::Is(outside), "{path}");
    }
}

#[tokio::test]
async fn what_git_does_not_have_is_unknown_and_no_option_is_taken_from_data() {
    let (_stage, developer, git) = world();
    let head = developer.head();
    let absent = "f".repeat(40);
    for question in [
        Question::Contains { revision: absent.clone(), commit: head.clone() },
        Question::Contains { revision: head.clone(), commit: absent.clone() },
        Question::Contains { revision: "--help".to_owned(), commit: head.clone() },
        Question::Change(absent),
        Question::Change("--output=stolen".to_owned()),
        Question::Outside { revision: "--help".to_owned(), path: String::new() },
    ] {
        assert_eq!(answer(&git, &question).await, Answer::Unknown, "{question:?}");
    }
    let odd = developer.commit(&[("--web/-d", "1"), ("web/ü [x]*", "1")], "odd names");
    let Answer::Change(change) = answer(&git, &Question::Change(odd)).await else { panic!("no answer") };
    assert_eq!(change.paths, ["--web/-d", "web/ü [x]*"]);
}

#[tokio::test]
async fn odd_file_names_are_reverted_like_any_others() {
    let (mut stage, developer, _) = world();
    let mut app = App::well("web", URL, &developer.head(), stage.now);
    stage.show(&app.object());
    stage.cycle().await.unwrap();
    let message = "web: odd\n\nWatchdog: app=web deadline=60 stable=10 mode=arm";
    let files = [("web/-x", "1"), ("web/ü [x]*?!#", "1"), ("web/d.yaml", "2"), ("web/a b", "1")];
    let commit = developer.commit(&files, message);
    developer.push();
    stage.cycle().await.unwrap();
    app.begin(&commit, stage.now);
    stage.show(&app.object());
    app.finish("Degraded", stage.now);
    stage.pass(1.0);
    stage.show(&app.object());
    stage.glance().await.unwrap();
    stage.pass(61.0);
    stage.cycle().await.unwrap();
    assert_eq!(stage.watch(&format!("web-{}", &commit[..10])).status.phase, Phase::Reverted);
    assert_eq!(git(&stage.server(), &["ls-tree", "--name-only", "main", "web/"]), "web/d.yaml");
}
