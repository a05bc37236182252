//! What the running server tells about itself: metrics and logs.

pub mod decisions;
pub mod log;
pub mod metrics;
mod repeats;
pub mod watchdog;

pub use self::{decisions::DecisionLog, metrics::Metrics, repeats::Repeats, watchdog::WatchdogMetrics};
