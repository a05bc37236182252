//! Reports that protection is degraded: once in the log, and as an Event on the GuardPolicy. A timer starts it, never a
//! review, and it never writes to objects of other people.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use rustls::pki_types::CertificateDer;
use tokio::time::{Instant, sleep};

use super::{
    Health,
    client::in_words,
    configuration::{ConfigurationWatch, degradation},
    health::{Degradation, Reads, degradations},
};
use crate::{
    state::{LivePolicy, Readiness, Requirement},
    telemetry::Metrics,
};
use cascade_guard_core::policy::{GuardPolicy, POLICY_NAME};

/// The time from one check to the next.
const EVERY: Duration = Duration::from_secs(30);
/// Failed reads are counted over this many checks.
const READ_LOOKS: u32 = 10;
/// A degradation that lasts is reported again after this time.
const AGAIN: Duration = Duration::from_secs(3600);

/// Checks the guard itself for ever.
pub struct Alarm {
    /// The connection.
    pub client: Client,
    /// The policy in force: Events are about its object.
    pub policy: Arc<LivePolicy>,
    /// Whether that object is known yet.
    pub readiness: Arc<Readiness>,
    /// Which watches fail.
    pub health: Arc<Health>,
    /// When the serving certificate ends.
    pub certificate_end: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// The certificate itself, then those between it and its authority.
    pub certificate: Box<dyn Fn() -> Vec<CertificateDer<'static>> + Send + Sync>,
    /// The counts of reads.
    pub metrics: Arc<Metrics>,
}

/// What was reported and when.
#[derive(Debug, Default)]
struct Told {
    at: BTreeMap<&'static str, Instant>,
    active: Vec<&'static str>,
}

/// What is to be reported after one check.
#[derive(Debug, Default, PartialEq, Eq)]
struct ToTell {
    degraded: Vec<Degradation>,
    over: Vec<&'static str>,
}

impl Told {
    /// Of what is so now, what has not been said for long enough; and what was so and is over.
    fn sort(&mut self, now_so: Vec<Degradation>, now: Instant) -> ToTell {
        let reasons: Vec<&'static str> = now_so.iter().map(|degradation| degradation.reason).collect();
        let over = self.active.iter().copied().filter(|reason| !reasons.contains(reason)).collect();
        self.active = reasons;
        let due = |degradation: &Degradation| {
            self.at.get(degradation.reason).is_none_or(|at| now.duration_since(*at) >= AGAIN)
        };
        let degraded: Vec<Degradation> = now_so.into_iter().filter(due).collect();
        for degradation in &degraded {
            self.at.insert(degradation.reason, now);
        }
        ToTell { degraded, over }
    }
}

impl Alarm {
    /// Checks for ever.
    ///
    /// # Errors
    /// When the configuration that ships makes no sense, which a test rules out.
    pub async fn run(self) -> anyhow::Result<()> {
        let recorder = Recorder::new(self.client.clone(), Reporter::from("cascade-guard"));
        let configuration = ConfigurationWatch::new(self.client.clone())?;
        self.readiness.wait_for(Requirement::Policy).await;
        let mut told = Told::default();
        let (mut looks, mut earlier, mut reads) = (0, Reads::so_far(&self.metrics), Reads::default());
        loop {
            looks += 1;
            if looks % READ_LOOKS == 0 {
                let so_far = Reads::so_far(&self.metrics);
                reads = so_far.since(earlier);
                earlier = so_far;
            }
            let now = Timestamp::now();
            let faults = configuration.look(&(self.certificate)()).await;
            let stale = self.health.stale(now);
            self.metrics.set_configuration_faults(&faults.iter().map(|(fault, _)| *fault).collect::<Vec<_>>());
            self.metrics.set_stale(stale.is_some());
            let mut found = degradations(stale, (self.certificate_end)(), reads, now);
            found.extend(degradation(&faults));
            let ToTell { degraded, over } = told.sort(found, Instant::now());
            for reason in over {
                tracing::info!(reason, "protection is as it should be again in this respect");
            }
            for degradation in degraded {
                tracing::warn!(reason = degradation.reason, note = degradation.note, "protection has become less");
                self.publish(&recorder, degradation).await;
            }
            sleep(EVERY).await;
        }
    }

    /// An Event needs an object; without a GuardPolicy in the cluster the log has to do.
    async fn publish(&self, recorder: &Recorder, degradation: Degradation) {
        let Some(observed) = self.policy.observed().borrow().clone() else { return };
        let policy = ObjectReference {
            api_version: Some(GuardPolicy::api_version(&()).into_owned()),
            kind: Some(GuardPolicy::kind(&()).into_owned()),
            name: Some(POLICY_NAME.to_owned()),
            uid: Some(observed.uid),
            ..ObjectReference::default()
        };
        let event = Event {
            type_: EventType::Warning,
            reason: degradation.reason.to_owned(),
            note: Some(degradation.note),
            action: "Guarding".to_owned(),
            secondary: None,
        };
        if let Err(error) = recorder.publish(&event, &policy).await {
            tracing::warn!(reason = in_words(&error), "the Event on GuardPolicy default cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stale() -> Vec<Degradation> {
        vec![Degradation { reason: "ClaimsStale", note: "n".to_owned() }]
    }

    #[test]
    fn same_thing_is_said_once_an_hour_however_often_it_comes_and_goes() {
        let mut told = Told::default();
        let start = Instant::now();
        assert_eq!(told.sort(stale(), start).degraded.len(), 1);
        assert_eq!(told.sort(stale(), start + EVERY), ToTell::default());
        assert_eq!(told.sort(Vec::new(), start + 2 * EVERY).over, ["ClaimsStale"]);
        assert!(told.sort(stale(), start + 3 * EVERY).degraded.is_empty(), "it flaps");
        assert_eq!(told.sort(stale(), start + AGAIN).degraded.len(), 1);
    }
}
