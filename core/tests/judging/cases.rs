//! Every acceptance case gives its verdict.

use std::fs;

use serde_json::Value;

use crate::{
    case::{expand, judge_case},
    support::files,
};

#[test]
fn every_case_gives_its_verdict() {
    let mut faults = Vec::new();
    for file in files("cases", ".yaml") {
        let mut case: Value = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let id = case["id"].as_str().unwrap().to_owned();
        expand(&mut case);
        faults.extend(judge_case(&case).into_iter().map(|fault| format!("{id}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
