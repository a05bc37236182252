//! The webhook's routes: `POST /validate` and everything below it.

use std::{
    any::Any,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    Guard,
    guard::{Arrival, NotAReview},
};
use crate::judge::Source;

/// A review carries an object twice, and the API server takes objects of 3 MiB.
pub const MAX_BODY: usize = 8 << 20;

/// What the API server grants if it says nothing else.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// No webhook may be given more.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// The webhook's routes.
pub fn router<S: Source + Send + 'static>(guard: Arc<Guard<S>>) -> Router {
    Router::new()
        .route("/validate", post(validate::<S>))
        .route("/validate/", post(validate::<S>))
        .route("/validate/{*entry}", post(validate::<S>))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(guard)
}

async fn validate<S: Source + Send + 'static>(State(guard): State<Arc<Guard<S>>>, request: Request) -> Response {
    let at = Instant::now();
    let granted = granted(request.uri().query());
    if !is_json(request.headers()) {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "an AdmissionReview comes as application/json\n").into_response();
    }
    let path = request.uri().path().to_owned();
    let body = match tokio::time::timeout(granted, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => body,
        Ok(Err(rejection)) => return rejection.into_response(),
        Err(_) => return (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time\n").into_response(),
    };
    match guard.answer(body, Arrival { path, at, granted }).await {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(NotAReview(reason)) => (StatusCode::BAD_REQUEST, format!("{reason}\n")).into_response(),
    }
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
