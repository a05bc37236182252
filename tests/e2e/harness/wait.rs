//! Waiting for what happens soon. Nothing here measures time: it only says when to give up.

use std::time::Duration;

use anyhow::{Result, anyhow};

/// How long something may take that takes a second where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A reason not to wait any longer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Hopeless(pub String);

/// Calls `probe` until it succeeds; its error after a minute, or at once where it is [`Hopeless`]. A probe that hangs is given
/// up as well.
pub async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let probed = tokio::time::timeout(PATIENCE, probe()).await;
        match probed.unwrap_or_else(|_| Err(anyhow!("no answer in {PATIENCE:?}"))) {
            Ok(value) => return Ok(value),
            Err(error) if error.is::<Hopeless>() || tokio::time::Instant::now() > deadline => {
                return Err(anyhow!("waited in vain for {what}: {error:#}"));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
