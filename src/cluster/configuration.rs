//! The webhook configuration as it is in the cluster, held against the one that ships. Whatever is missing or weaker there
//! the API server lets pass without asking, and nobody else would say so.

mod compare;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{Api, Client};
use rustls::pki_types::CertificateDer;
use tokio::time::timeout;

use self::compare::weaknesses;
use super::{client::in_words, health::Degradation};
use crate::telemetry::metrics::Fault;
use cascade_guard_core::{
    kinds::OWN_NAME,
    text::{clip, some},
};

/// The configuration that ships with this version.
const SHIPPED: &str = include_str!("../../manifests/webhooks.yaml");
/// So much of a note is kept: an Event holds little more.
const MAX_NOTE: usize = 900;
/// The wait for an answer. The next look comes soon.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is wrong with it, each in words for a person.
pub type Faults = Vec<(Fault, String)>;

/// Looks at the configuration again and again.
pub struct ConfigurationWatch {
    client: Client,
    shipped: ValidatingWebhookConfiguration,
}

impl ConfigurationWatch {
    /// Of this cluster.
    ///
    /// # Errors
    /// When what ships makes no sense, which a test rules out.
    pub fn new(client: Client) -> anyhow::Result<Self> {
        Ok(Self { client, shipped: shipped()? })
    }

    /// What is wrong with it now; `chain` is the certificate that the guard serves.
    pub async fn look(&self, chain: &[CertificateDer<'static>]) -> Faults {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        match timeout(PATIENCE, api.get_opt(OWN_NAME)).await {
            Ok(Ok(Some(live))) if live.metadata.deletion_timestamp.is_none() => weaknesses(&self.shipped, &live, chain),
            Ok(Ok(_)) => {
                let said = format!("there is no ValidatingWebhookConfiguration {OWN_NAME}: nothing asks cascade-guard");
                vec![(Fault::Missing, said)]
            }
            Ok(Err(error)) => vec![(Fault::Unread, format!("it cannot be read: {}", in_words(&error)))],
            Err(_) => vec![(Fault::Unread, "it was not read in time".to_owned())],
        }
    }
}

fn shipped() -> anyhow::Result<ValidatingWebhookConfiguration> {
    serde_saphyr::from_str(SHIPPED).context("the webhook configuration that ships cannot be read")
}

/// What the faults come to.
pub(super) fn degradation(faults: &Faults) -> Option<Degradation> {
    let said: Vec<String> = faults.iter().map(|(_, said)| said.clone()).collect();
    let worst = faults.iter().map(|(fault, _)| *fault).min()?;
    let reason = match worst {
        Fault::Missing => "WebhookConfigurationMissing",
        Fault::Unread => "WebhookConfigurationUnread",
        _ => "WebhookConfigurationWeaker",
    };
    let note = format!(
        "ValidatingWebhookConfiguration {OWN_NAME} is not what ships: {}. Apply it again: kubectl apply -k, with the folder \
         or overlay that it came from",
        some(&said, 4)
    );
    Some(Degradation { reason, note: clip(&note, MAX_NOTE) })
}
