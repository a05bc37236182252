//! What became of a request.

use anyhow::{Result, bail, ensure};
use kube::core::Status;

/// The status of a request that a webhook denied: 403, reason Forbidden, said by the webhook.
pub fn refusal<T>(outcome: kube::Result<T>) -> Result<Status> {
    match outcome {
        Err(kube::Error::Api(status)) => {
            ensure!(status.message.contains("denied the request"), "not by a webhook: {}", status.message);
            ensure!(status.code == 403 && status.reason == "Forbidden", "{} {}", status.code, status.reason);
            Ok(*status)
        }
        Err(error) => bail!("it failed without being refused: {error}"),
        Ok(_) => bail!("it was admitted"),
    }
}

/// That a request was denied by `entry` of the webhook configuration, with these words in its message.
pub fn refused<T>(outcome: kube::Result<T>, entry: &str, words: &[&str]) -> Result<()> {
    let message = refusal(outcome)?.message;
    let opening = format!("admission webhook \"{entry}.cascade-guard.io\" denied the request: cascade-guard denied");
    ensure!(message.starts_with(&opening), "another entry or another message: {message}");
    for word in words {
        ensure!(message.contains(word), "no {word:?} in: {message}");
    }
    Ok(())
}

/// That a request failed because the guard did not answer.
pub fn unanswered<T>(outcome: kube::Result<T>, entry: &str) -> Result<()> {
    let status = match outcome {
        Err(kube::Error::Api(status)) => status,
        Err(error) => bail!("it failed in another way: {error}"),
        Ok(_) => bail!("it was admitted"),
    };
    let said = format!("failed calling webhook \"{entry}.cascade-guard.io\"");
    ensure!(status.code == 500 && status.message.contains(&said), "{} {}", status.code, status.message);
    Ok(())
}

/// That a request was judged by RBAC or the schema and not allowed by it.
pub fn rejected<T>(outcome: kube::Result<T>, words: &str) -> Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.message.contains(words) => Ok(()),
        Err(error) => bail!("no {words:?} in: {error}"),
        Ok(_) => bail!("it was admitted"),
    }
}
