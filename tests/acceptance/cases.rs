//! What the audit and the remedies say of every acceptance case.

use std::fs;

use crate::audited as audit;
use crate::case::{expand, policy_of, request_of};
use crate::support::{decide, files, snapshot};
use cascade_guard::{audit::Document, cli::Cli};
use clap::Parser;
use jiff::Timestamp;
use serde_json::Value;

#[test]
fn every_remedy_that_is_ours_can_be_pasted() {
    let mut pasted = 0;
    for file in files("cases", ".yaml") {
        let mut case: Value = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        expand(&mut case);
        let world = snapshot(case["cluster"].as_array().unwrap());
        let policy = policy_of(&case);
        let inventory = world.inventory(&policy, (1, 2));
        let now: Timestamp = case["now"].as_str().unwrap().parse().unwrap();
        for request in case["requests"].as_array().unwrap() {
            let decision = decide(&request_of(request), &world, &inventory, &policy, now);
            let remedies = decision.outcomes.iter().flat_map(|outcome| &outcome.finding.remedies);
            for command in remedies.flat_map(|remedy| &remedy.commands) {
                let words = shlex::split(command.as_str()).unwrap();
                if words[0] != "cascade-guard" {
                    continue;
                }
                let parsed = Cli::try_parse_from(words);
                assert!(parsed.is_ok(), "{}: {command}: {}", case["id"], parsed.unwrap_err());
                pasted += 1;
            }
        }
    }
    assert!(pasted > 10, "only {pasted} remedies begin with our own command");
}

/// What a case wants to be seen in a report, and where it is not looked for here.
const SEEN_ELSEWHERE: &[&str] = &["metrics"];

#[test]
fn every_case_is_seen_in_its_report() {
    let mut looked_at = 0;
    let mut faults = Vec::new();
    for file in files("cases", ".yaml") {
        let mut case: Value = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        expand(&mut case);
        let wanted = case["observe"].as_array().cloned().unwrap_or_default();
        if wanted.is_empty() {
            continue;
        }
        let now: Timestamp = case["now"].as_str().unwrap().parse().unwrap();
        let document = audit(&snapshot(case["cluster"].as_array().unwrap()), &policy_of(&case), now);
        for want in &wanted {
            let report = want["report"].as_str().unwrap();
            if SEEN_ELSEWHERE.contains(&report) {
                continue;
            }
            looked_at += 1;
            faults.extend(unseen(report, want, &document).map(|fault| format!("{}: {fault}", case["id"])));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(looked_at >= 3, "only {looked_at} cases say what a report must show");
}

/// Why no finding of the audit is what a case wants to be seen; `None` if one is.
fn unseen(report: &str, want: &Value, document: &Document) -> Option<String> {
    let text = |key: &str| want[key].as_str().unwrap_or_default();
    let words = |key: &str| -> Vec<String> {
        let list = want[key].as_array().cloned().unwrap_or_default();
        list.iter().map(|word| word.as_str().unwrap().to_lowercase()).collect()
    };
    let candidates = document.findings.iter().filter(|finding| {
        (report != "terminating" || finding.rule == "terminating")
            && finding.label().contains(text("rule"))
            && (text("kind").is_empty() || finding.object.kind.kind == text("kind"))
            && (text("name").is_empty() || finding.object.name == text("name"))
            && (text("namespace").is_empty() || finding.object.namespace == text("namespace"))
    });
    // All that is said of a finding, in every place a person may look.
    let said: Vec<String> = candidates.map(|finding| serde_json::to_string(finding).unwrap().to_lowercase()).collect();
    let absent = words("absent");
    if let Some(word) = absent.iter().find(|word| said.iter().any(|said| said.contains(*word))) {
        return Some(format!("{word} must not be in {report}"));
    }
    let mentions = words("mentions");
    let only_absent = mentions.is_empty() && !absent.is_empty();
    let seen = said.iter().any(|said| mentions.iter().all(|word| said.contains(word)));
    (!seen && !only_absent).then(|| format!("nothing in {report} mentions {mentions:?}: {said:?}"))
}
