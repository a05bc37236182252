//! The objects that keep what the watchdog knows: `RolloutWatch`, one for each watched commit and Application, and
//! `WatchedRepository`, one for each repository. They are the only state that outlives the process.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::StatusCondition;

/// Namespace and name of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRef {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl AppRef {
    /// From its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// `NAME`, then in `namespace`, or `NAMESPACE/NAME`.
    ///
    /// # Errors
    /// When one of the two cannot be the name of an object.
    pub fn parse(text: &str, namespace: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
        let is_name = |text: &str| {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            text.len() <= 200
                && text.split('.').all(|part| part.starts_with(plain) && part.ends_with(plain))
                && text.chars().all(|c| plain(c) || matches!(c, '-' | '.'))
        };
        if is_name(namespace) && !namespace.contains('.') && is_name(name) {
            return Ok(Self::new(namespace, name));
        }
        Err(format!("`{text}` is no name of an Application; write NAME or NAMESPACE/NAME"))
    }
}

impl fmt::Display for AppRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Whether a commit may be reverted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Judge only.
    #[default]
    Shadow,
    /// Judge, and revert where every condition is met.
    Arm,
}

impl Mode {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Arm => "arm",
        }
    }

    /// Reads `shadow` or `arm`.
    ///
    /// # Errors
    /// For any other word.
    pub fn parse(text: &str) -> Result<Self, String> {
        let modes = [Self::Shadow, Self::Arm];
        let found = modes.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is no mode; use shadow or arm"))
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

/// What has to be well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Expect {
    /// The Application.
    #[default]
    Healthy,
    /// The Application and every child Application below it.
    #[serde(rename = "Healthy,children")]
    Children,
}

impl Expect {
    /// Reads `Healthy` or `Healthy,children`.
    ///
    /// # Errors
    /// For any other text.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "Healthy" => Ok(Self::Healthy),
            "Healthy,children" => Ok(Self::Children),
            _ => Err(format!("`{text}` cannot be expected; use Healthy or Healthy,children")),
        }
    }
}

/// Where a watch stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    /// Not deployed yet.
    #[default]
    Waiting,
    /// Deployed, not well yet.
    Reached,
    /// Deployed and well, not for long enough yet.
    Stabilizing,
    /// Well for long enough.
    Confirmed,
    /// The deadline passed before it was deployed.
    NotReached,
    /// It failed, and some condition for a revert is not met.
    WouldRevert,
    /// It failed and was reverted.
    Reverted,
    /// It failed, and the revert could not be made or pushed.
    RevertFailed,
    /// Somebody or something else settled it.
    Superseded,
    /// The Application cannot be watched this way.
    Unwatchable,
    /// The trailer cannot be acted on.
    Malformed,
    /// The Application does not exist.
    UnknownApplication,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Waiting,
        Self::Reached,
        Self::Stabilizing,
        Self::Confirmed,
        Self::NotReached,
        Self::WouldRevert,
        Self::Reverted,
        Self::RevertFailed,
        Self::Superseded,
        Self::Unwatchable,
        Self::Malformed,
        Self::UnknownApplication,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Reached => "Reached",
            Self::Stabilizing => "Stabilizing",
            Self::Confirmed => "Confirmed",
            Self::NotReached => "NotReached",
            Self::WouldRevert => "WouldRevert",
            Self::Reverted => "Reverted",
            Self::RevertFailed => "RevertFailed",
            Self::Superseded => "Superseded",
            Self::Unwatchable => "Unwatchable",
            Self::Malformed => "Malformed",
            Self::UnknownApplication => "UnknownApplication",
        }
    }

    /// Whether it is a verdict: no other phase follows.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Reached | Self::Stabilizing)
    }
}

/// A commit that asked to be watched, and an Application.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cascade-guard.io",
    version = "v1alpha1",
    kind = "RolloutWatch",
    plural = "rolloutwatches",
    shortname = "rw",
    namespaced,
    status = "RolloutWatchStatus",
    derive = "PartialEq",
    crates(kube_core = "::kube_core"),
    printcolumn = r#"{"name":"App","type":"string","jsonPath":".spec.application.name"}"#,
    printcolumn = r#"{"name":"Commit","type":"string","jsonPath":".spec.commit"}"#,
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".spec.mode"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutWatchSpec {
    /// URL of the repository, without credentials.
    pub repository: String,
    /// Branch on which the commit was seen.
    pub branch: String,
    /// The commit: its full object id.
    pub commit: String,
    /// The Application.
    pub application: AppRef,
    /// Whether it may be reverted.
    pub mode: Mode,
    /// What has to be well.
    pub expect: Expect,
    /// Seconds to reach the cluster, and again to become well.
    pub deadline: u32,
    /// Seconds that it must stay well.
    pub stable: u32,
    /// When the commit was first seen on the branch.
    #[schemars(with = "Option<String>")]
    pub seen: Option<Timestamp>,
    /// What is wrong with the trailer; empty where nothing is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutWatchStatus {
    /// Where it stands.
    pub phase: Phase,
    /// One sentence about it.
    pub message: String,
    /// When the phase began.
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// UID of the Application that was seen first.
    pub application_uid: String,
    /// When it was last judged.
    #[schemars(with = "Option<String>")]
    pub looked: Option<Timestamp>,
    /// Milliseconds of the present deadline in which nothing could be judged.
    pub unjudged: i64,
    /// When the commit was first found deployed.
    #[schemars(with = "Option<String>")]
    pub reached: Option<Timestamp>,
    /// The newest entry of the history when it was found deployed.
    pub deployment: String,
    /// Since when it is well without a break.
    pub green: Option<Green>,
    /// Since when the Application is not there.
    #[schemars(with = "Option<String>")]
    pub gone: Option<Timestamp>,
    /// What was seen before the commit was deployed.
    pub before: Option<Before>,
    /// The conditions that are not met, by name.
    pub unmet: Vec<String>,
    /// Each condition for a revert.
    pub conditions: Vec<StatusCondition>,
    /// The revert.
    pub revert: Option<Revert>,
    /// When the watch was over, the look after a revert included.
    #[schemars(with = "Option<String>")]
    pub ended: Option<Timestamp>,
}

/// A time in which everything is well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Green {
    /// When that was first seen.
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// The newest change of health then: a later one is a break that nobody saw.
    #[schemars(with = "Option<String>")]
    pub transition: Option<Timestamp>,
}

/// What was seen of the Application, and of each child, before the commit was deployed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Before {
    /// The Application.
    pub application: State,
    /// Its children, by `namespace/name`.
    pub children: BTreeMap<String, State>,
}

/// One Application before the commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// Its health; empty where it was not seen.
    pub health: String,
    /// Its sync status in the last comparison; empty where it was not seen.
    pub sync: String,
    /// What was deployed, one revision for each source.
    pub deployed: Vec<String>,
    /// Digest of its sources.
    pub sources: String,
}

/// A revert by the watchdog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Revert {
    /// The commit that reverts. It is written before the push.
    pub commit: String,
    /// Where it is pushed to.
    pub branch: String,
    /// When it was intended.
    #[schemars(with = "Option<String>")]
    pub intended: Option<Timestamp>,
    /// How often a push was tried.
    pub attempts: u32,
    /// When it was found in the repository.
    #[schemars(with = "Option<String>")]
    pub pushed: Option<Timestamp>,
    /// Why the last push did not do; empty where it did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// What came of it.
    pub outcome: RevertOutcome,
}

/// What came of a revert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum RevertOutcome {
    /// Not known yet.
    #[default]
    Pending,
    /// It was deployed, and the Application is well.
    Healed,
    /// It was deployed, and the Application is not well.
    NotHealed,
    /// It was not seen to be deployed in time.
    NotSeen,
}

/// A repository whose commits are watched. A person closes its circuit in the spec; the rest is the watchdog's.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cascade-guard.io",
    version = "v1alpha1",
    kind = "WatchedRepository",
    plural = "watchedrepositories",
    shortname = "wrepo",
    namespaced,
    status = "WatchedRepositoryStatus",
    derive = "PartialEq",
    crates(kube_core = "::kube_core"),
    printcolumn = r#"{"name":"URL","type":"string","jsonPath":".spec.url"}"#,
    printcolumn = r#"{"name":"Reachable","type":"string","jsonPath":".status.conditions[?(@.type=='Reachable')].status"}"#,
    printcolumn = r#"{"name":"Open","type":"string","jsonPath":".status.open[*].application"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct WatchedRepositorySpec {
    /// URL, without credentials.
    pub url: String,
    /// Each time that somebody closed the circuit.
    pub closed: Vec<Closing>,
}

/// Somebody closed the circuit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Closing {
    /// `namespace/name` of the Application, or `*` for all.
    pub application: String,
    /// When.
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
}

/// What is known of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WatchedRepositoryStatus {
    /// The commit up to which each branch was read.
    pub cursors: BTreeMap<String, String>,
    /// Where the circuit is open.
    pub open: Vec<Opening>,
    /// Digest of the configuration that is in force.
    pub configuration: String,
    /// Version of the program that is running.
    pub build: String,
    /// Condition `Reachable`.
    pub conditions: Vec<StatusCondition>,
}

/// The circuit is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Opening {
    /// `namespace/name` of the Application, or `*` for all.
    pub application: String,
    /// Since when.
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// Why.
    pub reason: String,
}

/// The name of the object for a commit and an Application. `namespace` is the one whose Applications are named alone.
pub fn watch_name(app: &AppRef, commit: &str, namespace: &str) -> String {
    let short = commit.get(..10).unwrap_or(commit);
    // No namespace has a dot in its name, so a name with a dot begins with a namespace.
    if app.namespace == namespace && !app.name.contains('.') {
        format!("{}-{short}", app.name)
    } else {
        format!("{}.{}-{short}", app.namespace, app.name)
    }
}

/// The name of the object for a trailer without a usable Application; `at` is its place among those of the commit.
pub fn malformed_name(commit: &str, at: usize) -> String {
    format!("malformed-{at}-{}", commit.get(..10).unwrap_or(commit))
}

/// The name of the object for a repository: readable, and different for different places.
pub fn repository_name(url: &str) -> String {
    use std::hash::Hasher;
    let place = super::repository::place(url).unwrap_or_else(|| url.to_owned());
    let mut hasher = siphasher::sip::SipHasher13::new();
    hasher.write(place.as_bytes());
    let readable: String =
        place.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let start = readable.len().saturating_sub(60);
    format!("{}-{:08x}", readable[start..].trim_matches('-'), hasher.finish() & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_different_applications_differ() {
        let commit = "a".repeat(40);
        let of = |namespace: &str, name: &str| watch_name(&AppRef::new(namespace, name), &commit, "argocd");
        assert_eq!(of("argocd", "web"), "web-aaaaaaaaaa");
        assert_eq!(of("team", "web"), "team.web-aaaaaaaaaa");
        assert_ne!(of("argocd", "team.web"), of("team", "web"));
    }

    #[test]
    fn phase_is_written_as_it_is_read() {
        for phase in Phase::ALL {
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
        }
    }
}
