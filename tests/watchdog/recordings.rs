//! What a real Argo CD wrote while commits went through it, judged as `expected.json` says.

use std::{collections::BTreeSet, fs, path::PathBuf};

use cascade_guard_core::watchdog::{AppRef, Phase, schema::watch_name};
use jiff::SignedDuration;
use serde_json::Value;

use super::stage::{Stage, epoch, git};

fn data(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/watchdog").join(file)
}

/// One line of a recording.
enum Event {
    Commit(String),
    Application { name: String, object: Value },
}

struct Life {
    app: String,
    commit: String,
    url: String,
    events: Vec<(f64, Event)>,
}

fn life(name: &str) -> Life {
    let text = fs::read_to_string(data(&format!("{name}.jsonl"))).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = lines.next().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let events = lines.map(|line| {
        let event = match &line["git"] {
            Value::Null => Event::Application { name: text(&line["app"]), object: line["object"].clone() },
            git => Event::Commit(text(&git["commit"])),
        };
        (line["t"].as_f64().unwrap(), event)
    });
    Life {
        app: text(&head["watched"][0]["app"]),
        commit: text(&head["watched"][0]["commit"]),
        url: text(&head["repository"]),
        events: events.collect(),
    }
}

/// The phases of the watch, each with the second in which it began; the last state goes on until it is over.
async fn phases(name: &str, until_verdict: bool) -> (Vec<(f64, Phase)>, Vec<String>, Stage) {
    let life = life(name);
    let mut stage = Stage::new(&life.url, "", "");
    let server = stage.server();
    git(&server, &["fetch", "--quiet", data(&format!("{name}.bundle")).to_str().unwrap(), "+refs/*:refs/recorded/*"]);
    let watch = watch_name(&AppRef::new("argocd", &life.app), &life.commit, "argocd");
    let mut phases: Vec<(f64, Phase)> = Vec::new();
    let mut events = life.events.into_iter().peekable();
    // A look at every tenth of a second in which something happened, and at every second.
    for tenth in 0..2000 {
        let t = f64::from(tenth) / 10.0;
        stage.now = epoch() + SignedDuration::from_millis(i64::from(tenth) * 100);
        let (mut happened, mut pushed) = (false, false);
        while let Some((_, event)) = events.next_if(|(at, _)| *at <= t) {
            happened = true;
            match event {
                Event::Commit(commit) => {
                    // What a revert has made of the branch is not undone by the recording.
                    let made = stage.memory.watches.lock().values().any(|kept| kept.status.revert.is_some());
                    if !made {
                        git(&server, &["update-ref", "refs/heads/main", &commit]);
                        pushed = true;
                    }
                }
                Event::Application { name, object } if object.is_null() => {
                    stage.seen.lock().applications.remove(&AppRef::new("argocd", &name));
                }
                Event::Application { object, .. } => stage.show(&object),
            }
        }
        if !happened && tenth % 10 != 0 || git_is_empty(&server) {
            continue;
        }
        if pushed {
            stage.cycle().await.unwrap()
        } else {
            stage.glance().await.unwrap()
        };
        let stored = stage.memory.watches.lock().get(&watch).cloned();
        if let Some(kept) = stored {
            if phases.last().map(|(_, phase)| *phase) != Some(kept.status.phase) {
                phases.push((t, kept.status.phase));
            }
            if until_verdict && kept.status.phase.is_final() || kept.status.ended.is_some() {
                return (phases, kept.status.unmet, stage);
            }
        }
    }
    panic!("{name} never ends: {phases:?}");
}

fn git_is_empty(server: &std::path::Path) -> bool {
    !server.join("refs/heads/main").exists()
}

#[tokio::test]
async fn every_life_ends_as_expected() {
    let expected: Value = serde_json::from_str(&fs::read_to_string(data("expected.json")).unwrap()).unwrap();
    let watches = expected["watches"].as_array().unwrap();
    assert!(watches.len() >= 8);
    let mut wrong = Vec::new();
    for wanted in watches {
        let name = wanted["recording"].as_str().unwrap();
        let (phases, unmet, _) = phases(name, true).await;
        let (at, last) = *phases.last().unwrap();
        let bounds = (wanted["between"][0].as_f64().unwrap(), wanted["between"][1].as_f64().unwrap());
        let never: BTreeSet<&str> =
            wanted["never"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let unmet_wanted: Vec<&str> =
            wanted["unmet"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if last.as_str() != wanted["phase"]
            || !(bounds.0..=bounds.1).contains(&at)
            || phases.iter().any(|(_, phase)| never.contains(phase.as_str()))
            || unmet != unmet_wanted
        {
            wrong.push(format!("{name}: {phases:?} {unmet:?}, wanted {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn revert_that_is_made_restores_the_files_and_asks_for_nothing() {
    let (_, _, mut stage) = phases("w11", true).await;
    let server = stage.server();
    let parent = git(&server, &["rev-parse", "main~2^{tree}"]);
    assert_eq!(git(&server, &["rev-parse", "main^{tree}"]), parent, "as before the commit");
    let message = git(&server, &["log", "-1", "--format=%B", "main"]);
    assert!(message.contains("This reverts commit eff26257199abb5eecfecb7a2690284a89d2c5df."), "{message}");
    assert!(message.contains("Degraded"), "{message}");
    assert_eq!(git(&server, &["log", "-1", "--format=%(trailers)", "main"]), "");
    stage.cycle().await.unwrap();
    assert_eq!(stage.memory.watches.lock().len(), 1, "the revert is not watched itself");
}

#[tokio::test]
async fn without_children_the_parent_is_fine() {
    // The same life as w07, with a trailer that does not ask for children.
    let life = life("w07");
    let mut stage = Stage::new(&life.url, "", "");
    let server = stage.server();
    git(&server, &["fetch", "--quiet", data("w07.bundle").to_str().unwrap(), "+refs/*:refs/recorded/*"]);
    let before = git(&server, &["rev-parse", &format!("{}^", life.commit)]);
    git(&server, &["update-ref", "refs/heads/main", &before]);
    stage.cycle().await.unwrap();
    let tree = format!("{}^{{tree}}", life.commit);
    let message = "root: web\n\nWatchdog: app=w07-root deadline=60 stable=10 mode=arm";
    let commit = git(&server, &["commit-tree", &tree, "-p", &before, "-m", message]);
    let mut last = 0.0;
    for (t, event) in life.events {
        stage.now = epoch() + SignedDuration::from_secs_f64(t);
        last = t;
        match event {
            Event::Commit(made) if made == life.commit => {
                git(&server, &["update-ref", "refs/heads/main", &commit]);
                stage.cycle().await.unwrap();
            }
            Event::Application { object, .. } if !object.is_null() => {
                let text = object.to_string().replace(&life.commit, &commit);
                stage.show(&serde_json::from_str(&text).unwrap());
                stage.glance().await.unwrap();
            }
            _ => {}
        }
    }
    stage.now = epoch() + SignedDuration::from_secs_f64(last + 12.0);
    stage.glance().await.unwrap();
    let watch = watch_name(&AppRef::new("argocd", "w07-root"), &commit, "argocd");
    assert_eq!(stage.watch(&watch).status.phase, Phase::Confirmed);
}
