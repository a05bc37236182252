//! Watches over real repositories, from the commit to the end.

use cascade_guard_core::watchdog::{
    Phase,
    schema::{Closing, RevertOutcome},
};
use std::os::unix::fs::PermissionsExt;

use super::{
    argo::App,
    developer::Developer,
    stage::{Stage, git},
};

const URL: &str = "https://git.example.com/org/shop.git";

/// A server, a developer and one healthy Application, which the watchdog has seen.
async fn begin(extra: &str, spec: &str) -> (Stage, Developer, App) {
    let mut stage = Stage::new(URL, extra, spec);
    let developer = Developer::new(&stage);
    let app = App::well("web", URL, &developer.head(), stage.now);
    stage.show(&app.object());
    stage.cycle().await.unwrap();
    stage.pass(5.0);
    (stage, developer, app)
}

/// A commit that breaks the Application is pushed and deployed; time passes until its deadline has ended.
async fn break_it(stage: &mut Stage, developer: &Developer, app: &mut App, content: &str, mode: &str) -> String {
    let commit = developer.watched(content, mode);
    stage.cycle().await.unwrap();
    stage.pass(1.0);
    app.begin(&commit, stage.now);
    stage.show(&app.object());
    stage.glance().await.unwrap();
    stage.pass(1.0);
    app.finish("Progressing", stage.now);
    stage.show(&app.object());
    stage.glance().await.unwrap();
    stage.pass(20.0);
    app.become_("Degraded", stage.now);
    stage.show(&app.object());
    stage.glance().await.unwrap();
    stage.pass(50.0);
    commit
}

fn name(commit: &str) -> String {
    format!("web-{}", &commit[..10])
}

fn reverts(stage: &Stage, commit: &str) -> Vec<String> {
    let log = git(&stage.server(), &["log", "--format=%H", &format!("--grep=This reverts commit {commit}"), "main"]);
    log.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn armed_commit_is_reverted_once_and_looked_after_until_it_healed() {
    let (mut stage, developer, mut app) = begin("", "").await;
    let commit = break_it(&mut stage, &developer, &mut app, "bad", "arm").await;
    stage.cycle().await.unwrap();
    let kept = stage.watch(&name(&commit));
    assert_eq!((kept.status.phase, kept.status.ended), (Phase::Reverted, None), "{:?}", kept.status);
    assert_eq!(reverts(&stage, &commit).len(), 1);
    assert_eq!(git(&stage.server(), &["show", "main:web/d.yaml"]), "1");
    let revert = kept.status.revert.unwrap().commit;
    app.begin(&revert, stage.now);
    app.finish("Healthy", stage.now);
    stage.show(&app.object());
    stage.pass(5.0);
    stage.cycle().await.unwrap();
    let status = stage.watch(&name(&commit)).status;
    assert_eq!(status.revert.unwrap().outcome, RevertOutcome::Healed);
    assert!(status.ended.is_some() && stage.memory.watches.lock().len() == 1);
}

#[tokio::test]
async fn shadow_pushes_nothing_and_says_what_it_would_do() {
    let (mut stage, developer, mut app) = begin("", "").await;
    let commit = break_it(&mut stage, &developer, &mut app, "bad", "shadow").await;
    stage.cycle().await.unwrap();
    let status = stage.watch(&name(&commit)).status;
    assert_eq!((status.phase, status.unmet), (Phase::WouldRevert, vec!["mode".to_owned()]));
    assert_eq!(status.conditions.len(), 13);
    assert_eq!(git(&stage.server(), &["rev-parse", "main"]), commit);
}

#[tokio::test]
async fn process_that_dies_at_any_write_leaves_one_revert_and_loses_none() {
    let mut deaths = 0;
    for lives in 0..30 {
        let (mut stage, developer, mut app) = begin("", "").await;
        let commit = break_it(&mut stage, &developer, &mut app, "bad", "arm").await;
        *stage.memory.lives.lock() = Some(lives);
        let died = stage.cycle().await.is_err();
        deaths += u32::from(died);
        for _ in 0..3 {
            stage.pass(5.0);
            stage.restart();
            stage.show(&app.object());
            stage.cycle().await.unwrap();
        }
        assert_eq!(reverts(&stage, &commit).len(), 1, "after {lives} writes");
        assert_eq!(stage.watch(&name(&commit)).status.phase, Phase::Reverted, "after {lives} writes");
        if !died {
            break;
        }
    }
    assert!(deaths >= 2, "an intent and a verdict are written: {deaths}");
}

#[tokio::test]
async fn without_the_lease_nothing_is_written_or_pushed() {
    for after in 0..12 {
        let (mut stage, developer, mut app) = begin("", "").await;
        let commit = break_it(&mut stage, &developer, &mut app, "bad", "arm").await;
        let left = std::sync::atomic::AtomicUsize::new(after);
        let lease = || {
            let before = left.load(std::sync::atomic::Ordering::Relaxed);
            left.store(before.saturating_sub(1), std::sync::atomic::Ordering::Relaxed);
            (before > 0).then(|| tokio::time::Instant::now() + std::time::Duration::from_secs(60))
        };
        let _ = stage.engine.cycle(true, stage.now, &lease).await;
        let pushed = reverts(&stage, &commit).len();
        assert!(pushed <= 1);
        // The other replica goes on.
        stage.restart();
        stage.show(&app.object());
        stage.pass(5.0);
        stage.cycle().await.unwrap();
        assert_eq!(reverts(&stage, &commit).len(), 1, "lost after {after} looks at the lease");
        assert_eq!(stage.watch(&name(&commit)).status.phase, Phase::Reverted);
    }
}

fn hook(stage: &Stage, kind: &str, script: &str) {
    let file = stage.server().join("hooks").join(kind);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn protected_branch_refuses_and_a_person_is_called_after_three_times() {
    let (mut stage, developer, mut app) = begin("", "").await;
    let commit = break_it(&mut stage, &developer, &mut app, "bad", "arm").await;
    hook(&stage, "pre-receive", "echo 'main is protected' >&2; exit 1");
    for _ in 0..4 {
        stage.cycle().await.unwrap();
        stage.pass(5.0);
    }
    let status = stage.watch(&name(&commit)).status;
    assert_eq!(status.phase, Phase::RevertFailed, "{status:?}");
    assert!(status.message.contains("3 times") && status.message.contains("protected"), "{}", status.message);
    assert_eq!(git(&stage.server(), &["rev-parse", "main"]), commit);
}

#[tokio::test]
async fn branch_of_its_own_gets_the_revert_where_the_branch_is_protected() {
    let (mut stage, developer, mut app) = begin(", revertBranch: cascade-guard/revert-", "").await;
    let commit = break_it(&mut stage, &developer, &mut app, "bad", "arm").await;
    let protect = "while read old new ref; do test \"$ref\" = refs/heads/main && exit 1; done; exit 0";
    hook(&stage, "pre-receive", protect);
    stage.cycle().await.unwrap();
    let branch = format!("cascade-guard/revert-{}", &commit[..10]);
    let pushed = git(&stage.server(), &["rev-parse", &branch]);
    let status = stage.watch(&name(&commit)).status;
    assert_eq!((status.phase, status.revert.unwrap().commit), (Phase::Reverted, pushed));
    assert_eq!(git(&stage.server(), &["rev-parse", "main"]), commit);
    // The team's automation squashes it: another commit, with the same message.
    let message = git(&stage.server(), &["log", "-1", "--format=%B", &branch]);
    let tree = format!("{branch}^{{tree}}");
    let squashed = git(&stage.server(), &["commit-tree", &tree, "-p", &commit, "-m", &message]);
    git(&stage.server(), &["update-ref", "refs/heads/main", &squashed]);
    app.begin(&squashed, stage.now);
    app.finish("Healthy", stage.now);
    stage.show(&app.object());
    stage.pass(5.0);
    stage.cycle().await.unwrap();
    assert_eq!(stage.watch(&name(&commit)).status.revert.unwrap().outcome, RevertOutcome::Healed);
}

#[tokio::test]
async fn branch_that_moves_is_judged_again() {
    let (mut stage, developer, mut app) = begin("", "").await;
    let commit = break_it(&mut stage, &developer, &mut app, "bad", "arm").await;
    // Somebody else's push arrives first: a commit beside the Application is no reason to stop, a fix is.
    let other = developer.commit(&[("docs/x", "1")], "docs");
    developer.git(&["push", "--quiet", "origin", "HEAD:refs/other/x"]);
    let once = format!(
        "test -e moved && exit 0; touch moved; env -u GIT_QUARANTINE_PATH git update-ref refs/heads/main {other}; exit 0"
    );
    hook(&stage, "pre-receive", &once);
    stage.cycle().await.unwrap();
    let status = stage.watch(&name(&commit)).status;
    assert_eq!(status.phase, Phase::Reverted, "{status:?}");
    assert_eq!(git(&stage.server(), &["rev-parse", "main^"]), other, "on top of what came in between");
    assert_eq!(reverts(&stage, &commit).len(), 1);
}

#[tokio::test]
async fn fix_that_is_pushed_but_not_deployed_keeps_it_from_being_reverted() {
    let (mut stage, developer, mut app) = begin("", "").await;
    let commit = break_it(&mut stage, &developer, &mut app, "bad", "arm").await;
    let fix = developer.commit(&[("web/d.yaml", "good")], "web: fix");
    developer.push();
    stage.cycle().await.unwrap();
    let status = stage.watch(&name(&commit)).status;
    assert_eq!((status.phase, status.unmet), (Phase::WouldRevert, vec!["nobody-else".to_owned()]));
    assert!(status.message.contains(&fix[..10]), "{}", status.message);
}

#[tokio::test]
async fn merge_is_reverted_as_a_whole_and_the_commits_it_brought_are_its_own() {
    let (mut stage, developer, mut app) = begin("", "").await;
    developer.git(&["checkout", "--quiet", "-b", "topic"]);
    developer.commit(&[("web/one", "1")], "web: one");
    developer.commit(&[("web/two", "2")], "web: two");
    developer.git(&["checkout", "--quiet", "main"]);
    developer.commit(&[("docs/x", "1")], "docs");
    let message = "merge\n\nWatchdog: app=web deadline=60 stable=10 mode=arm";
    developer.git(&["merge", "--quiet", "--no-ff", "-m", message, "topic"]);
    let commit = developer.head();
    developer.push();
    stage.cycle().await.unwrap();
    app.begin(&commit, stage.now);
    stage.show(&app.object());
    app.finish("Degraded", stage.now);
    stage.pass(2.0);
    stage.show(&app.object());
    stage.glance().await.unwrap();
    stage.pass(65.0);
    stage.cycle().await.unwrap();
    let status = stage.watch(&name(&commit)).status;
    assert_eq!(status.phase, Phase::Reverted, "{status:?}");
    assert_eq!(git(&stage.server(), &["ls-tree", "--name-only", "main", "web/"]), "web/d.yaml");
}

#[tokio::test]
async fn revert_that_conflicts_is_not_made() {
    let (mut stage, developer, mut app) = begin("", "").await;
    let commit = break_it(&mut stage, &developer, &mut app, "bad", "arm").await;
    // Moved away in a commit that touches nothing of the Application's folder but takes the file along.
    std::fs::create_dir_all(developer.clone.join("old")).unwrap();
    developer.git(&["mv", "web/d.yaml", "old/d.yaml"]);
    developer.commit(&[("old/d.yaml", "changed on the way")], "move");
    developer.push();
    stage.cycle().await.unwrap();
    let status = stage.watch(&name(&commit)).status;
    assert_eq!(status.phase, Phase::WouldRevert, "it touched the Application: {status:?}");
}

#[tokio::test]
async fn circuit_opens_after_two_and_a_person_closes_it() {
    let (mut stage, developer, mut app) = begin("", "").await;
    let mut commits = Vec::new();
    for (index, content) in ["bad", "worse", "worst", "again"].into_iter().enumerate() {
        developer.git(&["pull", "--quiet", "--rebase", "origin", "main"]);
        if index == 3 {
            for kept in stage.memory.repositories.lock().values_mut() {
                let at = Some(stage.now);
                let closing = Closing { application: "argocd/web".to_owned(), at, ..Closing::default() };
                kept.spec.closed.push(closing);
            }
        }
        let commit = break_it(&mut stage, &developer, &mut app, content, "arm").await;
        stage.cycle().await.unwrap();
        let status = stage.watch(&name(&commit)).status;
        if index == 2 {
            assert_eq!((status.phase, status.unmet), (Phase::WouldRevert, vec!["circuit".to_owned()]));
            // A person mends it.
            developer.git(&["revert", "--no-edit", &commit]);
            developer.push();
            app.begin(&developer.head(), stage.now);
        } else {
            assert_eq!(status.phase, Phase::Reverted, "{index}: {status:?}");
            app.begin(&status.revert.unwrap().commit, stage.now);
        }
        app.finish("Healthy", stage.now);
        stage.pass(3000.0);
        stage.show(&app.object());
        stage.cycle().await.unwrap();
        stage.pass(600.0);
        commits.push(commit);
    }
    assert_eq!(commits.len(), 4);
}
