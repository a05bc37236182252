//! The metrics, in OpenMetrics form. No object and no user is ever named in a label: every label has a bounded set of
//! values, listed in [`label_values`].

use std::{sync::atomic::AtomicU64, time::Duration};

use jiff::{SignedDuration, Timestamp};
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

use super::watchdog::WatchdogMetrics;
use cascade_guard_core::{
    admission::Operation,
    catalog,
    decision::{self, Decision},
    inventory::Inventory,
    policy::Mode,
    watchdog::Phase,
};

/// Media type of the text that [`Metrics::encode`] gives.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Stands for a label that does not apply.
const NONE: &str = "none";
/// The decision on a request that could not be judged.
const ERROR: &str = "error";

/// How a read of the live cluster ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The object is there.
    Found,
    /// It does not exist.
    NotFound,
    /// The guard may not read it.
    Forbidden,
    /// The cluster has no such kind.
    UnknownKind,
    /// There was no answer in time.
    Timeout,
    /// Anything else.
    Error,
}

impl Lookup {
    const ALL: [Self; 6] =
        [Self::Found, Self::NotFound, Self::Forbidden, Self::UnknownKind, Self::Timeout, Self::Error];

    fn as_str(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::NotFound => "not-found",
            Self::Forbidden => "forbidden",
            Self::UnknownKind => "unknown-kind",
            Self::Timeout => "timeout",
            Self::Error => ERROR,
        }
    }
}

/// Why a body was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is larger than any review.
    TooLarge,
    /// There were too many large ones at a time; it was asked to come again.
    NoRoom,
    /// It did not arrive in time.
    TooSlow,
    /// Its connection broke.
    Broken,
}

impl Refused {
    const ALL: [Self; 4] = [Self::TooLarge, Self::NoRoom, Self::TooSlow, Self::Broken];

    fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
            Self::NoRoom => "no-room",
            Self::TooSlow => "too-slow",
            Self::Broken => "broken",
        }
    }
}

/// In what way the configuration in the cluster protects less than the one that ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It is not there, or is being deleted.
    Missing,
    /// It could not be read.
    Unread,
    /// An entry is not there, or is asked about less.
    Rules,
    /// An entry lets pass what it should hold up when the guard does not answer.
    FailsOpen,
    /// A selector or a condition keeps from an entry what it should be asked about.
    Narrower,
    /// An entry asks somebody else.
    Elsewhere,
    /// An entry does not trust the certificate that the guard serves.
    Authority,
}

impl Fault {
    /// Every one of them.
    pub const ALL: [Self; 7] =
        [Self::Missing, Self::Unread, Self::Rules, Self::FailsOpen, Self::Narrower, Self::Elsewhere, Self::Authority];

    /// As it stands in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unread => "unread",
            Self::Rules => "rules",
            Self::FailsOpen => "fails-open",
            Self::Narrower => "narrower",
            Self::Elsewhere => "elsewhere",
            Self::Authority => "authority",
        }
    }
}

/// Kinds whose deletion is always watched; those that a flag names come on top.
const TERMINATING_KINDS: [&str; 3] = ["Namespace", "Application", "ApplicationSet"];

/// Every value a label may have; `None` for a label that is not known.
pub fn label_values(label: &str) -> Option<Vec<&'static str>> {
    let operations = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
    let modes = [Mode::Off, Mode::Audit, Mode::Warn, Mode::Enforce];
    Some(match label {
        "operation" => operations.iter().map(|operation| operation.as_str()).chain([NONE]).collect(),
        "rule" => catalog::ALL.iter().map(|rule| rule.id).chain([NONE]).collect(),
        "decision" => decision::WORDS.into_iter().chain([ERROR]).collect(),
        "mode" => modes.iter().map(|mode| mode.as_str()).chain([NONE]).collect(),
        "dry_run" => vec!["false", "true"],
        "outcome" => Lookup::ALL.iter().map(|outcome| outcome.as_str()).collect(),
        "cause" => Refused::ALL.iter().map(|refused| refused.as_str()).collect(),
        "kind" => TERMINATING_KINDS.to_vec(),
        "result" => vec!["accepted", "rejected"],
        "fault" => Fault::ALL.iter().map(|fault| fault.as_str()).collect(),
        "version" => vec![env!("CARGO_PKG_VERSION")],
        "phase" => Phase::ALL.iter().map(|phase| phase.as_str()).collect(),
        _ => return None,
    })
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: &'static str,
    rule: &'static str,
    decision: &'static str,
    mode: &'static str,
    dry_run: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabel {
    fault: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

/// A gauge of seconds.
type Seconds = Gauge<f64, AtomicU64>;

/// Every metric there is.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    duration: Histogram,
    applications: Gauge,
    claims: Gauge,
    last_event: Seconds,
    ready: Gauge,
    lookups: Family<OutcomeLabel, Counter>,
    refused: Family<CauseLabel, Counter>,
    terminating: Family<KindLabel, Gauge>,
    oldest: Family<KindLabel, Seconds>,
    policy_reloads: Family<ResultLabel, Counter>,
    certificate_not_after: Seconds,
    configuration_faults: Family<FaultLabel, Gauge>,
    stale: Gauge,
    largest_burst: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics at zero.
    pub fn new() -> Self {
        // From a tenth of a millisecond, which most answers take, to the 30 seconds that the API server waits at most.
        let buckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
        let mut metrics = Self {
            registry: Registry::with_prefix("cascade_guard"),
            requests: Family::default(),
            duration: Histogram::new(buckets),
            applications: Gauge::default(),
            claims: Gauge::default(),
            last_event: Seconds::default(),
            ready: Gauge::default(),
            lookups: Family::default(),
            refused: Family::default(),
            terminating: Family::default(),
            oldest: Family::default(),
            policy_reloads: Family::default(),
            certificate_not_after: Seconds::default(),
            configuration_faults: Family::default(),
            stale: Gauge::default(),
            largest_burst: Gauge::default(),
        };
        metrics.register();
        // A counter that does not exist until something goes wrong cannot be alerted on.
        for outcome in Lookup::ALL {
            let _ = metrics.lookups.get_or_create(&OutcomeLabel { outcome: outcome.as_str() });
        }
        for refused in Refused::ALL {
            let _ = metrics.refused.get_or_create(&CauseLabel { cause: refused.as_str() });
        }
        metrics.set_configuration_faults(&[]);
        for result in ["accepted", "rejected"] {
            let _ = metrics.policy_reloads.get_or_create(&ResultLabel { result });
        }
        metrics
    }

    /// Adds the metrics of the rollout watchdog, which the guard does not have.
    pub fn add_watchdog(&mut self) -> WatchdogMetrics {
        WatchdogMetrics::new(self.registry.sub_registry_with_prefix("watchdog"))
    }

    /// prometheus-client adds `_total`, `_info` and the unit to the names by itself.
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "admission_requests",
            "Admission requests, once for every rule that had something to say and once with rule none where no rule had",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "admission_duration",
            "Time from the arrival of an admission request to its answer, reads of the cluster included",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register(
            "claim_index_applications",
            "Applications whose claims are indexed",
            self.applications.clone(),
        );
        registry.register("claim_index_claims", "Objects that Applications list", self.claims.clone());
        registry.register_with_unit(
            "claim_index_last_event_timestamp",
            "When a watch last delivered something",
            Unit::Seconds,
            self.last_event.clone(),
        );
        registry.register(
            "claim_index_ready",
            "Whether everything has been listed and is still followed, so that deletes can be judged",
            self.ready.clone(),
        );
        registry.register("live_lookups", "Reads of the live cluster for a decision", self.lookups.clone());
        registry.register(
            "refused_bodies",
            "Bodies that were not taken in, so that nothing was judged",
            self.refused.clone(),
        );
        registry.register(
            "terminating_objects",
            "Objects that have been terminating for longer than --terminating-after",
            self.terminating.clone(),
        );
        registry.register_with_unit(
            "terminating_objects_oldest_age",
            "For how long the oldest of the objects that are being deleted has been so",
            Unit::Seconds,
            self.oldest.clone(),
        );
        registry.register(
            "applicationset_deletes_last_minute",
            "Applications of one ApplicationSet whose deletion began within the last minute; of the set that loses most",
            self.largest_burst.clone(),
        );
        registry.register(
            "policy_reload",
            "Changes of the policy that were taken over, and that were refused",
            self.policy_reloads.clone(),
        );
        registry.register_with_unit(
            "certificate_not_after_timestamp",
            "When the serving certificate expires",
            Unit::Seconds,
            self.certificate_not_after.clone(),
        );
        registry.register(
            "webhook_configuration_faults",
            "In how many ways the webhook configuration in the cluster protects less than the one that ships",
            self.configuration_faults.clone(),
        );
        registry.register(
            "claim_index_stale",
            "Whether something that claims are known from could not be watched for five minutes",
            self.stale.clone(),
        );
        registry.register(
            "build",
            "The running version",
            Info::new(BuildLabels { version: env!("CARGO_PKG_VERSION") }),
        );
    }

    /// Counts one judged request.
    pub fn count_decision(&self, operation: Operation, dry_run: bool, decision: &Decision) {
        let mut counted: Vec<&str> = Vec::new();
        for rule in decision.said().map(|outcome| outcome.finding.rule.id) {
            if counted.contains(&rule) {
                continue;
            }
            counted.push(rule);
            let of_rule = decision.said().filter(|outcome| outcome.finding.rule.id == rule);
            if let Some(worst) = of_rule.max_by_key(|outcome| (outcome.effect, outcome.finding.severity)) {
                self.count(Some(operation), rule, worst.word(), worst.resolved.mode.as_str(), dry_run);
            }
        }
        if counted.is_empty() {
            self.count(Some(operation), NONE, "allow", NONE, dry_run);
        }
    }

    /// Counts one request that could not be judged.
    pub fn count_unjudged(&self, operation: Option<Operation>) {
        self.count(operation, NONE, ERROR, NONE, false);
    }

    fn count(
        &self,
        operation: Option<Operation>,
        rule: &'static str,
        decision: &'static str,
        mode: &'static str,
        dry_run: bool,
    ) {
        let operation = operation.map_or(NONE, Operation::as_str);
        let dry_run = if dry_run { "true" } else { "false" };
        self.requests.get_or_create(&RequestLabels { operation, rule, decision, mode, dry_run }).inc();
    }

    /// Records how long an answer took.
    pub fn observe_duration(&self, duration: Duration) {
        self.duration.observe(duration.as_secs_f64());
    }

    /// Counts one read of the live cluster.
    pub fn count_lookup(&self, outcome: Lookup) {
        self.lookups.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc();
    }

    /// How many reads of the live cluster have ended so.
    pub fn lookups(&self, outcome: Lookup) -> u64 {
        self.lookups.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).get()
    }

    /// Counts a body that was not taken in.
    pub fn count_refused(&self, refused: Refused) {
        self.refused.get_or_create(&CauseLabel { cause: refused.as_str() }).inc();
    }

    /// Counts a change of the policy.
    pub fn count_policy_reload(&self, accepted: bool) {
        let result = if accepted { "accepted" } else { "rejected" };
        self.policy_reloads.get_or_create(&ResultLabel { result }).inc();
    }

    /// Says when the serving certificate expires.
    pub fn set_certificate_not_after(&self, not_after: Timestamp) {
        self.certificate_not_after.set(not_after.as_duration().as_secs_f64());
    }

    /// Says what is wrong with the webhook configuration in the cluster, each fault as often as it was found.
    pub fn set_configuration_faults(&self, faults: &[Fault]) {
        for fault in Fault::ALL {
            let found = faults.iter().filter(|found| **found == fault).count();
            let gauge = self.configuration_faults.get_or_create(&FaultLabel { fault: fault.as_str() });
            gauge.set(i64::try_from(found).unwrap_or(i64::MAX));
        }
    }

    /// Says whether claims may no longer be true, because they cannot be followed.
    pub fn set_stale(&self, stale: bool) {
        self.stale.set(i64::from(stale));
    }

    /// Says that a watch delivered something.
    pub fn set_last_event(&self, at: Timestamp) {
        self.last_event.set(at.as_duration().as_secs_f64());
    }

    /// Takes over what the inventory says of itself, and whether it is `fresh`, that is still followed. What has been terminating for `stuck_after` is counted as such.
    pub fn observe_inventory(&self, inventory: &Inventory, fresh: bool, now: Timestamp, stuck_after: SignedDuration) {
        let mut applications = 0;
        let mut began: [Vec<Timestamp>; 3] = Default::default();
        for (_, app) in inventory.applications() {
            applications += 1;
            began[1].extend(app.terminating);
        }
        began[0].extend(inventory.namespaces().filter_map(|meta| meta.deletion_timestamp));
        began[2].extend(inventory.appsets().filter_map(|set| set.meta.deletion_timestamp));
        self.applications.set(applications);
        self.claims.set(i64::try_from(inventory.claims().len()).unwrap_or(i64::MAX));
        self.ready.set(i64::from(inventory.is_ready() && fresh));
        self.largest_burst.set(i64::try_from(inventory.largest_burst(now)).unwrap_or(i64::MAX));
        for (kind, began) in TERMINATING_KINDS.into_iter().zip(began) {
            self.observe_terminating(kind, &began, now, stuck_after);
        }
    }

    /// Takes over since when the objects of a kind have been terminating. The age of the oldest is told from its first
    /// second, so that an alert can have a threshold of its own.
    pub fn observe_terminating(&self, kind: &str, began: &[Timestamp], now: Timestamp, stuck_after: SignedDuration) {
        let age = |since: &Timestamp| now.duration_since(*since);
        let stuck = began.iter().filter(|since| age(since) >= stuck_after).count();
        let oldest = began.iter().map(age).max().map_or(0.0, |age| age.as_secs_f64().max(0.0));
        let label = KindLabel { kind: kind.to_owned() };
        self.terminating.get_or_create(&label).set(i64::try_from(stuck).unwrap_or(i64::MAX));
        self.oldest.get_or_create(&label).set(oldest);
    }

    /// All metrics as text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}
