//! The probes of the process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::StatusCode, response::IntoResponse, routing::get};
use tokio::time::Instant;

use super::live_settings::LiveSettings;
use crate::server::admin::{self, Admin};

/// A process that has made no progress in so many intervals is not alive.
const INTERVALS: u32 = 10;
/// No interval is taken for shorter than this.
const SHORTEST: Duration = Duration::from_secs(10);

/// When there was progress last, in milliseconds since the process began.
#[derive(Clone, Debug)]
pub(super) struct Pulse(Arc<AtomicU64>, Instant);

impl Pulse {
    /// The first beat.
    pub(super) fn new() -> Self {
        Self(Arc::default(), Instant::now())
    }

    /// There is progress.
    pub(super) fn beat(&self) {
        self.0.store(u64::try_from(self.1.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn since(&self) -> Duration {
        self.1.elapsed().saturating_sub(Duration::from_millis(self.0.load(Ordering::Relaxed)))
    }
}

/// `/livez` of the watchdog; the rest of the plain port is that of the guard.
pub(super) fn plain(pulse: Pulse, settings: Arc<LiveSettings>, admin: Admin) -> Router {
    let livez = move || {
        let interval = Duration::try_from(settings.load().fetch_interval).unwrap_or_default();
        let silent = pulse.since();
        async move {
            if silent <= interval.max(SHORTEST) * INTERVALS {
                return "ok\n".into_response();
            }
            let text = format!("no progress for {} s\n", silent.as_secs());
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
    };
    Router::new().route("/livez", get(livez)).fallback_service(admin::router(admin))
}
