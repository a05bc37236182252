//! The plain port: what probes, Prometheus and people get to see.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, header},
};
use cascade_guard::{
    server::{admin, listener::Peer},
    state::{LiveInventory, Readiness, Requirement},
    telemetry::{Metrics, log},
};
use cascade_guard_core::{argo::Clusters, inventory::Inventory};
use http_body_util::BodyExt;
use tower::ServiceExt;

fn app(readiness: Arc<Readiness>, log: Option<log::LogFilter>) -> Router {
    admin::router(admin::Admin {
        readiness,
        metrics: Arc::new(Metrics::new()),
        inventory: Arc::new(LiveInventory::new(Inventory::new((1, 2), "argocd", Clusters::default()))),
        health: Arc::default(),
        stuck_after: jiff::SignedDuration::from_mins(10),
        log,
    })
}

async fn send(app: &Router, method: &str, path: &str, peer: &str, body: &str) -> (StatusCode, String, String) {
    let mut request = Request::builder().method(method).uri(path).body(Body::from(body.to_owned())).unwrap();
    let peer: SocketAddr = peer.parse().unwrap();
    request.extensions_mut().insert(Peer(peer));
    let response = app.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, kind, String::from_utf8(body.to_vec()).unwrap())
}

const NEAR: &str = "127.0.0.1:4000";
const FAR: &str = "10.1.2.3:4000";

#[tokio::test]
async fn readiness_says_which_condition_is_missing_and_liveness_does_not_care() {
    let readiness = Arc::new(Readiness::default());
    let app = app(readiness.clone(), None);
    assert_eq!(send(&app, "GET", "/readyz", FAR, "").await.0, StatusCode::OK);
    readiness.missing(Requirement::Claims, "Namespaces are not listed yet");
    readiness.missing(Requirement::Policy, "the GuardPolicy was not read yet");
    let (status, _, body) = send(&app, "GET", "/readyz", FAR, "").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, "policy: the GuardPolicy was not read yet\nclaims: Namespaces are not listed yet\n");
    assert_eq!(send(&app, "GET", "/livez", FAR, "").await.0, StatusCode::OK);
    readiness.met(Requirement::Claims);
    readiness.met(Requirement::Policy);
    assert_eq!(send(&app, "GET", "/readyz", FAR, "").await.0, StatusCode::OK);
}

#[tokio::test]
async fn metrics_are_open_metrics() {
    let (status, kind, body) = send(&app(Arc::default(), None), "GET", "/metrics", FAR, "").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(body.contains("cascade_guard_claim_index_ready 0") && body.ends_with("# EOF\n"), "{body}");
}

#[tokio::test]
async fn log_filter_is_changed_from_inside_the_pod_only() {
    let (_subscriber, filter) = log::subscriber("info", std::io::sink).unwrap();
    let app = app(Arc::default(), Some(filter.clone()));
    assert_eq!(send(&app, "PUT", "/log-filter", FAR, "debug").await.0, StatusCode::FORBIDDEN);
    assert_eq!(filter.current(), "info");
    assert_eq!(send(&app, "PUT", "/log-filter", NEAR, "debug\n").await.0, StatusCode::OK);
    assert_eq!(filter.current(), "debug");
    assert_eq!(send(&app, "PUT", "/log-filter", "[::ffff:127.0.0.1]:9", "warn").await.0, StatusCode::OK);
    let (status, _, body) = send(&app, "PUT", "/log-filter", NEAR, "cascade_guard=loud").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("cascade_guard=loud"), "{body}");
    assert_eq!(send(&app, "GET", "/log-filter", FAR, "").await.2, "warn\n");
}
