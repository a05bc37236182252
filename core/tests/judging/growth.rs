//! What judging costs: four times as much of what somebody may write takes about four times as many steps, never sixteen
//! times. Steps are counted where the core asks whether anybody still waits (`Budget`).

use cascade_guard_core::{
    admission::decode,
    judge::{AtHand, Case, Inquiry, Judgement, Step},
};
use serde_json::{Value, json};

use crate::{support::snapshot, world::*};

/// Steps that it takes to judge a request.
fn steps(objects: &[Value], request: &Value) -> u64 {
    let world = snapshot(objects);
    let policy = strict();
    let inventory = world.inventory(&policy, (1, 2));
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    let request = decode(body.as_bytes()).unwrap();
    // As a review is judged by a running guard: nothing is kept from one look to the next.
    let mut judgement = Judgement::new(Case::new(&request, &policy, NOW.parse().unwrap()), false);
    let mut inquiry = Inquiry::default();
    while let Step::Needs(questions) = inquiry.step(|facts| judgement.look(&inventory, facts)) {
        let answers: Vec<_> = questions.iter().map(|question| (question.clone(), world.reply(question))).collect();
        inquiry.answer(questions, answers);
    }
    inquiry.budget().steps()
}

fn delete(object: &Value) -> Value {
    let group = object["apiVersion"].as_str().unwrap().split_once('/').map(|(group, _)| group).unwrap_or_default();
    json!({"uid": "1", "kind": {"group": group, "version": "v1", "kind": object["kind"]}, "operation": "DELETE",
        "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
        "userInfo": {"username": "tenant"}, "object": null, "oldObject": object})
}

/// Fails unless the cost of deleting the first object of what `world` makes grows as its size does.
#[track_caller]
fn grows_no_faster_than_its_size(size: usize, world: impl Fn(usize) -> Vec<Value>) {
    let cost = |size| {
        let world = world(size);
        steps(&world, &delete(&world[0]))
    };
    let (small, large) = (cost(size), cost(4 * size));
    assert!(usize::try_from(small).unwrap() >= size, "{size} objects were not looked at in {small} steps");
    assert!(large <= 6 * small, "{size}: {small} steps, {}: {large} steps", 4 * size);
}

fn many(number: usize, text: impl Fn(usize) -> String) -> Vec<String> {
    (0..number).map(text).collect()
}

fn listing(name: &str, entries: &[String]) -> Value {
    app(name, &entries.iter().map(String::as_str).collect::<Vec<_>>())
}

fn child(number: usize) -> String {
    format!("argoproj.io/Application argocd/child-{number}")
}

/// `child` with a marker of its own.
fn marked(child: Value, instance: &str) -> Value {
    let id = format!("{instance}:argoproj.io/Application:argocd/{}", child["metadata"]["name"].as_str().unwrap());
    with(child, "/metadata/annotations/argocd.argoproj.io~1tracking-id", id)
}

#[test]
fn objects_that_another_application_claims() {
    grows_no_faster_than_its_size(200, |size| {
        let list = many(size, |number| format!("ConfigMap target/c{number}"));
        vec![listing("one", &list), listing("other", &list)]
    });
}

#[test]
fn one_object_that_many_applications_claim() {
    grows_no_faster_than_its_size(100, |size| {
        let list = ["ConfigMap target/c".to_owned()];
        let mut world = vec![listing("one", &[list.to_vec(), many(size, |n| format!("Secret target/s{n}"))].concat())];
        world.extend((0..size).map(|number| listing(&format!("other-{number}"), &list)));
        world
    });
}

#[test]
fn children_that_are_passed_by() {
    grows_no_faster_than_its_size(100, |size| {
        let mut world = vec![listing("parent", &many(size, child))];
        // Each lists its neighbour, so whether it goes changes what its neighbour's takers are.
        world.extend((0..size).map(|n| marked(listing(&format!("child-{n}"), &[child(n + 1)]), "elsewhere")));
        world
    });
}

#[test]
fn children_that_go_one_below_the_other() {
    grows_no_faster_than_its_size(100, |size| {
        let mut world = vec![listing("parent", &[child(0)])];
        world.extend((0..size).map(|n| listing(&format!("child-{n}"), &[child(n + 1)])));
        world
    });
}

#[test]
fn children_that_go_with_as_many_that_are_passed_by() {
    grows_no_faster_than_its_size(100, |size| {
        let mut world = vec![listing("parent", &many(size, child))];
        world.extend((0..size).map(|n| {
            let child = listing(&format!("child-{n}"), &[format!("ConfigMap target/c{n}")]);
            if n % 2 == 0 { child } else { marked(child, "elsewhere") }
        }));
        world
    });
}

#[test]
fn child_that_all_other_children_list_too() {
    for change in [
        |child| marked(child, "elsewhere"),
        |child| with(child, "/metadata/annotations/argocd.argoproj.io~1sync-options", "Delete=false"),
        |child| child,
    ] as [fn(Value) -> Value; 3]
    {
        let world = |size: usize| {
            let mut world = vec![listing("parent", &many(size, child))];
            let last = child(size);
            world.extend((0..size).map(|n| listing(&format!("child-{n}"), std::slice::from_ref(&last))));
            world.push(change(listing(&format!("child-{size}"), &["ConfigMap target/c".to_owned()])));
            world
        };
        grows_no_faster_than_its_size(100, world);
    }
}

#[test]
fn namespaces_with_applications_that_were_never_compared() {
    grows_no_faster_than_its_size(50, |size| {
        let mut world = vec![listing("one", &many(size, |number| format!("ConfigMap target-{number}/c")))];
        world.extend((0..size).map(|number| {
            let never = with(app(&format!("never-{number}"), &[]), "/status", json!({}));
            with(never, "/spec/destination/namespace", format!("target-{number}"))
        }));
        world
    });
}

#[test]
fn cascade_below_a_long_chain_of_terminating_applications() {
    let world = |size: usize| {
        let going = |app: Value, number: usize| {
            let app = with(app, "/spec/project", format!("p{number}"));
            with(app, "/metadata/deletionTimestamp", format!("2026-11-29T11:{:02}:00Z", number % 60))
        };
        let mut world = vec![object("ConfigMap target/c", "child-0")];
        world.push(going(listing("child-0", &["ConfigMap target/c".to_owned()]), 0));
        world.extend((1..size).map(|n| going(listing(&format!("child-{n}"), &[child(n - 1)]), n)));
        world
    };
    let cost = |size: usize| {
        let world = world(size);
        let mut request = delete(&world[0]);
        request["userInfo"]["username"] = json!(CONTROLLER);
        steps(&world, &request)
    };
    let (small, large) = (cost(100), cost(400));
    assert!(large <= 6 * small, "{small} steps, then {large}");
}

#[test]
fn hook_is_judged_by_a_thousand_needs_and_says_so() {
    let hook = |references: usize| {
        let sources: Vec<Value> = (0..references).map(|n| json!({"configMapRef": {"name": format!("c{n}")}})).collect();
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "m", "namespace": "target", "annotations": {
                "argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/tracking-id": "shop:batch/Job:target/m"}},
            "spec": {"activeDeadlineSeconds": 60, "template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "c", "envFrom": sources}]}}}})
    };
    let findings = |references: usize| {
        let list = many(references, |number| format!("ConfigMap target/c{number} OutOfSync"));
        let world = snapshot(&[listing("shop", &list), argocd_cm(json!({}))]);
        let object = hook(references);
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "kind": {"group": "batch", "version": "v1", "kind": "Job"}, "operation": "CREATE",
            "name": "m", "namespace": "target", "userInfo": {"username": CONTROLLER}, "object": object}});
        let (body, policy) = (body.to_string(), strict());
        let request = decode(body.as_bytes()).unwrap();
        let inventory = world.inventory(&policy, (1, 2));
        let case = Case::new(&request, &policy, NOW.parse().unwrap());
        let decision = cascade_guard_core::judge::judge_at_hand(case, &inventory, &world).decision;
        let count = |id: &str| decision.outcomes.iter().filter(|outcome| outcome.finding.check.id == id).count();
        let needs = decision.outcomes.iter().filter(|outcome| outcome.finding.regarding.is_some()).count();
        (needs, count("too-many-needs"), decision.allowed())
    };
    assert_eq!(findings(1000), (1000, 0, false));
    assert_eq!(findings(1001), (1000, 1, false));
    assert_eq!(findings(4000), (1000, 1, false));
}
