//! `docs/security.md`: every way that it calls closed has tests, and they exist.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

use std::{fs, path::Path};

/// Every Rust source below a folder, in one text.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

#[test]
fn every_closed_way_has_tests_that_exist_and_every_open_one_says_why() {
    let page = fs::read_to_string("docs/security.md").unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |").map(|row| row.split(" | ").collect()))
        .filter(|row: &Vec<&str>| row[0] != "way")
        .collect();
    assert!(rows.len() > 20, "the table was not found");
    let all: String = ["tests", "core/tests", "core/src", "src"].map(|folder| sources(Path::new(folder))).concat();
    for row in rows {
        let is_open = row[2].starts_with("Open: ");
        let tests: Vec<&str> = row.get(3).into_iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert_eq!(is_open, tests.is_empty(), "either open or tested: {}", row[0]);
        for test in tests {
            assert!(all.contains(&format!("fn {test}(")), "{}: there is no test `{test}`", row[0]);
        }
    }
}
