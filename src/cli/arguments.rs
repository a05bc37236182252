//! Arguments that several commands share: snapshot, policy, clock.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use jiff::{SignedDuration, Timestamp};

use super::output;
use crate::snapshot;
use cascade_guard_core::{
    inventory::Inventory,
    object::{GroupKind, ObjectRef},
    policy::{Mode, POLICY_GROUP, POLICY_KIND, POLICY_NAME, Policy},
    snapshot::Snapshot,
};

/// Where a command takes the cluster, the policy and the time from.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
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
    /// GuardPolicy file; without one the GuardPolicy of the cluster or the snapshot counts, and where there is none every
    /// rule is in audit
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

    /// The policy file, if one is named, or else the GuardPolicy that a snapshot holds, as a cluster would.
    pub fn load_over(&self, snapshot: &Snapshot) -> anyhow::Result<Policy> {
        let stored = ObjectRef::new(POLICY_GROUP, POLICY_KIND, "", POLICY_NAME);
        match snapshot.json_of(&stored) {
            Some(json) if self.policy.is_none() => {
                let policy = Policy::from_object(&json);
                let policy = policy.with_context(|| format!("{stored} cannot be used; name another with --policy"))?;
                Ok(policy.with_ceiling(self.ceiling()))
            }
            _ => self.load(),
        }
    }

    /// No rule acts more strictly than this.
    pub fn ceiling(&self) -> Mode {
        self.mode_ceiling.unwrap_or(Mode::Enforce)
    }
}

impl InputArgs {
    /// The time to judge by.
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }

    /// Reads the snapshot, if one is named, together with its policy and what Applications claim by that.
    pub fn open(&self) -> anyhow::Result<Option<(Snapshot, Policy, Inventory)>> {
        let open = |path| snapshot::open(path, |snapshot| self.policy.load_over(snapshot), (0, 0));
        let opened = self.snapshot.as_deref().map(open).transpose().context(UNUSABLE)?;
        if let Some((snapshot, _, inventory)) = &opened {
            let unreadable = inventory.applications().filter(|(_, app)| app.is_unreadable());
            name_unreadable(snapshot, unreadable.map(|(_, app)| app.object()));
        }
        Ok(opened)
    }

    /// Reads the snapshot, if one is named, and its policy.
    pub fn snapshot(&self) -> anyhow::Result<Option<(Snapshot, Policy)>> {
        let Some(path) = &self.snapshot else { return Ok(None) };
        let snapshot = snapshot::load(path).context(UNUSABLE)?;
        name_unreadable(&snapshot, snapshot.objects().map(|(object, _)| object.clone()));
        let policy = self.policy.load_over(&snapshot).context(UNUSABLE)?;
        Ok(Some((snapshot, policy)))
    }

    /// Fails where the snapshot, if one is named, holds no object of `kinds` (any, if none are given): what a command finds
    /// nothing wrong with must be there. Usually the command that should have written the file has failed.
    pub fn ensure_holds(&self, snapshot: &Snapshot, kinds: &[GroupKind]) -> anyhow::Result<()> {
        self.snapshot.as_deref().map_or(Ok(()), |path| ensure_holds(path, snapshot, kinds))
    }
}

/// Names those of these Applications that cannot be decoded, and says what is wrong with each.
pub fn name_unreadable(snapshot: &Snapshot, applications: impl IntoIterator<Item = ObjectRef>) {
    for fault in applications.into_iter().filter_map(|application| snapshot.fault(&application)) {
        output::note(&format!("{fault}; its list is not believed, and what else it wants is not known"));
    }
}

const UNUSABLE: &str = "the snapshot cannot be used";

/// The same of a snapshot read from `path`.
pub fn ensure_holds(path: &Path, snapshot: &Snapshot, kinds: &[GroupKind]) -> anyhow::Result<()> {
    let mut held: BTreeMap<&str, usize> = BTreeMap::new();
    for (object, _) in snapshot.objects() {
        if kinds.is_empty() || kinds.contains(&object.kind) {
            return Ok(());
        }
        *held.entry(&object.kind.kind).or_default() += 1;
    }
    let place = path.display();
    if held.is_empty() {
        bail!("{UNUSABLE}: {place} holds no object at all");
    }
    let wanted: Vec<&str> = kinds.iter().map(|kind| kind.kind.as_str()).collect();
    let held: Vec<String> = held.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    bail!("{UNUSABLE}: {place} holds no {}, only {}", wanted.join(" and no "), held.join(", "))
}

/// A time span longer than zero, such as `90s`, `10m`, `2h` or `1h30m`: what the policy's `maxTTL` understands.
pub fn duration(text: &str) -> Result<SignedDuration, String> {
    match text.parse::<SignedDuration>() {
        Ok(duration) if duration.is_positive() => Ok(duration),
        _ => Err(format!("`{text}` is not a time span longer than zero; write it as 90s, 10m or 2h")),
    }
}
