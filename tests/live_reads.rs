//! Reads of the live cluster, with the faults that a real API server cannot be brought to have.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

#[path = "serving/api.rs"]
mod api;

use std::{sync::Arc, time::Duration};

use api::{FakeApi, Reply};
use cascade_guard::judge::Source;
use cascade_guard::{
    cluster::{Kinds, LiveSource},
    telemetry::Metrics,
};
use cascade_guard_core::{
    admission::UserInfo,
    facts::{AccessQuestion, Answer, ListQuestion, Listing, Question, Reading},
    object::ObjectRef,
};
use serde_json::json;

struct Setup {
    api: FakeApi,
    source: LiveSource,
    metrics: Arc<Metrics>,
}

fn setup() -> Setup {
    let (api, metrics) = (FakeApi::new(), Arc::new(Metrics::new()));
    let source = LiveSource::new(api.client(), Arc::new(Kinds::default()), metrics.clone());
    Setup { api, source, metrics }
}

const LONG: Duration = Duration::from_secs(30);

impl Setup {
    async fn ask(&self, question: Question) -> Answer {
        let mut answers = self.source.answer(std::slice::from_ref(&question), LONG).await;
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].0, question);
        answers.remove(0).1
    }

    fn counted(&self, outcome: &str) -> bool {
        self.metrics.encode().contains(&format!("cascade_guard_live_lookups_total{{outcome=\"{outcome}\"}} 1"))
    }
}

fn role(name: &str) -> ObjectRef {
    ObjectRef::new("rbac.authorization.k8s.io", "Role", "shop", name)
}

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/api";

#[tokio::test]
async fn metadata_alone_is_asked_for() {
    let setup = setup();
    let managed = json!([{"manager": "x", "fieldsV1": {"f:metadata": {}}}]);
    let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "api", "namespace": "shop", "uid": "u", "labels": {"a": "b"}, "managedFields": managed}});
    setup.api.reply(ROLE, Reply::Json(200, object));
    let Answer::Metadata(Reading::Found(meta)) = setup.ask(Question::Metadata(role("api"))).await else {
        panic!("not found")
    };
    assert_eq!((meta.uid.as_str(), meta.label("a")), ("u", Some("b")));
    let (path, accept) = setup.api.requests().pop().unwrap();
    assert_eq!((path.as_str(), accept.contains("as=PartialObjectMetadata")), (ROLE, true));
    assert!(setup.counted("found"));
}

#[tokio::test]
async fn whole_object_keeps_its_text() {
    let setup = setup();
    let object =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}, "status": {"phase": "Active"}});
    setup.api.reply("/api/v1/namespaces/shop", Reply::Json(200, object.clone()));
    let Answer::Object(Reading::Found(raw)) = setup.ask(Question::Object(ObjectRef::namespace("shop"))).await else {
        panic!("not found")
    };
    assert_eq!(raw.get(), object.to_string());
}

#[tokio::test]
async fn what_does_not_exist_is_told_from_what_cannot_be_read() {
    let setup = setup();
    setup.api.reply(ROLE, Reply::failure(404, "NotFound", "roles \"api\" not found"));
    assert!(matches!(setup.ask(Question::Metadata(role("api"))).await, Answer::Metadata(Reading::NotFound)));
    assert!(setup.counted("not-found"));
    // A path that nobody serves is no proof that the object does not exist.
    let other = Question::Metadata(role("other"));
    assert!(matches!(setup.ask(other).await, Answer::Metadata(Reading::Unreadable(_))));
}

#[tokio::test]
async fn refusals_and_faults_are_unreadable_and_say_why() {
    for (reply, outcome, words) in [
        (Reply::failure(403, "Forbidden", "roles is forbidden"), "forbidden", "roles is forbidden"),
        (Reply::failure(500, "InternalError", "etcd is on fire"), "error", "etcd is on fire"),
        (Reply::Text(502, "<html>bad gateway</html>"), "error", "502"),
        (Reply::Text(200, "this is no JSON with a secret in it"), "error", "makes no sense"),
    ] {
        let setup = setup();
        setup.api.reply(ROLE, reply);
        let Answer::Metadata(reading) = setup.ask(Question::Metadata(role("api"))).await else {
            panic!("another answer")
        };
        // No right will not come back with another attempt; a fault may.
        let reason = match (reading, outcome) {
            (Reading::Forbidden(reason), "forbidden") | (Reading::Unreadable(reason), "error") => reason,
            (reading, _) => panic!("{words}: {reading:?}"),
        };
        assert!(reason.contains(words) && reason.contains("Role shop/api"), "{reason}");
        assert!(!reason.contains("secret in it"), "{reason}");
        assert!(setup.counted(outcome), "{outcome}: {}", setup.metrics.encode());
    }
}

#[tokio::test]
async fn kind_that_nobody_serves_is_unreadable_and_looked_for_once() {
    let setup = setup();
    let question = Question::Metadata(ObjectRef::new("nowhere.io", "Thing", "shop", "a"));
    for _ in 0..3 {
        let Answer::Metadata(Reading::Forbidden(reason)) = setup.ask(question.clone()).await else { panic!("read") };
        assert!(reason.contains("Thing.nowhere.io"), "{reason}");
    }
    let looked = setup.api.requests().iter().filter(|(path, _)| path == "/apis").count();
    assert_eq!(looked, 1);
}

#[tokio::test]
async fn scope_and_version_come_from_discovery() {
    let setup = setup();
    let gateway = ObjectRef::new("example.com", "Gateway", "left-over-namespace", "edge");
    setup.api.reply("/apis/example.com/v1beta2/gateways/edge", Reply::Json(200, json!({"metadata": {"name": "edge"}})));
    assert!(matches!(setup.ask(Question::Metadata(gateway)).await, Answer::Metadata(Reading::Found(_))));
    let nameless = setup.ask(Question::Metadata(role(""))).await;
    assert!(matches!(nameless, Answer::Metadata(Reading::Unreadable(_))));
}

#[tokio::test]
async fn name_cannot_reach_another_path() {
    let setup = setup();
    let _ = setup.ask(Question::Metadata(role("../../secrets/token?x=1#y"))).await;
    let (path, _) = setup.api.requests().pop().unwrap();
    assert_eq!(path, "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/..%2F..%2Fsecrets%2Ftoken%3Fx%3D1%23y");
}

#[tokio::test]
async fn list_is_limited_and_selected_by_the_api_server() {
    let setup = setup();
    setup.api.reply("/api/v1/namespaces/shop/pods", Reply::list(&[json!({"metadata": {"name": "one"}})]));
    let question = Question::List(ListQuestion {
        what: Listing::PodsOfAccount("flink".to_owned()),
        namespace: "shop".to_owned(),
        limit: 20,
    });
    let Answer::List(Reading::Found(listed)) = setup.ask(question).await else { panic!("not listed") };
    assert_eq!((listed.items.len(), listed.complete), (1, true));
    let (path, _) = setup.api.requests().pop().unwrap();
    assert_eq!(path, "/api/v1/namespaces/shop/pods?limit=20&fieldSelector=spec.serviceAccountName%3Dflink");
}

#[tokio::test]
async fn list_that_goes_on_says_so() {
    let setup = setup();
    let page = json!({"metadata": {"continue": "token"}, "items": [{"metadata": {"name": "one"}}]});
    setup.api.reply("/api/v1/namespaces/shop/pods", Reply::Json(200, page));
    // Fewer than were asked for: the API server may end a page where it likes.
    let question = Question::List(ListQuestion { what: Listing::RunningPods, namespace: "shop".to_owned(), limit: 20 });
    let Answer::List(Reading::Found(listed)) = setup.ask(question).await else { panic!("not listed") };
    assert_eq!((listed.items.len(), listed.complete), (1, false));
}

#[tokio::test]
async fn access_review_that_failed_is_no_no() {
    let setup = setup();
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let question = Question::Access(AccessQuestion {
        user: UserInfo { username: "alice".to_owned(), ..UserInfo::default() },
        verb: "approve".to_owned(),
        group: "cascade-guard.io".to_owned(),
        resource: "namespacedeletions".to_owned(),
        name: "shop".to_owned(),
    });
    let review = |status: serde_json::Value| {
        Reply::Json(
            201,
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
            "spec": {}, "status": status}),
        )
    };
    setup.api.reply(path, review(json!({"allowed": true})));
    assert!(matches!(setup.ask(question.clone()).await, Answer::Access(Reading::Found(true))));
    setup.api.reply(path, review(json!({"allowed": false})));
    assert!(matches!(setup.ask(question.clone()).await, Answer::Access(Reading::Found(false))));
    setup.api.reply(path, review(json!({"allowed": false, "evaluationError": "an authorizer is down"})));
    assert!(matches!(setup.ask(question).await, Answer::Access(Reading::Unreadable(_))));
}

#[tokio::test]
async fn at_most_eight_reads_at_a_time() {
    let setup = setup();
    // Discovery first, so that only reads are counted.
    let _ = setup.ask(Question::Metadata(ObjectRef::namespace("shop"))).await;
    let gate = setup.api.hold();
    let questions: Vec<Question> =
        (0..30).map(|number| Question::Metadata(ObjectRef::namespace(&format!("n{number}")))).collect();
    let source = setup.source.clone();
    let asked = questions.clone();
    let answers = tokio::spawn(async move { source.answer(&asked, LONG).await });
    while !answers.is_finished() {
        gate.notify_one();
        tokio::task::yield_now().await;
    }
    assert_eq!(answers.await.unwrap().len(), questions.len());
    assert_eq!(setup.api.open(), (0, 8));
}

#[tokio::test]
async fn what_is_not_answered_in_time_is_left_out_and_counted() {
    let setup = setup();
    setup.api.reply("/api/v1/namespaces/quick", Reply::Json(200, json!({"metadata": {"name": "quick"}})));
    setup.api.reply("/api/v1/namespaces/slow", Reply::Silence);
    let questions = ["slow", "quick"].map(|name| Question::Metadata(ObjectRef::namespace(name)));
    let answers = setup.source.answer(&questions, Duration::from_secs(2)).await;
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].0, questions[1]);
    assert!(setup.counted("timeout"));
}
