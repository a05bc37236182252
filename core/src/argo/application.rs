//! The parts of an Application that say what it wants, what it holds and what it is doing.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::{
    destination::Destination,
    digest::{Digest, Present, SourceDigest},
    sync_options,
};
use crate::{
    object::{ObjectMeta, ObjectRef, null_to_default},
    text::clip,
};

/// Finalizers that make the deletion of an Application cascade (`application_defaults.go`); exact matches only.
pub const CASCADE_FINALIZERS: [&str; 3] = [
    "resources-finalizer.argocd.argoproj.io",
    "resources-finalizer.argocd.argoproj.io/foreground",
    "resources-finalizer.argocd.argoproj.io/background",
];

/// Annotation that freezes an Application's status.
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

/// Conditions under which `status.resources` is not to be believed (section 2.3 of the Argo CD facts).
const DISTRUST: [&str; 3] = ["ComparisonError", "InvalidSpecError", "UnknownError"];

/// So much of a condition is kept: it is held for every Application in error, and repeated in a message.
const MAX_TROUBLE: usize = 150;

/// Whether the deletion of an object with these finalizers cascades.
pub fn cascades(finalizers: &[String]) -> bool {
    finalizers.iter().any(|finalizer| CASCADE_FINALIZERS.contains(&finalizer.as_str()))
}

/// An Application, decoded in part.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub struct Application<'a> {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What it should be.
    #[serde(deserialize_with = "null_to_default")]
    pub spec: Spec,
    /// A sync that was asked for and is not finished.
    pub operation: Option<Operation>,
    /// What was found.
    #[serde(borrow, deserialize_with = "null_to_default")]
    pub status: Status<'a>,
}

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// AppProject, `default` where empty.
    #[serde(deserialize_with = "null_to_default")]
    pub project: String,
    /// The only source.
    pub source: Option<SourceDigest>,
    /// Several sources.
    pub sources: Option<Vec<SourceDigest>>,
    /// Where it deploys to.
    #[serde(deserialize_with = "null_to_default")]
    pub destination: Destination,
    /// How it syncs.
    #[serde(deserialize_with = "null_to_default")]
    pub sync_policy: SyncPolicy,
    /// Part of what a list of resources is compared by.
    pub ignore_differences: Digest,
    /// A hydrated source: then the compared source is derived, not repeated.
    pub source_hydrator: Present,
}

/// `spec.syncPolicy`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicy {
    /// Present when the Application syncs by itself.
    pub automated: Option<Automated>,
    /// Options, copied into operations by whoever starts them.
    #[serde(deserialize_with = "null_to_default")]
    pub sync_options: Vec<String>,
}

/// `spec.syncPolicy.automated`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Automated {
    /// Whether it is on; absent means yes.
    pub enabled: Option<bool>,
    /// Whether it removes what left Git.
    #[serde(deserialize_with = "null_to_default")]
    pub prune: bool,
    /// Whether it undoes changes in the cluster.
    #[serde(deserialize_with = "null_to_default")]
    pub self_heal: bool,
}

/// `operation`, also found under `status.operationState`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// The sync asked for.
    pub sync: Option<SyncOperation>,
}

/// `operation.sync`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOperation {
    /// Whether it removes what left Git.
    #[serde(deserialize_with = "null_to_default")]
    pub prune: bool,
    /// Options of this operation. The spec's own are not consulted by Argo CD when these are absent.
    #[serde(deserialize_with = "null_to_default")]
    pub sync_options: Vec<String>,
    /// The revision to sync, a commit once Argo CD has resolved it; empty for the one in the spec.
    #[serde(deserialize_with = "null_to_default")]
    pub revision: String,
    /// The same for several sources.
    #[serde(deserialize_with = "null_to_default")]
    pub revisions: Vec<String>,
    /// The only objects to sync; empty for all.
    #[serde(deserialize_with = "null_to_default")]
    pub resources: Vec<serde::de::IgnoredAny>,
    /// Whether nothing is really applied.
    #[serde(deserialize_with = "null_to_default")]
    pub dry_run: bool,
    /// Manifests that stand in for Git ("local sync").
    #[serde(deserialize_with = "null_to_default")]
    pub manifests: Vec<serde::de::IgnoredAny>,
    /// How objects are applied.
    #[serde(deserialize_with = "null_to_default")]
    pub sync_strategy: SyncStrategy,
}

/// `operation.sync.syncStrategy`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SyncStrategy {
    /// Apply without hooks.
    #[serde(deserialize_with = "null_to_default")]
    pub apply: Strategy,
    /// Apply with hooks.
    #[serde(deserialize_with = "null_to_default")]
    pub hook: Strategy,
}

/// One strategy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Strategy {
    /// Whether objects that cannot be patched are deleted and made anew.
    #[serde(deserialize_with = "null_to_default")]
    pub force: bool,
}

impl SyncOperation {
    /// Whether it may delete an object and make it anew.
    pub fn replaces(&self) -> bool {
        self.sync_strategy.apply.force
            || self.sync_strategy.hook.force
            || ["Replace", "Force"].iter().any(|key| sync_options::in_list(&self.sync_options, key) == Some("true"))
    }
}

/// `status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase", default)]
pub struct Status<'a> {
    /// When it was last compared, successfully or not.
    pub reconciled_at: Option<Timestamp>,
    /// Result of the comparison.
    #[serde(deserialize_with = "null_to_default")]
    pub sync: SyncStatus,
    /// Conditions.
    #[serde(deserialize_with = "null_to_default")]
    pub conditions: Vec<Condition>,
    /// The list: every object wanted or held.
    #[serde(borrow, deserialize_with = "null_to_default")]
    pub resources: Vec<Entry<'a>>,
    /// The last or current sync.
    #[serde(borrow, deserialize_with = "null_to_default")]
    pub operation_state: OperationState<'a>,
    /// Syncs that succeeded.
    #[serde(deserialize_with = "null_to_default")]
    pub history: Vec<serde::de::IgnoredAny>,
    /// Namespace of the controller that wrote this status.
    #[serde(deserialize_with = "null_to_default")]
    pub controller_namespace: String,
}

/// `status.sync`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStatus {
    /// `Synced`, `OutOfSync` or `Unknown`.
    #[serde(deserialize_with = "null_to_default")]
    pub status: String,
    /// The commit that was compared.
    #[serde(deserialize_with = "null_to_default")]
    pub revision: String,
    /// The same for several sources.
    #[serde(deserialize_with = "null_to_default")]
    pub revisions: Vec<String>,
    /// Which spec the list belongs to.
    pub compared_to: Option<ComparedTo>,
}

/// `status.sync.comparedTo`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ComparedTo {
    /// The only source.
    pub source: Option<SourceDigest>,
    /// Several sources.
    pub sources: Option<Vec<SourceDigest>>,
    /// Where it deployed to.
    #[serde(deserialize_with = "null_to_default")]
    pub destination: Destination,
    /// Differences that were ignored.
    pub ignore_differences: Digest,
}

/// One condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong.
    #[serde(deserialize_with = "null_to_default")]
    pub message: String,
}

/// `status.operationState`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase", default)]
pub struct OperationState<'a> {
    /// `Running`, `Terminating`, `Succeeded`, `Failed`, `Error`.
    #[serde(deserialize_with = "null_to_default")]
    pub phase: String,
    /// What was asked for.
    #[serde(deserialize_with = "null_to_default")]
    pub operation: Operation,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// What it did.
    #[serde(borrow, deserialize_with = "null_to_default")]
    pub sync_result: SyncResult<'a>,
}

/// `status.operationState.syncResult`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub struct SyncResult<'a> {
    /// Objects the sync touched, hooks included.
    #[serde(borrow, deserialize_with = "null_to_default")]
    pub resources: Vec<ResultEntry<'a>>,
}

/// One object a sync touched.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase", default)]
pub struct ResultEntry<'a> {
    /// API group.
    #[serde(borrow, deserialize_with = "text")]
    pub group: Cow<'a, str>,
    /// Kind.
    #[serde(borrow, deserialize_with = "text")]
    pub kind: Cow<'a, str>,
    /// Namespace.
    #[serde(borrow, deserialize_with = "text")]
    pub namespace: Cow<'a, str>,
    /// Name.
    #[serde(borrow, deserialize_with = "text")]
    pub name: Cow<'a, str>,
    /// `Synced`, `SyncFailed`, `Pruned`, `PruneSkipped`.
    #[serde(borrow, deserialize_with = "text")]
    pub status: Cow<'a, str>,
    /// Phase a hook ran in; empty for other objects.
    #[serde(borrow, deserialize_with = "text")]
    pub hook_type: Cow<'a, str>,
}

/// One object of `status.resources`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase", default)]
pub struct Entry<'a> {
    /// API group.
    #[serde(borrow, deserialize_with = "text")]
    pub group: Cow<'a, str>,
    /// Kind.
    #[serde(borrow, deserialize_with = "text")]
    pub kind: Cow<'a, str>,
    /// Namespace.
    #[serde(borrow, deserialize_with = "text")]
    pub namespace: Cow<'a, str>,
    /// Name; can be missing for objects with a `generateName`.
    #[serde(borrow, deserialize_with = "text")]
    pub name: Cow<'a, str>,
    /// `Synced`, `OutOfSync`, `Unknown` or nothing.
    #[serde(borrow, deserialize_with = "text")]
    pub status: Cow<'a, str>,
    /// Whether it is a live hook.
    #[serde(deserialize_with = "null_to_default")]
    pub hook: bool,
    /// Whether it left Git.
    #[serde(deserialize_with = "null_to_default")]
    pub requires_pruning: bool,
    /// Effective sync wave.
    #[serde(deserialize_with = "null_to_default")]
    pub sync_wave: i64,
}

/// Text that may be `null`, borrowed where it can be.
fn text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'a, str>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'a>>::deserialize(deserializer)?.map_or_else(Cow::default, |text| text.0))
}

/// What an entry of a list means (section 2.2 of the Argo CD facts, derived from `controller/state.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A manifest exists.
    Desired,
    /// Live and owned, but no longer in Git.
    Prune,
    /// Could not be compared.
    Unknown,
    /// A live hook.
    Hook,
    /// Listed without a status: skipped, a copy, or an ignored hook.
    NoStatus,
    /// Not in the list, but the last sync made it, a sync of everything that succeeded.
    SyncResult,
    /// Not in the list, but some sync left it behind.
    LeftBehind,
}

impl Entry<'_> {
    /// What the entry means.
    pub fn class(&self) -> Class {
        if self.hook {
            return Class::Hook;
        }
        match (self.status.as_ref(), self.requires_pruning) {
            ("Synced" | "OutOfSync", false) => Class::Desired,
            ("OutOfSync", true) => Class::Prune,
            ("", _) => Class::NoStatus,
            _ => Class::Unknown,
        }
    }

    /// Identity of the object, as listed.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::new(&self.group, &self.kind, &self.namespace, &self.name)
    }
}

impl ResultEntry<'_> {
    /// Identity of the object, as listed.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::new(&self.group, &self.kind, &self.namespace, &self.name)
    }

    /// Whether the object was there when the sync ended.
    pub fn left_behind(&self) -> bool {
        matches!(self.status.as_ref(), "Synced" | "PruneSkipped" | "")
    }
}

impl Application<'_> {
    /// Whether its deletion cascades.
    pub fn cascades(&self) -> bool {
        cascades(&self.metadata.finalizers)
    }

    /// The sync in progress. Before the controller has picked an operation up it is only in `operation`.
    pub fn running_sync(&self) -> Option<&SyncOperation> {
        static NONE: SyncOperation = SyncOperation {
            prune: false,
            sync_options: Vec::new(),
            revision: String::new(),
            revisions: Vec::new(),
            resources: Vec::new(),
            dry_run: false,
            manifests: Vec::new(),
            sync_strategy: SyncStrategy { apply: Strategy { force: false }, hook: Strategy { force: false } },
        };
        let state = &self.status.operation_state;
        if let Some(operation) = &self.operation {
            return Some(operation.sync.as_ref().unwrap_or(&NONE));
        }
        matches!(state.phase.as_str(), "Running" | "Terminating")
            .then(|| state.operation.sync.as_ref().unwrap_or(&NONE))
    }

    /// Whether the sync in progress is of another revision than the list was made from. Only resolved revisions of one
    /// form tell (commits, versions of a chart, digests): a branch, a range or an empty revision says nothing.
    pub fn syncs_other_revision(&self) -> bool {
        let Some(sync) = self.running_sync() else { return false };
        let listed = &self.status.sync;
        let differs = |synced: &str, listed: &str| match (Resolved::parse(synced), Resolved::parse(listed)) {
            (Some(synced), Some(listed)) => synced.differs(listed),
            _ => false,
        };
        differs(&sync.revision, &listed.revision)
            || sync.revisions.iter().zip(&listed.revisions).any(|(synced, listed)| differs(synced, listed))
    }

    /// Whether it undoes changes in the cluster by itself.
    pub fn self_heals(&self) -> bool {
        self.spec
            .sync_policy
            .automated
            .as_ref()
            .is_some_and(|automated| automated.enabled != Some(false) && automated.self_heal)
    }

    /// Whether it removes by itself what left Git.
    pub fn prunes_by_itself(&self) -> bool {
        self.spec
            .sync_policy
            .automated
            .as_ref()
            .is_some_and(|automated| automated.enabled != Some(false) && automated.prune)
    }

    /// Whether the last comparison failed, so that the list may lack what the Application wants: Argo CD empties it of all
    /// that the Application does not own yet, and leaves `reconciledAt` as it is (seen with a repo-server that was away).
    pub fn comparison_failed(&self) -> bool {
        let status = &self.status;
        status.reconciled_at.is_some()
            && (!matches!(status.sync.status.as_str(), "Synced" | "OutOfSync")
                || status.conditions.iter().any(|condition| DISTRUST.contains(&condition.kind.as_str())))
    }

    /// Whether its last operation was a sync of everything that succeeded, so that what it made says what was wanted then.
    pub fn synced_whole(&self) -> bool {
        let state = &self.status.operation_state;
        state.phase == "Succeeded"
            && state.operation.sync.as_ref().is_some_and(|sync| sync.resources.is_empty() && !sync.dry_run)
    }

    /// Never compared: what it wants is not known at all.
    pub fn never_compared(&self) -> bool {
        self.status.reconciled_at.is_none() && self.status.resources.is_empty()
    }

    /// Whether the list says what the current spec wants (`list_valid`, section 9 of the Argo CD facts). A list without
    /// `reconciledAt` or `comparedTo` is taken as it is.
    pub fn list_valid(&self) -> bool {
        self.list_distrust().is_none()
    }

    /// Whether its controller leaves it alone.
    pub fn is_skipped(&self) -> bool {
        // Go's ParseBool.
        matches!(self.metadata.annotation(SKIP_RECONCILE), Some("1" | "t" | "T" | "true" | "True" | "TRUE"))
    }

    /// What keeps it from being compared and synced, in its own words: the first condition that says so.
    pub fn trouble(&self) -> Option<String> {
        if self.is_skipped() {
            return Some("skip-reconcile is set on it".to_owned());
        }
        let bad = self.status.conditions.iter().find(|condition| DISTRUST.contains(&condition.kind.as_str()))?;
        Some(match bad.message.trim() {
            "" => bad.kind.clone(),
            message => format!("{}: {}", bad.kind, clip(message, MAX_TROUBLE)),
        })
    }

    /// Why the list is not to be believed, in words for a person; `None` if it is.
    pub fn list_distrust(&self) -> Option<&'static str> {
        let status = &self.status;
        if self.never_compared() {
            return Some("it was never compared");
        }
        if !matches!(status.sync.status.as_str(), "Synced" | "OutOfSync") {
            return Some("its sync status is unknown");
        }
        if status.conditions.iter().any(|condition| DISTRUST.contains(&condition.kind.as_str())) {
            return Some("its last comparison failed");
        }
        if status.sync.compared_to.as_ref().is_some_and(|compared| !self.spec.was_compared(compared)) {
            return Some("its spec changed since it was compared");
        }
        if status.operation_state.operation.sync.as_ref().is_some_and(|sync| !sync.manifests.is_empty()) {
            return Some("it was synced from local manifests");
        }
        if self.is_skipped() {
            return Some("it is not reconciled (skip-reconcile)");
        }
        None
    }
}

/// A revision that means one state of a source and no other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resolved<'a> {
    /// A Git commit in full.
    Commit(&'a str),
    /// The digest of an OCI artifact.
    Digest(&'a str),
    /// The version of a chart, without the `v` that Helm does not mind.
    Version(&'a str),
}

impl<'a> Resolved<'a> {
    fn parse(revision: &'a str) -> Option<Self> {
        let is_hex = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex(revision, 40) {
            return Some(Self::Commit(revision));
        }
        if revision.strip_prefix("sha256:").is_some_and(|digest| is_hex(digest, 64)) {
            return Some(Self::Digest(revision));
        }
        let version = revision.strip_prefix('v').unwrap_or(revision);
        is_exact_version(version).then_some(Self::Version(version))
    }

    /// Whether this is another state than `other`. A commit and a version cannot be compared: one may be the other's tag.
    fn differs(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other) && self != other
    }
}

/// Whether a text is one version (semver 2: three numbers, perhaps a pre-release and a build) rather than a range.
fn is_exact_version(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
    let numbers: Vec<&str> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    numbers.len() == 3
        && numbers.iter().all(is_number)
        && [before, build].into_iter().flatten().all(|words| words.split('.').all(is_word))
}

impl Spec {
    fn was_compared(&self, compared: &ComparedTo) -> bool {
        let same_sources = self.source_hydrator.0
            || match (&self.sources, &compared.sources) {
                // With several sources the single one is ignored.
                (Some(ours), Some(theirs)) if !ours.is_empty() => {
                    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.whole == b.whole)
                }
                (Some(ours), _) if !ours.is_empty() => false,
                _ => self.source.unwrap_or_default().whole == compared.source.unwrap_or_default().whole,
            };
        same_sources
            && self.destination.same_as(&compared.destination)
            && self.ignore_differences == compared.ignore_differences
    }

    /// Digest of everything it renders, revisions aside: equal digests render the same objects.
    pub fn rendered(&self) -> Digest {
        let sources = match &self.sources {
            Some(sources) if !sources.is_empty() => sources.as_slice(),
            _ => self.source.as_slice(),
        };
        sources.iter().fold(Digest::default(), |sum, source| {
            // Order counts, so that a swap of two sources is another rendering.
            Digest(sum.0.rotate_left(1).wrapping_add(source.without_revision.0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(json: &str) -> Application<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn entries_are_classified_as_argo_cd_means_them() {
        let class = |json: &str| serde_json::from_str::<Entry<'_>>(json).unwrap().class();
        assert_eq!(class(r#"{"kind":"A","status":"Synced"}"#), Class::Desired);
        assert_eq!(class(r#"{"kind":"A","status":"OutOfSync"}"#), Class::Desired);
        assert_eq!(class(r#"{"kind":"A","status":"OutOfSync","requiresPruning":true}"#), Class::Prune);
        assert_eq!(class(r#"{"kind":"A","status":"Unknown","requiresPruning":true}"#), Class::Unknown);
        assert_eq!(class(r#"{"kind":"A","hook":true}"#), Class::Hook);
        assert_eq!(class(r#"{"kind":"A"}"#), Class::NoStatus);
    }

    #[test]
    fn only_the_three_finalizers_cascade() {
        let with = |finalizer: &str| cascades(&[finalizer.to_owned()]);
        assert!(CASCADE_FINALIZERS.iter().all(|finalizer| with(finalizer)));
        assert!(!with("resources-finalizer.argocd.argoproj.io/orphan"));
        assert!(!with("post-delete-finalizer.argocd.argoproj.io"));
    }

    const VALID: &str = r#"{"metadata":{"name":"a"},
        "spec":{"source":{"repoURL":"r","path":"p"},"destination":{"server":"https://k/","namespace":"n"}},
        "status":{"reconciledAt":"2026-11-29T17:01:10Z","sync":{"status":"Synced","comparedTo":
          {"source":{"path":"p","repoURL":"r"},"destination":{"server":"https://k","namespace":"n"}}},
          "resources":[{"kind":"ConfigMap","name":"c","namespace":"n","status":"Synced","version":"v1"}]}}"#;

    #[test]
    fn list_is_believed_only_under_its_own_spec() {
        assert_eq!(app(VALID).list_distrust(), None);
        assert!(!app(&VALID.replace(r#""path":"p"},"dest"#, r#""path":"q"},"dest"#)).list_valid());
        assert!(
            !app(&VALID.replace(
                r#""namespace":"n"}},
        "status""#,
                r#""namespace":"m"}},
        "status""#
            ))
            .list_valid()
        );
        assert!(
            !app(&VALID.replace(r#""status":"Synced","comparedTo""#, r#""status":"Unknown","comparedTo""#))
                .list_valid()
        );
        assert!(
            !app(&VALID.replace(r#""status":{"rec"#, r#""status":{"conditions":[{"type":"ComparisonError"}],"rec"#))
                .list_valid()
        );
        assert!(
            app(&VALID
                .replace(r#""status":{"rec"#, r#""status":{"conditions":[{"type":"SharedResourceWarning"}],"rec"#))
            .list_valid()
        );
        assert!(
            !app(&VALID
                .replace(r#""name":"a""#, r#""name":"a","annotations":{"argocd.argoproj.io/skip-reconcile":"T"}"#))
            .list_valid()
        );
    }

    #[test]
    fn sync_of_another_commit_is_noticed() {
        let of = |synced: &str| {
            let listed = "a".repeat(40);
            app(&format!(
                r#"{{"operation":{{"sync":{{"revision":"{synced}"}}}},"status":{{"sync":{{"revision":"{listed}"}}}}}}"#
            ))
            .syncs_other_revision()
        };
        assert!(of(&"b".repeat(40)));
        assert!(!of(&"a".repeat(40)));
        assert!(!of("main"));
        assert!(!of("1.2.3"), "a tag may be of that very commit");
        assert!(!of(""));
    }

    #[test]
    fn sync_of_another_version_or_digest_is_noticed() {
        let of = |synced: &str, listed: &str| {
            app(&format!(
                r#"{{"operation":{{"sync":{{"revisions":["x","{synced}"]}}}},
                    "status":{{"sync":{{"revisions":["x","{listed}"]}}}}}}"#
            ))
            .syncs_other_revision()
        };
        assert!(of("1.2.4", "1.2.3"));
        assert!(of("1.2.4-rc.1", "1.2.4"));
        assert!(!of("v1.2.3", "1.2.3"), "Helm takes them for the same");
        for range in
            ["1.2", "1.2.x", "^1.2.3", ">=1.2.4", "~1.2.4", "1.2.4 - 2.0.0", "*", "1.2.4 || 2.0.0", "1.2.4-", ""]
        {
            assert!(!of(range, "1.2.3"), "{range}");
        }
        let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
        assert!(of(&digest("a"), &digest("b")));
        assert!(!of(&digest("a"), &digest("a")));
        assert!(!of(&digest("a"), "1.2.3"));
        assert!(!of("sha256:abc", &digest("b")));
    }

    #[test]
    fn operation_null_is_no_operation() {
        assert!(app(r#"{"operation":null}"#).running_sync().is_none());
        assert!(app(r#"{"operation":{"sync":{"prune":true}}}"#).running_sync().unwrap().prune);
        assert!(app(r#"{"status":{"operationState":{"phase":"Running"}}}"#).running_sync().is_some());
        assert!(app(r#"{"status":{"operationState":{"phase":"Succeeded"}}}"#).running_sync().is_none());
    }
}
