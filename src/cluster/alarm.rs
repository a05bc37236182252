//! Says that protection has become less than it should be: once in the log, and as an Event on the GuardPolicy. From a
//! timer, never because of a review, and never on anybody's own objects.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use tokio::time::{Instant, sleep};

use super::{
    Health,
    client::in_words,
    health::{Degradation, Reads, degradations},
};
use crate::{
    state::{LivePolicy, Readiness, Requirement},
    telemetry::Metrics,
};
use cascade_guard_core::policy::{GuardPolicy, POLICY_NAME};

/// How often the guard looks at itself.
const EVERY: Duration = Duration::from_secs(30);
/// Reads are judged over this many looks.
const READ_LOOKS: u32 = 10;
/// The same thing is said again after this long, if it is still so.
const AGAIN: Duration = Duration::from_secs(3600);

/// Looks at the guard itself for ever.
pub struct Alarm {
    /// The connection.
    pub client: Client,
    /// Whose object Events are about.
    pub policy: Arc<LivePolicy>,
    /// Whether it is known yet which object there is.
    pub readiness: Arc<Readiness>,
    /// Whether watches go on.
    pub health: Arc<Health>,
    /// When the serving certificate ends.
    pub certificate_end: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Where reads are counted.
    pub metrics: Arc<Metrics>,
}

/// What was said and when.
#[derive(Debug, Default)]
struct Told {
    at: BTreeMap<&'static str, Instant>,
    active: Vec<&'static str>,
}

/// What is to be said about one look.
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
    /// Looks for ever.
    ///
    /// # Errors
    /// Never; it has the type of a background task.
    pub async fn run(self) -> anyhow::Result<()> {
        let recorder = Recorder::new(self.client.clone(), Reporter::from("cascade-guard"));
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
            let found = degradations(self.health.stale(now), (self.certificate_end)(), reads, now);
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
