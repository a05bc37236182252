//! Whether requests should be sent here, and if not, why.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Something that must hold before requests should be sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// There is a usable serving certificate.
    Certificate,
    /// The policy has been read, or it is known that there is none.
    Policy,
    /// Everything that claims are judged by has been listed.
    Claims,
    /// The process is to go on running.
    Running,
}

impl Condition {
    /// As it is written in an answer to a probe.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Policy => "policy",
            Self::Claims => "claims",
            Self::Running => "running",
        }
    }
}

/// The conditions that do not hold, each with the reason.
#[derive(Debug, Default)]
pub struct Readiness {
    missing: Mutex<BTreeMap<Condition, String>>,
    changes: watch::Sender<()>,
}

impl Readiness {
    /// Says that a condition holds.
    pub fn met(&self, condition: Condition) {
        if self.missing.lock().remove(&condition).is_some() {
            tracing::info!(condition = condition.as_str(), "condition met");
            self.changes.send_replace(());
        }
    }

    /// Says that a condition does not hold, and why.
    pub fn missing(&self, condition: Condition, why: impl Into<String>) {
        let why = why.into();
        let mut missing = self.missing.lock();
        if missing.get(&condition) != Some(&why) {
            tracing::info!(condition = condition.as_str(), why, "condition not met");
            missing.insert(condition, why);
        }
    }

    /// The conditions that do not hold; empty when ready.
    pub fn report(&self) -> Vec<(Condition, String)> {
        self.missing.lock().iter().map(|(condition, why)| (*condition, why.clone())).collect()
    }

    /// Waits until a condition holds.
    pub async fn wait_for(&self, condition: Condition) {
        let mut changes = self.changes.subscribe();
        while self.missing.lock().contains_key(&condition) {
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    /// Whether every condition holds.
    pub fn is_ready(&self) -> bool {
        self.missing.lock().is_empty()
    }
}
