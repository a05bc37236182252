//! The plain port: probes, metrics, the log filter.

use std::{fmt::Write, sync::Arc};

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use jiff::{SignedDuration, Timestamp};

use super::listener::Peer;
use crate::{
    cluster::Health,
    state::{LiveInventory, Readiness},
    telemetry::{
        log::LogFilter,
        metrics::{CONTENT_TYPE, Metrics},
    },
};

/// What the plain port tells.
#[derive(Clone, Debug)]
pub struct Admin {
    /// What `/readyz` tells.
    pub readiness: Arc<Readiness>,
    /// What `/metrics` tells.
    pub metrics: Arc<Metrics>,
    /// What the metrics of the claim index are taken from.
    pub inventory: Arc<LiveInventory>,
    /// Whether it is still followed.
    pub health: Arc<Health>,
    /// What has been terminating for this long is counted as stuck.
    pub stuck_after: SignedDuration,
    /// What `/log-filter` changes, if the process logs.
    pub log: Option<LogFilter>,
}

/// The routes of the plain port.
pub fn router(admin: Admin) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/log-filter", get(log_filter).put(set_log_filter))
        .layer(DefaultBodyLimit::max(4096))
        .with_state(admin)
}

/// Says which requirement does not hold and why: this is the first thing that somebody looks at.
async fn readyz(State(admin): State<Admin>) -> Response {
    let missing = admin.readiness.report();
    if missing.is_empty() {
        return "ok\n".into_response();
    }
    let mut text = String::new();
    for (requirement, why) in missing {
        let _ = writeln!(text, "{}: {why}", requirement.as_str());
    }
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let fresh = admin.health.stale_claims().is_none();
    admin.metrics.observe_inventory(&admin.inventory.read(), fresh, Timestamp::now(), admin.stuck_after);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], admin.metrics.encode()).into_response()
}

async fn log_filter(State(admin): State<Admin>) -> Response {
    match admin.log {
        Some(log) => format!("{}\n", log.current()).into_response(),
        None => (StatusCode::NOT_FOUND, "this process does not log\n").into_response(),
    }
}

/// Everybody in the cluster can reach this port, but only from inside the Pod (`kubectl port-forward` included) may the
/// filter be changed.
async fn set_log_filter(
    State(admin): State<Admin>,
    Extension(Peer(peer)): Extension<Peer>,
    wanted: String,
) -> Response {
    if !peer.ip().to_canonical().is_loopback() {
        let hint = "the log filter is changed from inside the Pod only; use kubectl port-forward\n";
        return (StatusCode::FORBIDDEN, hint).into_response();
    }
    let Some(log) = admin.log else {
        return (StatusCode::NOT_FOUND, "this process does not log\n").into_response();
    };
    match log.set(&wanted) {
        Ok(()) => {
            tracing::warn!(filter = log.current(), "the log filter was changed");
            format!("{}\n", log.current()).into_response()
        }
        Err(reason) => (StatusCode::BAD_REQUEST, format!("{reason}\n")).into_response(),
    }
}
