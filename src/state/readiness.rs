//! Whether the process is ready for requests, and if not, why.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

/// A requirement that must hold before the process is ready for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requirement {
    /// There is a usable serving certificate.
    Certificate,
    /// The policy has been read, or it is known that there is none.
    Policy,
    /// Everything that claims are judged by has been listed.
    Claims,
    /// They have been followed until a moment ago.
    FreshClaims,
    /// Every repository that the watchdog watches can be reached.
    Repositories,
    /// The process is to go on running.
    Running,
}

impl Requirement {
    /// As it is written in an answer to a probe.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Policy => "policy",
            Self::Claims => "claims",
            Self::FreshClaims => "fresh claims",
            Self::Repositories => "repositories",
            Self::Running => "running",
        }
    }
}

/// The requirements that do not hold, each with the reason.
#[derive(Debug, Default)]
pub struct Readiness {
    missing: Mutex<BTreeMap<Requirement, String>>,
    changes: watch::Sender<()>,
}

impl Readiness {
    /// Takes note that a requirement holds.
    pub fn met(&self, requirement: Requirement) {
        if self.missing.lock().remove(&requirement).is_some() {
            tracing::info!(condition = requirement.as_str(), "condition met");
            self.changes.send_replace(());
        }
    }

    /// Takes note that a requirement does not hold, and why.
    pub fn missing(&self, requirement: Requirement, why: impl Into<String>) {
        let why = why.into();
        let mut missing = self.missing.lock();
        match missing.get(&requirement) {
            None => tracing::info!(condition = requirement.as_str(), why, "condition not met"),
            // On the way to readiness the reason changes many times; whoever wants to see that asks for it.
            Some(before) if *before != why => {
                tracing::debug!(condition = requirement.as_str(), why, "condition still not met");
            }
            Some(_) => return,
        }
        missing.insert(requirement, why);
    }

    /// The requirements that do not hold; empty when ready.
    pub fn report(&self) -> Vec<(Requirement, String)> {
        self.missing.lock().iter().map(|(requirement, why)| (*requirement, why.clone())).collect()
    }

    /// Waits until a requirement holds.
    pub async fn wait_for(&self, requirement: Requirement) {
        let mut changes = self.changes.subscribe();
        while self.missing.lock().contains_key(&requirement) {
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    /// Whether every requirement holds.
    pub fn is_ready(&self) -> bool {
        self.missing.lock().is_empty()
    }
}
