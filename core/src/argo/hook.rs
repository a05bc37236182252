//! Hooks and waves as an object's annotations declare them, read the way Argo CD 3.6 reads them (section 5 of the Argo CD
//! facts; upstream `gitops-engine/pkg/sync/{hook,syncwaves,resource}` and `controller/hook.go`).

use std::fmt;

use serde::Serialize;

use crate::object::ObjectMeta;

/// Argo CD's hook types, a comma-separated list.
pub const HOOK: &str = "argocd.argoproj.io/hook";
/// Helm's hook types, a comma-separated list.
pub const HELM_HOOK: &str = "helm.sh/hook";
/// Position inside a phase.
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// Helm's word for it; counts where the sync wave is absent or no number.
pub const HELM_WEIGHT: &str = "helm.sh/hook-weight";
/// When Argo CD deletes a hook object, a comma-separated list.
pub const DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
/// The same in Helm's words; Argo CD adds both up.
pub const HELM_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";

/// On hooks of a running operation; Argo CD removes it when the hook has completed or the operation is terminated
/// (`gitops-engine/pkg/sync/hook`).
pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";

/// Every annotation that places an object in a sync or says when it goes.
pub const ANNOTATIONS: [&str; 6] = [HOOK, HELM_HOOK, SYNC_WAVE, HELM_WEIGHT, DELETE_POLICY, HELM_DELETE_POLICY];

/// When an object is made. Objects that are no hooks belong to [`Phase::Sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Phase {
    /// Before anything else of a sync.
    PreSync,
    /// With the ordinary objects.
    Sync,
    /// When every ordinary object is healthy.
    PostSync,
    /// Only after a sync that failed.
    SyncFail,
    /// When the Application is deleted, before its objects go.
    PreDelete,
    /// When the Application is deleted, after its objects went.
    PostDelete,
}

impl Phase {
    /// Every phase, in order of time.
    pub const ALL: [Self; 6] =
        [Self::PreSync, Self::Sync, Self::PostSync, Self::SyncFail, Self::PreDelete, Self::PostDelete];

    /// As the annotation spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreSync => "PreSync",
            Self::Sync => "Sync",
            Self::PostSync => "PostSync",
            Self::SyncFail => "SyncFail",
            Self::PreDelete => "PreDelete",
            Self::PostDelete => "PostDelete",
        }
    }

    /// Whether it is part of the deletion of an Application rather than of a sync. Hooks of these phases are made all at
    /// once (`controller/hook.go`): their waves order nothing.
    pub fn is_deletion(self) -> bool {
        matches!(self, Self::PreDelete | Self::PostDelete)
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == text)
    }

    /// The phase that Argo CD gives one of Helm's hook types.
    fn of_helm(text: &str) -> Option<Self> {
        match text {
            "pre-install" | "pre-upgrade" => Some(Self::PreSync),
            "post-install" | "post-upgrade" => Some(Self::PostSync),
            "pre-delete" => Some(Self::PreDelete),
            "post-delete" => Some(Self::PostDelete),
            _ => None,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Argo CD's name for "leave this object alone".
const SKIP: &str = "Skip";

/// Helm's hook types that mean nothing to Argo CD: rightly spelt, and never run.
const HELM_ONLY: [&str; 6] = ["crd-install", "pre-rollback", "post-rollback", "test", "test-success", "test-failure"];

/// The whole value by which Helm 2 marked a definition; Argo CD takes such an object for no hook.
const CRD_INSTALL: &str = "crd-install";

/// Phase and wave: where an object stands in a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stage {
    /// Phase; it always counts before the wave.
    pub phase: Phase,
    /// Wave inside the phase.
    pub wave: i64,
}

impl Stage {
    /// A stage.
    pub fn new(phase: Phase, wave: i64) -> Self {
        Self { phase, wave }
    }

    /// Where Argo CD puts the object: the earliest phase of a hook, Sync for anything else. `None` for an object that it
    /// never applies (`Skip`, or a hook without a valid type).
    pub fn of(meta: &ObjectMeta) -> Option<Self> {
        let wave = Wave::of(meta).value;
        match Hook::of(meta) {
            None => Some(Self::new(Phase::Sync, wave)),
            Some(hook) => hook.phase().map(|phase| Self::new(phase, wave)),
        }
    }
}

impl fmt::Display for Stage {
    /// `PreSync wave 5`. Hooks of a deletion have no order, so their wave is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.phase.is_deletion() {
            write!(f, "{}", self.phase)
        } else {
            write!(f, "{} wave {}", self.phase, self.wave)
        }
    }
}

/// What the hook annotations of an object say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Phases it runs in, in order of time, each once.
    pub phases: Vec<Phase>,
    /// Whether `Skip` is the only type: then the object is no hook, and never applied.
    pub skipped: bool,
    /// Whether `Skip` stands beside other types, where it has no effect.
    pub idle_skip: bool,
    /// Values that neither Argo CD nor Helm knows, with the annotation they stand in.
    pub unknown: Vec<(&'static str, String)>,
    /// Whether only Helm's annotation is there.
    pub helm_only: bool,
    /// Whether it has types that are Helm's own and that Argo CD never runs, such as `test`.
    pub only_for_helm: bool,
}

impl Hook {
    /// Reads the annotations; `None` for an object that is no hook.
    pub fn of(meta: &ObjectMeta) -> Option<Self> {
        let helm = meta.annotation(HELM_HOOK);
        let Some(argo) = meta.annotation(HOOK) else {
            let helm = helm.filter(|value| *value != CRD_INSTALL)?;
            let mut hook = Self::empty(true);
            hook.add_helm(&items(helm), |_| true);
            return Some(hook.sorted());
        };
        let argo = items(argo);
        let mut hook = Self::empty(false);
        hook.phases.extend(argo.iter().filter_map(|item| Phase::parse(item)));
        let runs_in_sync = hook.phases.iter().any(|phase| !phase.is_deletion());
        let says_skip = argo.contains(&SKIP);
        hook.idle_skip = says_skip && !hook.phases.is_empty();
        hook.skipped = says_skip && hook.phases.is_empty();
        hook.unknown.extend(
            argo.iter()
                .filter(|item| **item != SKIP && Phase::parse(item).is_none())
                .map(|item| (HOOK, (*item).to_owned())),
        );
        if let Some(helm) = helm.filter(|_| !hook.skipped) {
            // Valid Argo CD types win over Helm's in a sync; a deletion looks at both annotations.
            hook.add_helm(&items(helm), |phase| phase.is_deletion() || !(runs_in_sync || says_skip));
        }
        Some(hook.sorted())
    }

    fn empty(helm_only: bool) -> Self {
        Self {
            phases: Vec::new(),
            skipped: false,
            idle_skip: false,
            unknown: Vec::new(),
            helm_only,
            only_for_helm: false,
        }
    }

    fn add_helm(&mut self, items: &[&str], counts: impl Fn(Phase) -> bool) {
        // Where Argo CD's own types are valid, a misspelt Helm type changes nothing.
        let matters = self.phases.is_empty();
        for item in items {
            match Phase::of_helm(item) {
                Some(phase) if counts(phase) => self.phases.push(phase),
                None if HELM_ONLY.contains(item) => self.only_for_helm = true,
                None if matters => self.unknown.push((HELM_HOOK, (*item).to_owned())),
                _ => {}
            }
        }
    }

    fn sorted(mut self) -> Self {
        self.phases.sort_unstable();
        self.phases.dedup();
        self
    }

    /// The earliest phase it runs in; `None` if it never runs.
    pub fn phase(&self) -> Option<Phase> {
        self.phases.first().copied()
    }
}

/// The items of a comma-separated annotation as `GetAnnotationCSVs` splits it: trimmed, without empty ones, each once.
fn items(value: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for item in value.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// What the wave annotations of an object say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave<'a> {
    /// The wave that counts.
    pub value: i64,
    /// A sync wave that is no number, as written.
    pub malformed: Option<&'a str>,
    /// A Helm weight that would count but is no number, as written.
    pub malformed_weight: Option<&'a str>,
}

impl<'a> Wave<'a> {
    /// Reads the annotations: the sync wave if it is a number, else the Helm weight if that is one, else 0. The weight
    /// counts on objects that are no hooks, too.
    pub fn of(meta: &'a ObjectMeta) -> Self {
        let wave = meta.annotation(SYNC_WAVE);
        if let Some(value) = wave.and_then(atoi) {
            return Self { value, malformed: None, malformed_weight: None };
        }
        let weight = meta.annotation(HELM_WEIGHT);
        let value = weight.and_then(atoi);
        Self {
            value: value.unwrap_or(0),
            malformed: wave,
            malformed_weight: if value.is_none() { weight } else { None },
        }
    }
}

/// Go's `strconv.Atoi` on a 64-bit machine: an optional sign, then decimal digits and nothing else, within 64 bits. Rust's
/// own parser accepts exactly that.
pub fn atoi(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// When Argo CD deletes a hook object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeletePolicy {
    /// Before the hook is made again; what applies where nothing valid is written.
    BeforeHookCreation,
    /// When the hook succeeded.
    HookSucceeded,
    /// When the hook failed.
    HookFailed,
}

impl DeletePolicy {
    const ALL: [Self; 3] = [Self::BeforeHookCreation, Self::HookSucceeded, Self::HookFailed];

    /// As Argo CD spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeHookCreation => "BeforeHookCreation",
            Self::HookSucceeded => "HookSucceeded",
            Self::HookFailed => "HookFailed",
        }
    }

    /// As Helm spells it.
    pub fn helm_str(self) -> &'static str {
        match self {
            Self::BeforeHookCreation => "before-hook-creation",
            Self::HookSucceeded => "hook-succeeded",
            Self::HookFailed => "hook-failed",
        }
    }
}

/// What the delete policies of a hook say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletePolicies {
    /// Those in Argo CD's annotation.
    pub argo: Vec<DeletePolicy>,
    /// Those in Helm's annotation.
    pub helm: Vec<DeletePolicy>,
    /// Values that neither knows, with the annotation they stand in.
    pub unknown: Vec<(&'static str, String)>,
}

impl DeletePolicies {
    /// Reads the annotations.
    pub fn of(meta: &ObjectMeta) -> Self {
        let mut unknown = Vec::new();
        let mut read = |key: &'static str, spelt: fn(DeletePolicy) -> &'static str| {
            let mut known = Vec::new();
            for item in meta.annotation(key).map(items).unwrap_or_default() {
                match DeletePolicy::ALL.into_iter().find(|policy| spelt(*policy) == item) {
                    Some(policy) => known.push(policy),
                    None => unknown.push((key, item.to_owned())),
                }
            }
            known
        };
        let argo = read(DELETE_POLICY, DeletePolicy::as_str);
        let helm = read(HELM_DELETE_POLICY, DeletePolicy::helm_str);
        Self { argo, helm, unknown }
    }

    /// All that apply: both lists together, or `BeforeHookCreation` if both are empty.
    pub fn effective(&self) -> Vec<DeletePolicy> {
        let mut all: Vec<DeletePolicy> = self.argo.iter().chain(&self.helm).copied().collect();
        if all.is_empty() {
            all.push(DeletePolicy::BeforeHookCreation);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What Helm's annotation adds to policies that Argo CD's own annotation already names.
    pub fn added_by_helm(&self) -> Vec<DeletePolicy> {
        if self.argo.is_empty() {
            return Vec::new();
        }
        self.helm.iter().filter(|policy| !self.argo.contains(policy)).copied().collect()
    }
}

#[cfg(test)]
mod tests;
