//! The core stays pure, and every rule is complete.

use std::{collections::BTreeSet, fs, path::Path};

use cascade_guard::rules::RULES;

/// Modules that know no clock, no network and no files.
const CORE: &[&str] = &[
    "admission",
    "argo",
    "body.rs",
    "decision",
    "facts.rs",
    "inventory",
    "lint",
    "object.rs",
    "plan",
    "policy",
    "rbac.rs",
    "report",
    "rules",
];

/// What none of them may name.
const FORBIDDEN: &[&str] = &[
    "tokio",
    "kube::Client",
    "kube::Api",
    "kube::client",
    "kube::runtime",
    "std::fs",
    "std::net",
    "std::thread",
    "std::env",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "async fn",
    ".await",
    "reqwest",
    "hyper",
    "axum",
    "println!",
    "crate::cluster",
    "crate::server",
    "crate::snapshot",
    "crate::cli",
    "crate::telemetry",
    "crate::certs",
    "crate::judge",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(path: &Path, found: &mut Vec<(String, String)>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs")
        && !is_test_module(path.strip_prefix(root()).unwrap_or(path))
    {
        found.push((path.display().to_string(), fs::read_to_string(path).unwrap()));
    }
}

/// Modules that are compiled for tests alone.
fn is_test_module(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs" || name == "testing.rs" || name == "property.rs")
        || path.parent().is_some_and(|folder| folder.ends_with("tests"))
}

/// The code without comments: prose may speak of anything.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(number, line)| (number + 1, line.split("//").next().unwrap_or_default()))
}

#[test]
fn core_knows_no_clock_no_network_and_no_files() {
    let mut faults = Vec::new();
    for module in CORE {
        let path = root().join("src").join(module);
        assert!(path.exists(), "{} is gone; mend the list", path.display());
        let mut found = Vec::new();
        sources(&path, &mut found);
        for (file, text) in found {
            for (number, line) in code(&text) {
                faults.extend(
                    FORBIDDEN
                        .iter()
                        .filter(|word| line.contains(**word))
                        .map(|word| format!("{file}:{number} names {word}")),
                );
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn core_cannot_panic_by_unwrapping() {
    let mut faults = Vec::new();
    for module in CORE {
        let mut found = Vec::new();
        sources(&root().join("src").join(module), &mut found);
        for (file, text) in found {
            let tests = text.find("#[cfg(test)]").unwrap_or(text.len());
            for (number, line) in code(&text[..tests]) {
                let words = [".unwrap()", ".expect(", "panic!(", "unreachable!(", "todo!(", "unimplemented!("];
                faults.extend(
                    words
                        .iter()
                        .filter(|word| line.contains(**word))
                        .map(|word| format!("{file}:{number} holds {word}")),
                );
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_rule_has_an_id_and_a_page() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.meta().id).collect();
    assert_eq!(ids.len(), RULES.len(), "two rules share an id");
    for rule in RULES {
        let meta = rule.meta();
        assert_eq!(meta.docs, format!("docs/rules/{}.md", meta.id));
        let page = fs::read_to_string(root().join(meta.docs)).unwrap_or_else(|error| panic!("{}: {error}", meta.docs));
        for part in ["What it does", "Why", "Example", "Way out"] {
            assert!(page.to_lowercase().contains(&part.to_lowercase()), "{} has no part `{part}`", meta.docs);
        }
        assert!(!meta.operations.is_empty() && !meta.summary.is_empty());
    }
}
