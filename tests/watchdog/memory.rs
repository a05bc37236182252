//! A store in memory, with versions like those of an API server.

use std::collections::BTreeMap;

use cascade_guard::watchdog::store::{Kept, KeptRepository, Store, Written};
use cascade_guard_core::{
    object::ObjectRef,
    watchdog::schema::{AppRef, RolloutWatchSpec},
};
use parking_lot::Mutex;

/// What is stored, and everything that was told.
#[derive(Debug, Default)]
pub struct Memory {
    pub watches: Mutex<BTreeMap<String, Kept>>,
    pub repositories: Mutex<BTreeMap<String, KeptRepository>>,
    pub told: Mutex<Vec<String>>,
    /// What speaks against every removal.
    pub against: Mutex<Option<Vec<String>>>,
    /// Writes of a status that still succeed; afterwards all fail, as if the process had died.
    pub lives: Mutex<Option<usize>>,
}

impl Memory {
    fn breathe(&self) -> anyhow::Result<()> {
        let mut lives = self.lives.lock();
        if let Some(left) = &mut *lives {
            anyhow::ensure!(*left > 0, "the process is dead");
            *left -= 1;
        }
        Ok(())
    }
}

impl Store for &Memory {
    async fn watches(&self) -> anyhow::Result<Vec<Kept>> {
        Ok(self.watches.lock().values().cloned().collect())
    }

    async fn repositories(&self) -> anyhow::Result<Vec<KeptRepository>> {
        Ok(self.repositories.lock().values().cloned().collect())
    }

    async fn create(&self, name: &str, spec: &RolloutWatchSpec) -> anyhow::Result<Kept> {
        self.breathe()?;
        let new = || Kept { name: name.to_owned(), spec: spec.clone(), version: "1".to_owned(), ..Kept::default() };
        Ok(self.watches.lock().entry(name.to_owned()).or_insert_with(new).clone())
    }

    async fn write(&self, kept: &Kept) -> anyhow::Result<Written> {
        self.breathe()?;
        let mut watches = self.watches.lock();
        let Some(stored) = watches.get_mut(&kept.name) else { return Ok(Written::Gone) };
        if stored.version != kept.version {
            return Ok(Written::Stale);
        }
        let version = (kept.version.parse::<u64>()? + 1).to_string();
        *stored = Kept { version: version.clone(), ..kept.clone() };
        Ok(Written::Done(version))
    }

    async fn remove(&self, name: &str) -> anyhow::Result<()> {
        self.watches.lock().remove(name);
        Ok(())
    }

    async fn write_repository(&self, kept: &KeptRepository) -> anyhow::Result<()> {
        self.breathe()?;
        let mut repositories = self.repositories.lock();
        let stored = repositories.entry(kept.name.clone()).or_insert_with(|| kept.clone());
        stored.status = kept.status.clone();
        Ok(())
    }

    async fn tell(&self, kept: &Kept) {
        self.told.lock().push(format!("{} {}: {}", kept.name, kept.status.phase.as_str(), kept.status.message));
    }

    async fn against_removal(&self, _: &[(AppRef, ObjectRef)]) -> Option<Vec<String>> {
        self.against.lock().clone()
    }
}
