//! `watchdog check` and `watchdog survey` over a snapshot and a clone alone.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{argo::App, developer::Developer, stage::Stage};

const URL: &str = "https://git.example.com/org/shop.git";

fn run(arguments: &[&str]) -> (Option<i32>, Value) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_cascade-guard")).arg("watchdog").args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&stderr);
    (status.code(), serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{arguments:?}: {text}")))
}

/// A world with one Application of each kind, as a snapshot.
fn world() -> (Stage, Developer, String) {
    let stage = Stage::new(URL, "", "");
    let developer = Developer::new(&stage);
    let web = App::well("web", URL, &developer.head(), stage.now).object();
    let named = |name: &str| {
        let mut object = App::well("api", URL, &developer.head(), stage.now).object();
        object["metadata"]["name"] = json!(name);
        object
    };
    let mut chart = named("chart");
    let source = json!({"repoURL": "https://charts.example.com", "chart": "c", "targetRevision": "65.5.0"});
    chart["spec"]["source"] = source.clone();
    chart["status"]["sync"]["comparedTo"]["source"] = source;
    chart["status"]["sync"]["revision"] = json!("65.5.0");
    let mut tagged = named("tagged");
    tagged["spec"]["source"]["targetRevision"] = json!("v1.2.3");
    let mut updated = named("updated");
    updated["metadata"]["annotations"] = json!({"argocd-image-updater.argoproj.io/image-list": "api=example.com/api"});
    let mut pruned = named("pruned");
    pruned["spec"]["syncPolicy"]["automated"]["prune"] = json!(true);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [web, chart, tagged, updated, pruned]});
    let file = stage.folder.path().join("snapshot.json");
    std::fs::write(&file, list.to_string()).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (stage, developer, file)
}

fn config(stage: &Stage) -> String {
    let file = stage.folder.path().join("watchdog.yaml");
    let text = format!(
        "apiVersion: cascade-guard.io/v1alpha1\nkind: WatchdogConfiguration\nspec:\n  arm: {{applications: ['*']}}\n  \
         repositories: [{{url: '{URL}', branches: [main]}}]\n"
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn survey_says_of_each_application_what_stands_in_the_way() {
    let (stage, _, snapshot) = world();
    let (code, rows) = run(&["survey", "-o", "json", "--snapshot", &snapshot, "--config", &config(&stage)]);
    assert_eq!(code, Some(0));
    let of = |name: &str| rows.as_array().unwrap().iter().find(|row| row["application"] == name).unwrap();
    assert_eq!((&of("argocd/web")["watchable"], &of("argocd/web")["armable"]), (&json!(true), &json!(true)));
    for (name, watchable, words) in [
        ("argocd/chart", false, "charts alone"),
        ("argocd/tagged", true, ""),
        ("argocd/updated", true, "Image Updater"),
        ("argocd/pruned", true, "prunes"),
    ] {
        let row = of(name);
        let because = row["because"].to_string();
        if words.is_empty() {
            continue;
        }
        assert_eq!(row["watchable"], watchable, "{row}");
        assert!(row["armable"] == false && because.contains(words), "{row}");
    }
}

#[test]
fn check_tells_right_trailers_from_wrong_ones() {
    let (stage, developer, snapshot) = world();
    let config = config(&stage);
    let clone = developer.clone.to_str().unwrap();
    for (message, code, words) in [
        ("web\n\nWatchdog: app=web", 0, ""),
        ("web\n\nWatchdog: app=web mode=arm", 0, ""),
        ("web", 0, ""),
        ("web\n\nWatchdog: app=web deadline=5", 1, "from 30"),
        ("web\n\nWatchdog: app=web\n\nand more", 1, "block of trailers"),
        ("web\n\nWatchdog: app=tagged", 1, "v1.2.3"),
        ("web\n\nWatchdog: app=chart", 1, "no source"),
        ("web\n\nWatchdog: app=nowhere", 1, "no such Application"),
        ("web\n\nWatchdog: app=updated mode=arm", 1, "Image Updater"),
        ("web\n\nWatchdog: app=pruned mode=shadow", 0, "prunes"),
    ] {
        developer.commit(&[], message);
        let arguments = [
            "check",
            "HEAD",
            "--repo",
            clone,
            "--url",
            URL,
            "-o",
            "json",
            "--snapshot",
            &snapshot,
            "--config",
            &config,
        ];
        let (ended, rows) = run(&arguments);
        assert_eq!(ended, Some(code), "{message}: {rows}");
        assert!(rows.to_string().contains(words), "{message}: {rows}");
    }
}
