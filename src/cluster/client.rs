//! The connection to the API server.

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Whoever waits for an answer gives up sooner (see [`super::SILENCE`]); this is for what nobody waits for.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Connects as a kubeconfig says, or, where none is named, as `KUBECONFIG`, `~/.kube/config` or the Pod's own
/// ServiceAccount say.
///
/// # Errors
/// When none of these can be used. Nothing is sent to the API server yet.
pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> anyhow::Result<Client> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let mut config = match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path).with_context(|| format!("cannot use {}", path.display()))?;
            Config::from_custom_kubeconfig(read, &options)
                .await
                .with_context(|| format!("cannot use {}", path.display()))?
        }
        None if context.is_some() => {
            Config::from_kubeconfig(&options).await.context("the kubeconfig cannot be used")?
        }
        None => infer().await?,
    };
    config.read_timeout = Some(READ_TIMEOUT);
    Client::try_from(config).context("no client can be made from the configuration")
}

/// `KUBECONFIG`, `~/.kube/config`, or the ServiceAccount of the Pod.
async fn infer() -> anyhow::Result<Config> {
    let found = match Kubeconfig::read() {
        Ok(read) => Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await,
        // In a Pod nobody has a kubeconfig, and elsewhere there is no Pod to speak of: one cause is enough.
        Err(missing) => return Config::incluster().map_err(|_| missing).context(NO_CLUSTER),
    };
    found.context("the kubeconfig cannot be used; name another with --kubeconfig")
}

const NO_CLUSTER: &str = "no kubeconfig can be read; name one with --kubeconfig";

/// What went wrong, for a person, without quoting what was read.
pub fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => format!("the API server answered {}", status.code),
        kube::Error::Api(status) => format!("the API server answered {} ({})", status.code, status.message),
        // An error of decoding quotes what was decoded.
        kube::Error::SerdeError(_) => "the answer of the API server makes no sense".to_owned(),
        other => {
            // The outer errors of a client only wrap the one that says something.
            let mut error: &dyn std::error::Error = other;
            while let Some(source) = error.source() {
                error = source;
            }
            error.to_string()
        }
    }
}
