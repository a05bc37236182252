//! The life of the process: run until told to stop, or until a part of it ends that must not.

use std::{io, pin::pin, time::Duration};

use axum::Router;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{Condition, Limits, Readiness, Transport, listener::serve};

/// Resolves on SIGTERM or SIGINT, with the signal's name.
///
/// # Errors
/// When signals cannot be received.
pub async fn told_to_stop() -> io::Result<&'static str> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}

/// A port, what it speaks and what it serves.
#[derive(Debug)]
pub struct Port {
    /// The socket.
    pub listener: TcpListener,
    /// What it speaks.
    pub transport: Transport,
    /// What it serves.
    pub app: Router,
}

/// Serves both ports, the webhook's as soon as it is there, until `stop` resolves, then shuts down in the order that loses no request: not ready any more, go
/// on accepting for `linger` while that gets around, let requests in progress end.
///
/// # Errors
/// When `stop` or `webhook` fails, or when one of the `background` tasks ends: each of them is to run as long as the process, and a
/// process that goes on without one of them would quietly judge by what is no longer true.
pub async fn run(
    webhook: impl Future<Output = anyhow::Result<Port>>,
    admin: Port,
    limits: Limits,
    linger: Duration,
    readiness: &Readiness,
    background: &mut JoinSet<anyhow::Result<()>>,
    stop: impl Future<Output = io::Result<&'static str>>,
) -> anyhow::Result<()> {
    let (stop_webhook, stop_admin) = (CancellationToken::new(), CancellationToken::new());
    let start = |port: Port, stop: &CancellationToken| {
        tokio::spawn(serve(port.listener, port.transport, port.app, limits, stop.clone()))
    };
    let mut admin = start(admin, &stop_admin);
    let mut serving = pin!(async {
        let port = tokio::select! {
            port = webhook => port?,
            // A webhook port that never opened has nothing to drain.
            () = stop_webhook.cancelled() => return anyhow::Ok(()),
        };
        Ok(start(port, &stop_webhook).await?)
    });
    let signal = tokio::select! {
        signal = stop => signal?,
        ended = background.join_next(), if !background.is_empty() => return Err(why_ended(ended)),
        ended = &mut serving => {
            ended?;
            anyhow::bail!("the webhook port stopped being served")
        }
        _ = &mut admin => anyhow::bail!("the plain port stopped being served"),
    };
    readiness.missing(Condition::Running, format!("{signal} was received, the process is about to end"));
    tokio::time::sleep(linger).await;
    stop_webhook.cancel();
    serving.await?;
    // Probes and metrics are there to the very end.
    stop_admin.cancel();
    admin.await?;
    tracing::info!("drained");
    Ok(())
}

/// Says in words why a background task ended.
fn why_ended(ended: Option<Result<anyhow::Result<()>, tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok(Err(error))) => error.context("a background task failed"),
        Some(Err(error)) => anyhow::Error::new(error).context("a background task broke down"),
        Some(Ok(Ok(()))) | None => anyhow::anyhow!("a background task ended that must not end"),
    }
}

impl Port {
    /// The address that was really bound, where port 0 was asked for.
    ///
    /// # Errors
    /// When the socket has none.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }
}
