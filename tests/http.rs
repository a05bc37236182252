//! The webhook's routes, without sockets: status codes, limits, what happens to reviews that make no sense.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

mod serving;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, header},
};
use cascade_guard::server::{Guard, routes};
use cascade_guard_core::admission::decode;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use serving::{Nothing, guard, review};
use tower::ServiceExt;

fn app(guard: Guard<Nothing>) -> Router {
    routes::router(Arc::new(guard))
}

async fn post(app: Router, path: &str, kind: &str, body: impl Into<Body>) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path).header(header::CONTENT_TYPE, kind).body(body.into()).unwrap();
    let response = app.oneshot(request).await.unwrap();
    let status = response.status();
    (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

async fn answer(app: Router, review: &Value) -> Value {
    let (status, body) = post(app, "/validate?timeout=5s", "application/json", review.to_string()).await;
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    answer["response"].clone()
}

#[tokio::test]
async fn answer_echoes_the_uid() {
    for path in ["/validate", "/validate/", "/validate/applications", "/validate/a/b?timeout=3s"] {
        let (status, body) =
            post(app(guard("enforce")), path, "application/json; charset=utf-8", review("u-1", "DELETE").to_string())
                .await;
        assert_eq!(status, StatusCode::OK, "{path}");
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("u-1"), &json!(true)));
    }
}

#[tokio::test]
async fn body_that_is_no_review_gets_400() {
    let empty_uid = review("", "DELETE").to_string();
    for body in ["", "{", "[]", "null", "{\"kind\":\"Pod\"}", "\u{0}\u{1}", empty_uid.as_str()] {
        let (status, text) = post(app(guard("enforce")), "/validate", "application/json", body.to_owned()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?}");
        assert!(!text.is_empty());
    }
}

#[tokio::test]
async fn other_content_types_get_415() {
    for kind in ["text/plain", "application/yaml", "application/x-www-form-urlencoded", "application/jsonp"] {
        let (status, _) = post(app(guard("enforce")), "/validate", kind, review("u", "DELETE").to_string()).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
    }
    let bare = Request::post("/validate").body(Body::from("{}")).unwrap();
    assert_eq!(app(guard("enforce")).oneshot(bare).await.unwrap().status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn other_methods_and_paths_are_refused() {
    let get = Request::get("/validate").body(Body::empty()).unwrap();
    assert_eq!(app(guard("enforce")).oneshot(get).await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
    for (path, reason) in [("/mutate", "sent to /validate"), ("//validate", "one slash"), ("/", "sent to /validate")] {
        let (status, text) = post(app(guard("enforce")), path, "application/json", "{}").await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(String::from_utf8_lossy(&text).contains(reason), "{path}");
    }
}

#[tokio::test]
async fn largest_review_of_the_api_server_fits_and_a_larger_body_gets_413() {
    let with = |size: usize| {
        let mut review = review("big", "DELETE");
        review["request"]["oldObject"]["data"] = json!({"text": "x".repeat(size)});
        review.to_string()
    };
    let (status, _) = post(app(guard("enforce")), "/validate", "application/json", with(7 << 20)).await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = post(app(guard("enforce")), "/validate", "application/json", with(9 << 20)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn malformed_delete_is_refused_and_anything_else_passes_with_a_warning() {
    let malformed = |operation: &str| {
        let mut review = review("u-2", operation);
        review["request"]["kind"] = json!(7);
        review
    };
    let refused = answer(app(guard("enforce")), &malformed("DELETE")).await;
    assert_eq!((&refused["uid"], &refused["allowed"]), (&json!("u-2"), &json!(false)));
    assert_eq!((&refused["status"]["code"], &refused["status"]["reason"]), (&json!(403), &json!("Forbidden")));
    assert!(refused["status"]["message"].as_str().unwrap().contains("does not make sense"), "{refused}");
    for operation in ["UPDATE", "CREATE", "CONNECT", "SHRUG"] {
        let passed = answer(app(guard("enforce")), &malformed(operation)).await;
        assert_eq!((&passed["uid"], &passed["allowed"]), (&json!("u-2"), &json!(true)), "{operation}");
        assert_eq!(passed["warnings"].as_array().unwrap().len(), 1, "{operation}");
    }
    let audited = answer(app(guard("audit")), &malformed("DELETE")).await;
    assert_eq!(audited["allowed"], json!(true), "a policy that refuses nothing refuses no malformed delete either");
}

#[tokio::test]
async fn object_that_is_no_object_is_malformed() {
    for object in [json!(7), json!("text"), json!({"metadata": {"labels": 3}})] {
        let mut review = review("u-3", "DELETE");
        review["request"]["oldObject"] = object.clone();
        let refused = answer(app(guard("enforce")), &review).await;
        assert_eq!((&refused["uid"], &refused["allowed"]), (&json!("u-3"), &json!(false)), "{object}");
    }
}

#[tokio::test]
async fn panic_while_judging_is_answered_and_counted() {
    let mut broken = guard("enforce");
    broken.clock = || panic!("the clock is broken");
    let metrics = broken.metrics.clone();
    let app = app(broken);
    let refused = answer(app.clone(), &review("u-4", "DELETE")).await;
    assert_eq!((&refused["uid"], &refused["allowed"]), (&json!("u-4"), &json!(false)));
    let passed = answer(app, &review("u-5", "UPDATE")).await;
    assert_eq!((&passed["uid"], &passed["allowed"]), (&json!("u-5"), &json!(true)));
    let text = metrics.encode();
    assert!(text.contains(r#"operation="DELETE",rule="none",decision="error""#), "{text}");
}

#[tokio::test]
async fn clock_before_1970_is_answered_by() {
    let mut early = guard("enforce");
    early.clock = || jiff::Timestamp::from_second(-86_400).unwrap();
    let answer = answer(app(early), &review("u-8", "DELETE")).await;
    assert_eq!((&answer["uid"], &answer["allowed"]), (&json!("u-8"), &json!(true)));
}

#[tokio::test]
async fn same_review_twice_gets_the_same_answer() {
    let app = app(guard("enforce"));
    let review = review("u-6", "DELETE");
    assert_eq!(answer(app.clone(), &review).await, answer(app, &review).await);
}

#[tokio::test]
async fn dry_run_is_counted_apart_and_takes_no_part_in_anything_else() {
    let guard = guard("enforce");
    let metrics = guard.metrics.clone();
    let mut review = review("u-7", "DELETE");
    review["request"]["dryRun"] = json!(true);
    answer(app(guard), &review).await;
    let text = metrics.encode();
    assert!(text.contains(r#"decision="allow",mode="none",dry_run="true"} 1"#), "{text}");
    assert!(text.contains("cascade_guard_admission_duration_seconds_count 0"), "{text}");
}

#[tokio::test]
async fn a_review_that_these_tests_send_can_be_decoded() {
    assert!(decode(review("u", "DELETE").to_string().as_bytes()).is_ok());
}
