//! The webhook's routes: `POST /validate` and everything below it.

use std::{
    any::Any,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::post,
};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    Guard,
    bodies::Bodies,
    guard::{Arrival, NotAReview},
    listener::Client,
};
use crate::judge::Source;

/// What the API server grants if it says nothing else.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// No webhook may be given more.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// The webhook's routes.
pub fn router<S: Source + Send + 'static>(guard: Arc<Guard<S>>) -> Router {
    let bodies = Bodies::new(guard.metrics.clone());
    Router::new()
        .route("/validate", post(validate::<S>))
        .route("/validate/", post(validate::<S>))
        .route("/validate/{*entry}", post(validate::<S>))
        .fallback(not_here)
        .method_not_allowed_fallback(not_so)
        .layer(CatchPanicLayer::custom(panicked))
        .with_state((guard, bodies))
}

async fn validate<S: Source + Send + 'static>(
    State((guard, bodies)): State<(Arc<Guard<S>>, Bodies)>,
    request: Request,
) -> Response {
    let at = Instant::now();
    let granted = granted(request.uri().query());
    if !is_json(request.headers()) {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "an AdmissionReview comes as application/json\n").into_response();
    }
    let path = request.uri().path().to_owned();
    let client = request.extensions().get::<Client>().cloned().unwrap_or_default().0;
    let body = match bodies.receive(request, granted).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    match guard.answer(Bytes::from_owner(body), Arrival { path, client, at, granted }).await {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(NotAReview(reason)) => (StatusCode::BAD_REQUEST, format!("{reason}\n")).into_response(),
    }
}

/// Somebody wrote another path into a webhook configuration, and sees this in the error of the API server.
async fn not_here(uri: Uri) -> Response {
    let hint = if uri.path().starts_with("//") { ", with one slash at the beginning" } else { "" };
    (StatusCode::NOT_FOUND, format!("reviews are sent to /validate or below it{hint}\n")).into_response()
}

async fn not_so(method: Method) -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, format!("reviews are sent by POST, not by {method}\n")).into_response()
}

/// The time that the API server grants: it sends what is left of its own, in whole seconds.
fn granted(query: Option<&str>) -> Duration {
    let mut parameters = query.unwrap_or_default().split('&');
    let seconds = parameters.find_map(|parameter| parameter.strip_prefix("timeout=")?.strip_suffix('s')?.parse().ok());
    seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs).min(MAX_TIMEOUT)
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Judging catches its own panics and answers to the uid. What ends here never got as far as a uid.
#[allow(clippy::needless_pass_by_value, reason = "the layer wants this signature")]
fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "cascade-guard has a fault; its log says where\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granted_time_is_read_from_the_query() {
        assert_eq!(granted(Some("timeout=5s")), Duration::from_secs(5));
        assert_eq!(granted(Some("a=b&timeout=29s")), Duration::from_secs(29));
        assert_eq!(granted(Some("timeout=1000s")), MAX_TIMEOUT);
        for odd in [None, Some(""), Some("timeout=5"), Some("timeout=-1s"), Some("timeout=xs")] {
            assert_eq!(granted(odd), DEFAULT_TIMEOUT, "{odd:?}");
        }
    }
}
