//! Every acceptance case gives its verdict.

use std::fs;

use crate::audited as audit;
use crate::support::{decide, files, policy, review, said, snapshot};
use cascade_guard::{audit::Document, cli::Cli};
use cascade_guard_core::{admission::Response, policy::Policy};
use clap::Parser;
use jiff::Timestamp;
use serde_json::{Value, json};

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

fn judge_case(case: &Value) -> Vec<String> {
    let world = snapshot(case["cluster"].as_array().unwrap());
    let policy = policy_of(case);
    let mut inventory = world.inventory(&policy, (1, 2));
    inventory.set_ready(case["policy"]["indexReady"].as_bool().unwrap_or(true));
    let now: Timestamp = case["now"].as_str().unwrap().parse().unwrap();
    let requests = case["requests"].as_array().unwrap();
    let expected = case["expect"].as_array().unwrap();
    assert_eq!(requests.len(), expected.len());
    let mut faults = Vec::new();
    for (request, expect) in requests.iter().zip(expected) {
        let response = review(&request_of(request), &world, &inventory, &policy, now);
        let problems = problems(expect, &response);
        faults
            .extend(problems.into_iter().map(|problem| format!("{}: {problem}: {}", request["name"], said(&response))));
    }
    faults
}

/// Every rule enforces, runtime-dependency warns, and what the case says on top.
pub fn policy_of(case: &Value) -> Policy {
    let wanted = &case["policy"];
    // In audit a client sees nothing, so the words of a case are looked for one step up, in warn.
    let mode = if wanted["modeCeiling"] == "audit" { "warn" } else { "enforce" };
    let mut spec = json!({
        "argocd": {"namespace": "argocd"},
        "rules": {
            "sharedClaim": {"mode": mode}, "sharedUpdate": {"mode": mode}, "syncWave": {"mode": mode},
            "controlPlane": {"mode": mode}, "namespaceApproval": {"mode": mode, "maxTTL": "24h"},
            "runtimeDependency": {"mode": "warn"},
        },
    });
    if let Some(users) = wanted.get("exemptUsers") {
        spec["exemptions"] = json!([{"name": "case", "match": {"users": users}, "rules": ["namespaceApproval"],
            "until": "2027-01-01T00:00:00Z", "reason": "case"}]);
    }
    if let Some(groups) = wanted.get("breakGlassGroups") {
        spec["breakGlass"] = json!({"groups": groups, "requireReason": false});
    }
    policy(spec)
}

pub fn request_of(request: &Value) -> Value {
    let parts: Vec<&str> = request["resource"].as_str().unwrap().split('/').collect();
    let (group, version, plural) = match parts[..] {
        [version, plural] => ("", version, plural),
        [group, version, plural] => (group, version, plural),
        _ => panic!("{}", request["resource"]),
    };
    let some = if request["object"].is_null() { &request["oldObject"] } else { &request["object"] };
    let kind = json!({"group": group, "version": version, "kind": some["kind"].as_str().unwrap_or(plural)});
    let mut review = json!({
        "uid": "5b1f", "kind": kind, "requestKind": kind,
        "resource": {"group": group, "version": version, "resource": plural},
        "operation": request["operation"], "name": request["requestName"],
        "userInfo": {"username": request["user"], "groups": request["groups"]},
        "object": request["object"], "oldObject": request["oldObject"],
        "dryRun": request["dryRun"], "options": request["options"],
    });
    for (from, to) in [("namespace", "namespace"), ("subresource", "subResource")] {
        if let Some(value) = request.get(from).filter(|value| !value.is_null()) {
            review[to] = value.clone();
        }
    }
    review
}

fn problems(expect: &Value, response: &Response) -> Vec<String> {
    let mut problems = Vec::new();
    let allowed = expect["allowed"].as_bool().unwrap();
    if response.allowed != allowed {
        return vec![format!("allowed is {}", response.allowed)];
    }
    let optional = expect["warnOptional"].as_bool().unwrap_or(false);
    if allowed && !optional && response.warnings.is_empty() == expect["warn"].as_bool().unwrap_or(false) {
        problems.push("warnings do not fit".to_owned());
    }
    let said = said(response);
    let silent = optional && allowed && response.warnings.is_empty();
    let words = |key: &str| -> Vec<String> {
        let list = expect[key].as_array().cloned().unwrap_or_default();
        list.iter().map(|word| word.as_str().unwrap().to_lowercase()).collect()
    };
    problems.extend(
        words("reasonMentions").iter().filter(|word| !silent && !said.contains(*word)).map(|word| format!("no {word}")),
    );
    let any = words("anyOfMentions");
    if !any.is_empty() && !any.iter().any(|word| said.contains(word)) {
        problems.push(format!("none of {any:?}"));
    }
    let at_most = |key: &str| expect[key].as_u64().and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
    if response.message.chars().count() > at_most("maxMessageRunes") {
        problems.push("the message is too long".to_owned());
    }
    if response.warnings.len() > at_most("maxWarnings") {
        problems.push("too many warnings".to_owned());
    }
    problems
}

/// Adds the generated list entries to the objects a case names.
pub fn expand(case: &mut Value) {
    let rule = case["expand"].clone();
    let Some(count) = rule["count"].as_u64() else { return };
    let entry = |i: u64| -> Value {
        let template = rule["template"].as_object().unwrap();
        template
            .iter()
            .map(|(key, value)| {
                (
                    key.clone(),
                    value.as_str().map_or_else(|| value.clone(), |text| json!(text.replace("{i}", &i.to_string()))),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let grow = |object: &mut Value| {
        let path =
            ["/kind", "/metadata/namespace", "/metadata/name"].iter().filter_map(|at| object.pointer(at)?.as_str());
        let path = path.collect::<Vec<_>>().join("/");
        if rule["objects"].as_array().unwrap().iter().any(|wanted| *wanted == path) {
            let resources = &mut object["status"]["resources"];
            if resources.is_null() {
                *resources = json!([]);
            }
            resources.as_array_mut().unwrap().extend((0..count).map(entry));
        }
    };
    case["cluster"].as_array_mut().unwrap().iter_mut().for_each(grow);
    for request in case["requests"].as_array_mut().unwrap() {
        grow(&mut request["object"]);
        grow(&mut request["oldObject"]);
    }
}
