//! The metrics of the rollout watchdog.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use cascade_guard_core::watchdog::Phase;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: &'static str,
}

/// What the watchdog counts.
#[derive(Clone, Debug)]
pub struct WatchdogMetrics {
    watches: Family<PhaseLabel, Gauge>,
    verdicts: Family<PhaseLabel, Counter>,
    reverts: Counter,
    circuit_open: Gauge,
    leading: Gauge,
    last_cycle: Gauge<f64, AtomicU64>,
    fetch_failures: Counter,
    unreachable: Gauge,
    configuration: Gauge,
}

impl WatchdogMetrics {
    /// All of them at zero, in a registry.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            watches: Family::default(),
            verdicts: Family::default(),
            reverts: Counter::default(),
            circuit_open: Gauge::default(),
            leading: Gauge::default(),
            last_cycle: Gauge::default(),
            fetch_failures: Counter::default(),
            unreachable: Gauge::default(),
            configuration: Gauge::default(),
        };
        registry.register("watches", "Watches that are kept, by phase", metrics.watches.clone());
        registry.register("verdicts", "Watches that came to a verdict, by phase", metrics.verdicts.clone());
        registry.register("reverts", "Reverts that were pushed", metrics.reverts.clone());
        registry.register(
            "circuit_open",
            "Applications whose circuit is open; all count as one",
            metrics.circuit_open.clone(),
        );
        registry.register("leading", "Whether this replica holds the lease", metrics.leading.clone());
        registry.register_with_unit(
            "last_cycle_timestamp",
            "When the last cycle that judged ended",
            Unit::Seconds,
            metrics.last_cycle.clone(),
        );
        registry.register("fetch_failures", "Fetches of a repository that failed", metrics.fetch_failures.clone());
        registry.register(
            "unreachable_repositories",
            "Repositories that cannot be reached at present",
            metrics.unreachable.clone(),
        );
        registry.register(
            "configuration_digest",
            "The beginning of the digest of the configuration in force, as a number: equal where the configuration is",
            metrics.configuration.clone(),
        );
        // What does not exist until something goes wrong cannot be alerted on.
        for phase in Phase::ALL {
            let label = PhaseLabel { phase: phase.as_str() };
            let _ = metrics.watches.get_or_create(&label);
            let _ = metrics.verdicts.get_or_create(&label);
        }
        metrics
    }

    /// How many watches are in each phase.
    pub fn observe_watches(&self, phases: impl Iterator<Item = Phase>) {
        let mut counts = Phase::ALL.map(|phase| (phase, 0));
        for phase in phases {
            if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == phase) {
                *count += 1;
            }
        }
        for (phase, count) in counts {
            self.watches.get_or_create(&PhaseLabel { phase: phase.as_str() }).set(count);
        }
    }

    /// A watch came to a verdict.
    pub fn count_verdict(&self, phase: Phase) {
        self.verdicts.get_or_create(&PhaseLabel { phase: phase.as_str() }).inc();
        if phase == Phase::Reverted {
            self.reverts.inc();
        }
    }

    /// A cycle has ended.
    pub fn observe_cycle(&self, now: jiff::Timestamp, leading: bool, open: usize, unreachable: usize, failures: u64) {
        self.leading.set(i64::from(leading));
        if leading {
            self.last_cycle.set(now.as_duration().as_secs_f64());
        }
        self.circuit_open.set(i64::try_from(open).unwrap_or(i64::MAX));
        self.unreachable.set(i64::try_from(unreachable).unwrap_or(i64::MAX));
        self.fetch_failures.inc_by(failures);
    }

    /// A configuration with this digest is in force.
    pub fn configured(&self, digest: &str) {
        let start = digest.get(..12).unwrap_or_default();
        self.configuration.set(i64::from_str_radix(start, 16).unwrap_or_default());
    }
}
