//! Degradations of the guard: claims that are not followed, watches that fail, reads that are not answered, a certificate that ends soon.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::{
    freshness::{self, Freshness},
    watch::Watch,
};
use crate::telemetry::{Metrics, metrics::Lookup};

/// A watch that was cut off is taken up again within seconds. One that has failed for this long is worth an Event, also
/// where claims do not hang on it.
pub const STALE_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// A certificate is renewed weeks or days before its end. With this much left nobody has, and a weekend is survived.
pub const CERTIFICATE_ENDS_WITHIN: SignedDuration = SignedDuration::from_hours(72);
/// Fewer failed reads than this say nothing.
const FEW_READS: u64 = 5;

/// Which watches fail, since when and why, and since when nothing is heard of claims. A watch that has never listed
/// anything is not among them: then the guard is not ready.
#[derive(Debug)]
pub struct Health {
    failing: Mutex<BTreeMap<Watch, (Timestamp, String)>>,
    pub(super) freshness: Freshness,
}

impl Default for Health {
    fn default() -> Self {
        Self::new(freshness::STALE_AFTER)
    }
}

impl Health {
    /// Claims are stale after so long without a sign of the API server.
    pub fn new(stale_after: Duration) -> Self {
        Self { failing: Mutex::default(), freshness: Freshness::new(stale_after) }
    }

    /// Why claims may be out of date, if they may. Until something has been listed they are not: the guard is not ready
    /// then.
    pub fn stale_claims(&self) -> Option<String> {
        self.freshness.stale()
    }

    /// Takes note that a watch fails.
    pub fn fails(&self, watch: Watch, reason: String, now: Timestamp) {
        let mut failing = self.failing.lock();
        let since = failing.get(&watch).map_or(now, |(since, _)| *since);
        failing.insert(watch, (since, reason));
    }

    /// Takes note that a watch has delivered something.
    pub fn delivers(&self, watch: Watch) {
        self.failing.lock().remove(&watch);
    }

    /// Why Applications are not followed at this moment; `None` if they are.
    pub fn applications_trouble(&self) -> Option<String> {
        self.failing.lock().get(&Watch::Applications).map(|(_, reason)| reason.clone())
    }

    /// What has not been followed for so long that somebody should know; `None` if nothing.
    pub fn stale(&self, now: Timestamp) -> Option<String> {
        self.stale_claims().or_else(|| self.lasting(now))
    }

    fn lasting(&self, now: Timestamp) -> Option<String> {
        let failing = self.failing.lock();
        let lasting = failing.iter().filter(|(_, (since, _))| now.duration_since(*since) >= STALE_AFTER);
        let said: Vec<String> = lasting
            .map(|(watch, (since, reason))| {
                format!("{} cannot be followed since {}: {reason}", watch.what(), since.strftime("%Y-%m-%dT%H:%M:%SZ"))
            })
            .collect();
        (!said.is_empty()).then(|| said.join("; "))
    }
}

/// How many reads of the live cluster were answered, and how many failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Answered, be it with no.
    pub answered: u64,
    /// Failed or too late. What the guard may not read is no failure: somebody decided so.
    pub failed: u64,
}

impl Reads {
    /// Since the process began.
    pub fn so_far(metrics: &Metrics) -> Self {
        let sum = |outcomes: &[Lookup]| outcomes.iter().map(|outcome| metrics.lookups(*outcome)).sum();
        Self {
            answered: sum(&[Lookup::Found, Lookup::NotFound, Lookup::Forbidden, Lookup::UnknownKind]),
            failed: sum(&[Lookup::Timeout, Lookup::Error]),
        }
    }

    /// Since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            answered: self.answered.saturating_sub(earlier.answered),
            failed: self.failed.saturating_sub(earlier.failed),
        }
    }

    fn are_failing(self) -> bool {
        self.failed >= FEW_READS && self.failed > self.answered
    }
}

/// A way in which protection is degraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degradation {
    /// One word.
    pub reason: &'static str,
    /// What it means and what to do, in a sentence or two.
    pub note: String,
}

/// Finds every degradation.
pub fn degradations(stale: Option<String>, not_after: Timestamp, reads: Reads, now: Timestamp) -> Vec<Degradation> {
    let mut found = Vec::new();
    if let Some(why) = stale {
        let note = format!(
            "{why}. What cascades is judged as if somebody else might claim it (onUnknown), anything else by what was known before; \
             see the log of cascade-guard"
        );
        found.push(Degradation { reason: "ClaimsStale", note });
    }
    if now.duration_until(not_after) < CERTIFICATE_ENDS_WITHIN {
        let ends = not_after.strftime("%Y-%m-%dT%H:%M:%SZ");
        let note = format!(
            "The serving certificate ends at {ends}; from then on every delete that fails closed is refused. Renew it: \
             kubectl -n cascade-guard describe certificate, or make certs"
        );
        found.push(Degradation { reason: "CertificateEnding", note });
    }
    if reads.are_failing() {
        let note = "Most reads of the cluster fail or take too long, so objects count as shared that may not be, and \
                    deletes are refused that might pass; see the log of cascade-guard and the load of the API server";
        found.push(Degradation { reason: "ReadsFailing", note: note.to_owned() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2026-11-29T{time}Z").parse().unwrap()
    }

    #[test]
    fn watch_that_fails_for_long_makes_claims_stale_until_it_delivers() {
        let health = Health::default();
        health.fails(Watch::Applications, "refused".to_owned(), at("12:00:00"));
        health.fails(Watch::Applications, "still refused".to_owned(), at("12:04:00"));
        assert_eq!(health.stale(at("12:04:59")), None);
        let said = health.stale(at("12:05:00")).unwrap();
        assert_eq!(said, "Applications cannot be followed since 2026-11-29T12:00:00Z: still refused");
        health.delivers(Watch::Applications);
        assert_eq!(health.stale(at("13:00:00")), None);
    }

    #[test]
    fn only_what_is_wrong_is_a_degradation() {
        let good = Reads { answered: 100, failed: 20 };
        let far: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        assert!(degradations(None, far, good, at("12:00:00")).is_empty());
        let bad = degradations(Some("x".to_owned()), at("23:00:00"), Reads { answered: 5, failed: 6 }, at("12:00:00"));
        let reasons: Vec<_> = bad.iter().map(|degradation| degradation.reason).collect();
        assert_eq!(reasons, ["ClaimsStale", "CertificateEnding", "ReadsFailing"]);
        assert!(
            degradations(None, far, Reads { answered: 0, failed: 4 }, at("12:00:00")).is_empty(),
            "too few to tell"
        );
    }
}
