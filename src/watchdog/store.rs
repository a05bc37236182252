//! Where watches are kept: in the cluster, or, for tests, in memory.

use std::future::Future;

use jiff::Timestamp;

use cascade_guard_core::{
    object::ObjectRef,
    watchdog::schema::{AppRef, RolloutWatchSpec, RolloutWatchStatus, WatchedRepositorySpec, WatchedRepositoryStatus},
};

/// One watch, as it is kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// What is watched.
    pub spec: RolloutWatchSpec,
    /// What became of it.
    pub status: RolloutWatchStatus,
    /// The time of the last look that is stored; later ones may not be.
    pub stored: Option<Timestamp>,
    /// What tells this state of it from any other.
    pub version: String,
}

/// One repository, as it is kept.
#[derive(Clone, Debug, Default)]
pub struct KeptRepository {
    /// Its name.
    pub name: String,
    /// What people write.
    pub spec: WatchedRepositorySpec,
    /// What the watchdog writes.
    pub status: WatchedRepositoryStatus,
}

/// How a write ended that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is written; the version now.
    Done(String),
    /// Somebody else wrote since.
    Stale,
    /// The object is gone.
    Gone,
}

/// Where watches are kept.
pub trait Store: Send + Sync {
    /// All watches.
    fn watches(&self) -> impl Future<Output = anyhow::Result<Vec<Kept>>> + Send;
    /// All repositories.
    fn repositories(&self) -> impl Future<Output = anyhow::Result<Vec<KeptRepository>>> + Send;
    /// Makes a watch, unless there is one of that name; then gives the one that is there.
    fn create(&self, name: &str, spec: &RolloutWatchSpec) -> impl Future<Output = anyhow::Result<Kept>> + Send;
    /// Writes the status of a watch, if it is still in the state that was read.
    fn write(&self, kept: &Kept) -> impl Future<Output = anyhow::Result<Written>> + Send;
    /// Removes a watch.
    fn remove(&self, name: &str) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Makes a repository if it is not there, and writes its status.
    fn write_repository(&self, kept: &KeptRepository) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Tells people what happened to a watch.
    fn tell(&self, kept: &Kept) -> impl Future<Output = ()> + Send;
    /// What speaks against the removal of objects by Argo CD; `None` if nobody can say.
    fn against_removal(&self, objects: &[(AppRef, ObjectRef)]) -> impl Future<Output = Option<Vec<String>>> + Send;
}
