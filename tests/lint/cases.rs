//! Hooks of the acceptance cases, written down as manifests, get the verdict that a review gives them.

use std::fs;

use cascade_guard_core::{decision::Severity, lint::Input, report::ReportFinding};
use serde_json::{Value, json};

use crate::support::{Beside, findings, input};

/// Checks that admission does not make: it never sees what they are about.
const ONLY_OFFLINE: [&str; 6] = [
    "same-name",
    "moved-forward",
    "namespace-by-option",
    "namespace-missing",
    "annotation-no-text",
    "no-backoff-limit",
];

const ORDERING: [&str; 3] = ["argocd.argoproj.io/hook", "helm.sh/hook", "argocd.argoproj.io/sync-wave"];

#[test]
fn lint_gives_every_hook_the_verdict_of_a_review() {
    let (mut judged, mut faults) = (0, Vec::new());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cases");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let case: Value = serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let requests = case["requests"].as_array().unwrap().iter().zip(case["expect"].as_array().unwrap());
        for (request, expect) in requests.filter(|(request, _)| is_hook(request)) {
            judged += 1;
            let found = judge(&case, &request["object"]);
            let wanted = verdict(expect["allowed"].as_bool().unwrap(), expect["warn"].as_bool().unwrap_or(false));
            let refused = found.iter().any(|finding| finding.severity == Severity::Deny);
            let given = verdict(!refused, !found.is_empty());
            let optional = expect["warnOptional"].as_bool().unwrap_or(false) && wanted != "deny" && given != "deny";
            if given != wanted && !optional {
                let found: Vec<_> = found.iter().map(|finding| (&finding.check, finding.sentence())).collect();
                faults.push(format!("{} {}: {given}, not {wanted}: {found:?}", case["id"], request["name"]));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(judged >= 20, "{judged} hooks");
}

fn verdict(allowed: bool, warned: bool) -> &'static str {
    match (allowed, warned) {
        (false, _) => "deny",
        (true, true) => "warn",
        (true, false) => "allow",
    }
}

fn is_hook(request: &Value) -> bool {
    let annotations = &request["object"]["metadata"]["annotations"];
    let judged = ["CREATE", "UPDATE"].contains(&request["operation"].as_str().unwrap());
    judged && ORDERING.iter().any(|key| annotations.get(key).is_some())
}

/// What `lint` says about one object beside everything else that its Application holds.
fn judge(case: &Value, object: &Value) -> Vec<ReportFinding> {
    let cluster = case["cluster"].as_array().unwrap();
    let tracked = object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"].as_str().unwrap_or_default();
    let name = tracked.split(':').next().unwrap_or_default();
    let application =
        cluster.iter().find(|candidate| candidate["kind"] == "Application" && candidate["metadata"]["name"] == name);
    let mut manifests = vec![object.clone()];
    for entry in application.and_then(|application| application["status"]["resources"].as_array()).into_iter().flatten()
    {
        manifests.extend(manifest(entry, cluster).filter(|manifest| !same(manifest, object)));
    }
    let text = |objects: &[Value]| json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let beside =
        Beside { applications: application.map(ToString::to_string), snapshot: Some(text(cluster)), namespace: "" };
    let inputs: [Input; 1] = [input("case", text(&manifests))];
    let (found, problems) = findings(&inputs, &beside);
    assert!(problems.is_empty(), "{problems:#?}");
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    found
        .into_iter()
        .filter(|finding| finding.object.name == name && finding.object.kind.kind == object["kind"].as_str().unwrap())
        .filter(|finding| !ONLY_OFFLINE.contains(&finding.check.as_ref()))
        .collect()
}

fn same(one: &Value, other: &Value) -> bool {
    ["/kind", "/metadata/name", "/metadata/namespace"].iter().all(|at| one.pointer(at) == other.pointer(at))
}

/// The manifest behind an entry of an Application's list: what exists of it, or as little as makes an object.
fn manifest(entry: &Value, cluster: &[Value]) -> Option<Value> {
    if entry["requiresPruning"] == true {
        return None;
    }
    let is = |object: &&Value| {
        object["kind"] == entry["kind"]
            && object["metadata"]["name"] == entry["name"]
            && object["metadata"]["namespace"] == entry["namespace"]
    };
    let live = cluster.iter().find(is).cloned();
    if entry["hook"] == true {
        return live;
    }
    let group = entry["group"].as_str().map(|group| format!("{group}/")).unwrap_or_default();
    let mut object = live.unwrap_or_else(|| {
        json!({"apiVersion": format!("{group}{}", entry["version"].as_str().unwrap_or("v1")), "kind": entry["kind"],
            "metadata": {"name": entry["name"], "namespace": entry["namespace"]}})
    });
    if let Some(wave) = entry["syncWave"].as_i64() {
        object["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] = json!(wave.to_string());
    }
    Some(object)
}
