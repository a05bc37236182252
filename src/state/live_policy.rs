//! The policy in force. A valid change takes effect at once. An invalid one is refused, and the last valid policy stays.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::WatchedFiles;
use crate::telemetry::Metrics;
use cascade_guard_core::policy::{Mode, Observed, ParseError, Policy};

/// The policy in force.
#[derive(Debug)]
pub struct LivePolicy {
    current: ArcSwap<Policy>,
    ceiling: Mode,
    metrics: Arc<Metrics>,
    changes: watch::Sender<()>,
    observed: watch::Sender<Option<Observed>>,
}

impl LivePolicy {
    /// Puts a policy in force, under a ceiling that also holds for all that follow.
    pub fn new(policy: Policy, ceiling: Mode, metrics: Arc<Metrics>) -> Self {
        let current = ArcSwap::from_pointee(policy.with_ceiling(ceiling));
        Self { current, ceiling, metrics, changes: watch::Sender::new(()), observed: watch::Sender::new(None) }
    }

    /// The policy in force now.
    pub fn load(&self) -> Arc<Policy> {
        self.current.load_full()
    }

    /// Wakes whenever another policy is in force.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The GuardPolicy object that the cluster holds; `None` where there is none, or where a file stands instead of it.
    pub fn observed(&self) -> watch::Receiver<Option<Observed>> {
        self.observed.subscribe()
    }

    /// Takes note of the GuardPolicy object that the cluster holds. Its spec was offered before.
    pub fn observe(&self, observed: Option<Observed>) {
        self.observed.send_replace(observed);
    }

    /// Puts a changed policy in force if it is valid. `origin` says where it comes from, for the log.
    pub fn offer(&self, offered: Result<Policy, ParseError>, origin: &str) {
        self.metrics.count_policy_reload(offered.is_ok());
        match offered {
            Ok(policy) => {
                self.current.store(Arc::new(policy.with_ceiling(self.ceiling)));
                self.changes.send_replace(());
                tracing::info!(origin, ceiling = self.ceiling.as_str(), "policy in force");
            }
            Err(error) => {
                tracing::error!(origin, %error, "the changed policy is refused; the last good one stays in force");
            }
        }
    }

    /// Follows a policy file for ever.
    ///
    /// # Errors
    /// Never; it has the type of a background task.
    pub async fn follow(self: Arc<Self>, file: WatchedFiles, origin: String, every: Duration) -> anyhow::Result<()> {
        let never = file.follow("the policy file", every, |bytes| {
            self.offer(Policy::parse(&String::from_utf8_lossy(&bytes[0])), &origin);
        });
        match never.await {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cascade_guard_core::policy::RuleKey;

    fn parse(mode: &str) -> Result<Policy, ParseError> {
        Policy::parse(&format!(
            "apiVersion: cascade-guard.io/v1alpha1\nkind: GuardPolicy\nspec: {{rules: {{syncWave: {{mode: {mode}}}}}}}\n"
        ))
    }

    #[test]
    fn last_good_policy_stays_in_force_and_the_ceiling_with_it() {
        let metrics = Arc::new(Metrics::new());
        let live = LivePolicy::new(parse("audit").unwrap(), Mode::Warn, metrics.clone());
        live.offer(parse("enforce"), "test");
        assert_eq!(live.load().base_mode(RuleKey::SyncWave), Mode::Warn);
        live.offer(parse("strictly"), "test");
        assert_eq!(live.load().base_mode(RuleKey::SyncWave), Mode::Warn);
        let text = metrics.encode();
        assert!(text.contains(r#"cascade_guard_policy_reload_total{result="accepted"} 1"#), "{text}");
        assert!(text.contains(r#"cascade_guard_policy_reload_total{result="rejected"} 1"#), "{text}");
    }

    #[tokio::test]
    async fn changed_file_takes_effect() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "apiVersion: cascade-guard.io/v1alpha1\nkind: GuardPolicy\n";
        std::fs::write(file.path(), text).unwrap();
        let live = Arc::new(LivePolicy::new(Policy::default(), Mode::Enforce, Arc::new(Metrics::new())));
        let mut changes = live.changes();
        let files = WatchedFiles::read(vec![file.path().to_owned()]).unwrap();
        let follower = tokio::spawn(live.clone().follow(files, "a file".to_owned(), Duration::from_millis(5)));
        std::fs::write(file.path(), format!("{text}spec: {{rules: {{syncWave: {{mode: enforce}}}}}}\n")).unwrap();
        while live.load().base_mode(RuleKey::SyncWave) != Mode::Enforce {
            // A half-written file may have been seen first; it is refused, and the whole one follows.
            changes.changed().await.unwrap();
        }
        follower.abort();
    }
}
