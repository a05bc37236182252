//! A verdict that nobody waits for any more: what a delete takes is unknown then, and so is who may write a power to
//! delete; everything else passes with a warning. Nothing that goes anyway is held up.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cascade_guard_core::{
    admission::{Response, decode},
    decision::render,
    judge::{AtHand, Case, Inquiry, Judgement, Step},
    policy::{Mode, Policy},
};
use serde_json::{Value, json};

use crate::{
    support::{body_of, policy, snapshot},
    world::*,
};

/// Judges a request whose sender stops waiting after so many questions about it.
fn judged_until(asked: usize, objects: &[Value], policy: &Policy, request: &Value) -> Response {
    let world = snapshot(objects);
    let inventory = world.inventory(policy, (1, 2));
    let body = body_of(request);
    let request = decode(body.as_bytes()).unwrap();
    let questions = AtomicUsize::new(0);
    let interrupt = Arc::new(move || questions.fetch_add(1, Ordering::Relaxed) >= asked);
    let mut judgement = Judgement::new(Case::new(&request, policy, NOW.parse().unwrap()), false);
    let mut inquiry = Inquiry::default().until(interrupt);
    loop {
        match inquiry.step(|facts| judgement.look(&inventory, facts)) {
            Step::Done(decision) => return render(&decision, &request),
            Step::Needs(questions) => {
                let answers: Vec<_> =
                    questions.iter().map(|question| (question.clone(), world.reply(question))).collect();
                inquiry.answer(questions, answers);
            }
        }
    }
}

fn late(objects: &[Value], policy: &Policy, request: &Value) -> Response {
    judged_until(0, objects, policy, request)
}

fn request(operation: &str, user: &str, object: Option<&Value>, old: Option<&Value>) -> Value {
    let some = object.or(old).unwrap();
    let group = some["apiVersion"].as_str().unwrap().split_once('/').map(|(group, _)| group).unwrap_or_default();
    json!({"uid": "1", "kind": {"group": group, "version": "v1", "kind": some["kind"]}, "operation": operation,
        "name": some["metadata"]["name"], "namespace": some["metadata"]["namespace"],
        "userInfo": {"username": user}, "object": object, "oldObject": old})
}

fn delete(object: &Value) -> Value {
    request("DELETE", "alice", None, Some(object))
}

#[test]
fn delete_that_was_not_judged_is_unknown() {
    let objects = [app("one", &["ConfigMap target/c"]), object("Namespace target", ""), argocd_cm(json!({}))];
    let warns = policy(json!({"rules": {"sharedClaim": {"mode": "enforce", "onUnknown": "warn"},
        "namespaceApproval": {"mode": "enforce"}, "controlPlane": {"mode": "enforce"}}}));
    for object in &objects {
        refused(&late(&objects, &strict(), &delete(object)), &["not judged in time", "no time left"]);
        warned(&late(&objects, &warns, &delete(object)), &["not judged in time"]);
        passes(&late(&objects, &Policy::every_rule(Mode::Audit), &delete(object)));
    }
}

#[test]
fn what_goes_anyway_is_not_held_up() {
    let gone = object("Namespace gone", "");
    let gone = with(gone, "/metadata/deletionTimestamp", "2026-11-29T11:00:00Z");
    let (swept, collected) = (object("ConfigMap gone/c", ""), object("ConfigMap target/c", ""));
    let bare = with(app("bare", &["ConfigMap target/c"]), "/metadata/finalizers", json!([]));
    let going = with(app("going", &[]), "/metadata/deletionTimestamp", "2026-11-29T11:00:00Z");
    let objects = [gone.clone(), swept.clone(), collected.clone(), bare.clone(), going.clone()];
    for object in [&gone, &swept, &bare, &going] {
        passes(&late(&objects, &strict(), &delete(object)));
    }
    let by_collector = |object: &Value| request("DELETE", COLLECTOR, None, Some(object));
    passes(&late(&objects, &strict(), &by_collector(&collected)));
    // What it takes along is judged whoever deletes it.
    for object in [object("Namespace target", ""), app("one", &["ConfigMap target/c"])] {
        refused(&late(&objects, &strict(), &by_collector(&object)), &["not judged in time"]);
    }
}

#[test]
fn power_to_delete_is_judged_by_the_request_alone() {
    let namespace = object("Namespace target", "");
    let approves = |key: &str, value: &str| with(namespace.clone(), &format!("/metadata/annotations/{key}"), value);
    let exempting = policy(json!({"rules": {"namespaceApproval": {"mode": "enforce"}},
        "exemptions": [{"name": "previews", "match": {"namespaces": ["*"],
            "namespaceSelector": {"matchLabels": {"preview": "yes"}}}, "rules": ["namespaceApproval"],
            "until": "2027-01-01T00:00:00Z", "reason": "r"}]}));
    let written = |new: &Value| {
        let update = request("UPDATE", "tenant", Some(new), Some(&namespace));
        late(std::slice::from_ref(&namespace), &exempting, &update)
    };
    refused(&written(&approves("cascade-guard.io~1deletion-approved-by", "tenant")), &["approval"]);
    refused(&written(&approves("cascade-guard.io~1break-glass", "why not")), &["break-glass"]);
    refused(&written(&with(namespace.clone(), "/metadata/labels/preview", "yes")), &["label"]);
    passes(&written(&with(namespace.clone(), "/metadata/labels/team", "a")));
}

#[test]
fn what_takes_protection_away_is_judged_by_the_request_alone() {
    let old = app("old", &["ConfigMap target/c"]);
    let change = |new: &Value| request("UPDATE", "alice", Some(new), Some(&old));
    let emptied = with(old.clone(), "/status/resources", json!([]));
    refused(&late(std::slice::from_ref(&old), &strict(), &change(&emptied)), &["shared-update/hidden"]);
    let moved = with(old.clone(), "/spec/project", "sandbox");
    let mild = policy(json!({"rules": {"sharedClaim": {"mode": "enforce"}},
        "overrides": [{"match": {"projects": ["sandbox"]}, "modes": {"sharedClaim": "audit"}}]}));
    refused(&late(std::slice::from_ref(&old), &mild, &change(&moved)), &["exempting-project", "into sandbox"]);
    assert!(
        late(std::slice::from_ref(&old), &strict(), &change(&moved)).allowed,
        "no line of the policy tells projects apart"
    );
    let route = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1alpha1.argoproj.io"},
        "spec": {"group": "argoproj.io", "service": {"namespace": "evil", "name": "api"}}});
    refused(&late(&[], &strict(), &request("CREATE", "alice", Some(&route), None)), &["control-plane/route"]);
}

#[test]
fn anything_else_passes_with_a_warning() {
    let hook = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "m", "namespace": "target", "annotations": {
            "argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/sync-wave": "first"}}, "spec": {}});
    warned(&late(&[], &strict(), &request("CREATE", "tenant", Some(&hook), None)), &["not judged in time"]);
    let map = object("ConfigMap target/c", "");
    passes(&late(&[], &strict(), &request("CREATE", "tenant", Some(&map), None)));
}

/// However far judging has come when the time is over, the answer is the whole verdict or none.
#[test]
fn verdict_is_never_a_part_of_one() {
    let list: Vec<String> = (0..200).map(|number| format!("ConfigMap target/c{number}")).collect();
    let list: Vec<&str> = list.iter().map(String::as_str).collect();
    let mut objects = vec![app("one", &list), app("other", &list[199..]), argocd_cm(json!({}))];
    objects.extend(list.iter().map(|text| object(text, "one")));
    let request = delete(&objects[0]);
    let whole = judged_until(usize::MAX, &objects, &strict(), &request);
    refused(&whole, &["ConfigMap target/c199 is claimed by argocd/other"]);
    let mut finished = 0;
    for asked in 0..60 {
        let response = judged_until(asked, &objects, &strict(), &request);
        if response == whole {
            finished += 1;
        } else {
            refused(&response, &["not judged in time"]);
        }
    }
    assert!((1..60).contains(&finished), "{finished} verdicts were finished: nothing was interrupted");
}
