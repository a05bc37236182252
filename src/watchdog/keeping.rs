//! Watches are kept: written when something has changed, told to people, removed long after their end.

use std::collections::BTreeMap;

use anyhow::Context as _;
use jiff::Timestamp;

use super::{
    engine::{Engine, Report, gap},
    store::{Store, Written},
};
use cascade_guard_core::watchdog::RolloutWatchStatus;

impl<S: Store> Engine<S> {
    /// Keeps a new status; tells people where the phase changed or the watch is over.
    pub(super) async fn keep(
        &mut self,
        name: &str,
        status: RolloutWatchStatus,
        report: &mut Report,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let Some(kept) = self.watches.get_mut(name) else { return Ok(()) };
        let old = std::mem::replace(&mut kept.status, status);
        let settled = |status: &RolloutWatchStatus| RolloutWatchStatus { looked: None, unjudged: 0, ..status.clone() };
        let recent = kept.stored.is_some_and(|stored| now.duration_since(stored) < gap(&self.settings) / 3);
        if settled(&old) == settled(&kept.status) && recent {
            // Only the time of the look changed; that is stored from time to time.
            return Ok(());
        }
        let (old_phase, old_end) = (old.phase, old.ended);
        if !self.write(name).await? {
            return Ok(());
        }
        let Some(kept) = self.watches.get(name) else { return Ok(()) };
        if kept.status.phase != old_phase || kept.status.ended != old_end {
            let status = &kept.status;
            if status.phase.is_final() {
                tracing::info!(
                    watch = name,
                    app = %kept.spec.application,
                    commit = kept.spec.commit,
                    mode = kept.spec.mode.as_str(),
                    verdict = status.phase.as_str(),
                    unmet = status.unmet.join(","),
                    message = status.message,
                    "verdict"
                );
                report.verdicts.push(kept.clone());
            }
            self.store.tell(kept).await;
        }
        Ok(())
    }

    /// Writes the status of a watch; `false` if the watch is gone. That somebody else wrote it is an error: then everything
    /// has to be read again.
    pub(super) async fn write(&mut self, name: &str) -> anyhow::Result<bool> {
        let Some(kept) = self.watches.get_mut(name) else { return Ok(false) };
        match self.store.write(kept).await.with_context(|| format!("RolloutWatch {name} cannot be written"))? {
            Written::Done(version) => {
                kept.version = version;
                kept.stored = kept.status.looked;
                Ok(true)
            }
            Written::Gone => {
                self.watches.remove(name);
                Ok(false)
            }
            Written::Stale => anyhow::bail!("RolloutWatch {name} was written by somebody else"),
        }
    }

    /// Removes watches that ended long ago.
    pub(super) async fn tidy(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let mut ended: BTreeMap<_, Vec<(Timestamp, String)>> = BTreeMap::new();
        for kept in self.watches.values() {
            if let Some(end) = kept.status.ended {
                ended.entry(kept.spec.application.clone()).or_default().push((end, kept.name.clone()));
            }
        }
        for mut watches in ended.into_values() {
            watches.sort_by(|left, right| right.cmp(left));
            for (end, name) in watches.into_iter().skip(self.settings.spec.keep.last) {
                if now.duration_since(end) > self.settings.keep {
                    self.store.remove(&name).await?;
                    self.watches.remove(&name);
                }
            }
        }
        Ok(())
    }
}
