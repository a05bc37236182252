//! Flags that several commands share: snapshot, policy, clock.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;

use crate::{
    inventory::Inventory,
    policy::{Mode, Policy},
    snapshot::Snapshot,
};

/// Where a command takes the world, the policy and the time from.
#[derive(Debug, clap::Args)]
pub struct WorldArgs {
    /// File or folder of Kubernetes objects that stands in for a cluster
    #[arg(long, value_name = "PATH")]
    pub snapshot: Option<PathBuf>,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Judge as if it were this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub now: Option<Timestamp>,
}

/// Where a command takes the policy from.
#[derive(Debug, clap::Args)]
pub struct PolicyArgs {
    /// GuardPolicy file; without one every rule is in audit
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// No rule acts more strictly than this: off, audit, warn or enforce
    #[arg(long, value_name = "MODE", env = "CASCADE_GUARD_MODE_CEILING", value_parser = ceiling)]
    pub mode_ceiling: Option<Mode>,
}

/// A ceiling as a flag or in the environment. A variable that is there but empty, as a manifest with an unfilled value
/// leaves it, caps nothing.
fn ceiling(text: &str) -> Result<Mode, String> {
    if text.is_empty() { Ok(Mode::Enforce) } else { text.parse() }
}

impl PolicyArgs {
    /// Reads the policy file, if one is named, and applies the ceiling.
    pub fn load(&self) -> anyhow::Result<Policy> {
        let policy = match &self.policy {
            None => Policy::default(),
            Some(path) => {
                let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                Policy::parse(&text).with_context(|| format!("{} is no usable GuardPolicy", path.display()))?
            }
        };
        Ok(policy.with_ceiling(self.ceiling()))
    }

    /// No rule acts more strictly than this.
    pub fn ceiling(&self) -> Mode {
        self.mode_ceiling.unwrap_or(Mode::Enforce)
    }
}

impl WorldArgs {
    /// The time to judge by.
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }

    /// Reads the snapshot, if one is named, together with what Applications claim by `policy`.
    pub fn open(&self, policy: &Policy) -> anyhow::Result<Option<(Snapshot, Inventory)>> {
        let open = |path: &std::path::Path| Snapshot::open(path, policy, (0, 0));
        self.snapshot.as_deref().map(open).transpose().context("the snapshot cannot be used")
    }

    /// Reads the snapshot, if one is named.
    pub fn snapshot(&self) -> anyhow::Result<Option<Snapshot>> {
        self.snapshot.as_deref().map(Snapshot::read).transpose().context("the snapshot cannot be used")
    }
}
