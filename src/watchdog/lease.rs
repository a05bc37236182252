//! Which replica acts: the one that holds the Lease.
//!
//! No crate was found that fits: `kube-lease-manager` (the only one for this version of kube) goes on saying that it leads
//! while the API server is away, however long, and takes over without naming the version it saw; `kube-leader-election` is for
//! an older kube. What is needed is small: a replica may act until the time of its last renewal plus the duration, counted from
//! before the renewal was sent; another takes over only after it has seen the same renewal for that long. So no clock is
//! compared with another, and the holder stops before anybody else can begin.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::in_words;

/// The holder stops this long before somebody else may begin.
const MARGIN: Duration = Duration::from_secs(2);

/// Until when this replica may act.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<Mutex<Option<Instant>>>);

impl Held {
    /// Until when, if at all.
    pub fn until(&self) -> Option<Instant> {
        self.0.lock().filter(|until| Instant::now() < *until)
    }
}

/// The Lease and who wants it.
pub struct Election {
    api: Api<Lease>,
    name: String,
    identity: String,
    duration: Duration,
    held: Held,
    /// The renewal of somebody else that was seen last, and since when.
    seen: Option<(String, Instant)>,
}

impl Election {
    /// A candidate with an identity that no other process has.
    pub fn new(client: Client, namespace: &str, name: &str, duration: Duration) -> Self {
        use std::hash::{BuildHasher, RandomState};
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "watchdog".to_owned());
        let identity = format!("{host}_{:016x}", RandomState::new().hash_one(std::process::id()));
        let api = Api::namespaced(client, namespace);
        Self { api, name: name.to_owned(), identity, duration, held: Held::default(), seen: None }
    }

    /// Until when this replica may act, as it is at any moment.
    pub fn held(&self) -> Held {
        self.held.clone()
    }

    /// Tries for ever to get the Lease and to keep it.
    ///
    /// # Errors
    /// Never; it has the type of a background task.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut trouble = String::new();
        loop {
            let before = self.held.until().is_some();
            match timeout(self.duration, self.attempt()).await {
                Ok(Ok(())) => trouble.clear(),
                Ok(Err(error)) => {
                    let why = in_words(&error);
                    if why != trouble {
                        tracing::warn!(why, "the Lease cannot be read or written");
                    }
                    trouble = why;
                }
                Err(_) => tracing::warn!("the API server does not answer about the Lease"),
            }
            let now = self.held.until().is_some();
            if before != now {
                tracing::info!(identity = self.identity, leading = now, "the Lease changed hands");
            }
            sleep(self.duration / 4).await;
        }
    }

    /// Gives the Lease back, so that another replica need not wait.
    pub async fn release(api: &Api<Lease>, name: &str, identity: &str) {
        let Ok(Some(mut lease)) = api.get_opt(name).await else { return };
        let Some(spec) = lease.spec.as_mut().filter(|spec| spec.holder_identity.as_deref() == Some(identity)) else {
            return;
        };
        spec.holder_identity = None;
        spec.renew_time = None;
        // It runs out by itself as well.
        let _ = api.replace(name, &PostParams::default(), &lease).await;
    }

    /// What [`Self::release`] needs.
    pub fn handle(&self) -> (Api<Lease>, String, String) {
        (self.api.clone(), self.name.clone(), self.identity.clone())
    }

    async fn attempt(&mut self) -> Result<(), kube::Error> {
        let begun = Instant::now();
        let written = match self.api.get_opt(&self.name).await? {
            None => {
                let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(self.spec(None)) };
                self.api.create(&PostParams::default(), &lease).await
            }
            Some(mut lease) => {
                let spec = lease.spec.take().unwrap_or_default();
                let holder = spec.holder_identity.as_deref().unwrap_or_default();
                if holder != self.identity && !holder.is_empty() && !self.has_run_out(&spec, begun) {
                    *self.held.0.lock() = None;
                    return Ok(());
                }
                lease.spec = Some(self.spec(Some(&spec)));
                // It carries the version that was read, so of two that take over one fails.
                self.api.replace(&self.name, &PostParams::default(), &lease).await
            }
        };
        match written {
            Ok(_) => {
                *self.held.0.lock() = Some(begun + self.duration.saturating_sub(MARGIN));
                self.seen = None;
                Ok(())
            }
            // Somebody else was quicker; if it was this one, it may act until its time is over.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether the same renewal has been seen for as long as it is good for.
    fn has_run_out(&mut self, spec: &LeaseSpec, now: Instant) -> bool {
        let renewal = format!("{:?} {:?} {:?}", spec.holder_identity, spec.renew_time, spec.lease_transitions);
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default();
        let good_for = Duration::from_secs(seconds).max(self.duration);
        match &self.seen {
            Some((seen, since)) if *seen == renewal => now.duration_since(*since) > good_for,
            _ => {
                self.seen = Some((renewal, now));
                false
            }
        }
    }

    fn spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let same = before.is_some_and(|before| before.holder_identity.as_deref() == Some(self.identity.as_str()));
        let transitions = before.and_then(|before| before.lease_transitions).unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.duration.as_secs()).ok(),
            acquire_time: before
                .filter(|_| same)
                .and_then(|before| before.acquire_time.clone())
                .or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if same { transitions } else { transitions + 1 }),
            ..LeaseSpec::default()
        }
    }
}
