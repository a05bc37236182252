//! Writes the status of the GuardPolicy, from a timer and when something changes, never because of a review.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::{NotUsed, Object},
    discovery::ApiResource,
};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use super::{Health, client::in_words};
use crate::state::{LiveInventory, LivePolicy, Readiness, Requirement};
use cascade_guard_core::policy::{
    Claims, GuardPolicy, Observed, POLICY_NAME,
    schema::{GuardPolicyStatus, Mode},
};

/// Under this name the fields of the status are ours.
pub const FIELD_MANAGER: &str = "cascade-guard";

/// The time from one check for news to the next.
const EVERY: Duration = Duration::from_secs(10);
/// The time after which the written status is read again. Two replicas that see different things (one has just started,
/// or has lost its watch) overwrite each other only this often.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// A replica that has just started lists everything first. It writes that only when listing takes longer than this,
/// because older replicas still run and know more.
const START: Duration = Duration::from_secs(120);

/// Writes the status of the GuardPolicy that is in force. Where a file stands instead of it, there is nothing to write.
pub struct StatusWriter {
    /// The connection.
    pub client: Client,
    /// What is known of the Argo CDs of the cluster.
    pub inventory: Arc<LiveInventory>,
    /// The policy in force.
    pub policy: Arc<LivePolicy>,
    /// Whether claims are known.
    pub readiness: Arc<Readiness>,
    /// Whether their watches still work.
    pub health: Arc<Health>,
}

/// The content of the status without its times.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    observed: Observed,
    claims: Claims,
    gaps: Vec<String>,
    modes: std::collections::BTreeMap<String, Mode>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Applied<'a> {
    api_version: String,
    kind: String,
    metadata: Identity<'a>,
    status: &'a GuardPolicyStatus,
}

/// The UID makes the API server refuse the status of an object that has since been replaced by another.
#[derive(Debug, Serialize)]
struct Identity<'a> {
    name: &'a str,
    uid: &'a str,
}

impl StatusWriter {
    /// Writes for ever.
    ///
    /// # Errors
    /// When the policy is no longer there to be asked, which does not happen while `self` holds it.
    pub async fn run(self) -> anyhow::Result<()> {
        let mut observed = self.policy.observed();
        let _ = timeout(START, self.readiness.wait_for(Requirement::Claims)).await;
        let mut last: Option<(Said, Instant)> = None;
        let mut trouble: Option<String> = None;
        loop {
            let seen = observed.borrow_and_update().clone();
            if let Some(seen) = seen {
                match self.write(seen, last.as_ref()).await {
                    Ok(Some(said)) => last = Some((said, Instant::now())),
                    Ok(None) => {}
                    // The next turn tries again; the log says once why it does not succeed.
                    Err(error) => {
                        let reason = in_words(&error);
                        if trouble.as_ref() != Some(&reason) {
                            tracing::warn!(reason, "the status of GuardPolicy default cannot be written");
                        }
                        trouble = Some(reason);
                        sleep(EVERY).await;
                        continue;
                    }
                }
                trouble = None;
            }
            tokio::select! {
                changed = observed.changed() => changed?,
                () = sleep(EVERY) => {}
            }
        }
    }

    /// Brings the status up to date and returns its content; `None` if nothing had to be checked.
    async fn write(&self, observed: Observed, last: Option<&(Said, Instant)>) -> Result<Option<Said>, kube::Error> {
        let now = Timestamp::now();
        let (policy, claims, gaps) = (self.policy.load(), self.claims(now), self.gaps());
        let wanted =
            |before: &GuardPolicyStatus| GuardPolicyStatus::of(&policy, &observed, &claims, &gaps, before, now);
        let said = Said {
            observed: observed.clone(),
            claims: claims.clone(),
            gaps: gaps.clone(),
            modes: wanted(&GuardPolicyStatus::default()).modes,
        };
        if last.is_some_and(|(before, at)| *before == said && at.elapsed() < LOOK_AGAIN) {
            return Ok(None);
        }
        // The spec may be one that cannot be decoded, and so may a status of another version of the guard.
        let kind = ApiResource::erase::<GuardPolicy>(&());
        let policies: Api<Object<NotUsed, serde_json::Value>> = Api::all_with(self.client.clone(), &kind);
        let Some(stored) = policies.get_opt(POLICY_NAME).await? else { return Ok(None) };
        if stored.metadata.uid.as_deref() != Some(&observed.uid) {
            // The watch has not delivered yet what is there now.
            return Ok(None);
        }
        let before: Option<GuardPolicyStatus> = stored.status.and_then(|status| serde_json::from_value(status).ok());
        let status = wanted(before.as_ref().unwrap_or(&GuardPolicyStatus::default()));
        if before.as_ref() != Some(&status) {
            let metadata = Identity { name: POLICY_NAME, uid: &observed.uid };
            let (api_version, kind) = (GuardPolicy::api_version(&()).into_owned(), GuardPolicy::kind(&()).into_owned());
            let applied = Patch::Apply(Applied { api_version, kind, metadata, status: &status });
            policies.patch_status(POLICY_NAME, &PatchParams::apply(FIELD_MANAGER).force(), &applied).await?;
            tracing::debug!(generation = observed.generation, "the status of GuardPolicy default was written");
        }
        Ok(Some(said))
    }

    fn gaps(&self) -> Vec<String> {
        self.inventory.read().gaps_in_words()
    }

    fn claims(&self, now: Timestamp) -> Claims {
        let missing = self.readiness.report().into_iter().find(|(condition, _)| *condition == Requirement::Claims);
        match (missing, self.health.stale(now)) {
            (Some((_, why)), _) => Claims::NotSynced(why),
            (None, Some(why)) => Claims::Stale(why),
            (None, None) => Claims::Synced,
        }
    }
}
