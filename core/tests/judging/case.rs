//! One acceptance case: how its keys are meant.

use cascade_guard_core::{
    admission::Response,
    policy::{Policy, RuleKey},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::support::{policy, review, said, snapshot};

pub fn judge_case(case: &Value) -> Vec<String> {
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
    let rules: Map<String, Value> =
        RuleKey::ALL.iter().map(|rule| (rule.as_str().to_owned(), json!({"mode": mode}))).collect();
    let mut spec = json!({"argocd": {"namespace": "argocd"}, "rules": rules});
    spec["rules"]["runtimeDependency"]["mode"] = json!("warn");
    if let Some(users) = wanted.get("exemptUsers") {
        spec["exemptions"] = json!([{"name": "case", "match": {"users": users}, "rules": ["namespaceApproval"],
            "until": "2027-01-01T00:00:00Z", "reason": "case"}]);
    }
    if let Some(groups) = wanted.get("breakGlassGroups") {
        spec["breakGlass"] = json!({"groups": groups, "requireReason": false});
    }
    for (key, value) in wanted["spec"].as_object().into_iter().flatten() {
        match key.as_str() {
            "rules" => spec["rules"].as_object_mut().unwrap().extend(value.as_object().unwrap().clone()),
            _ => spec[key] = value.clone(),
        }
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

pub fn problems(expect: &Value, response: &Response) -> Vec<String> {
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
