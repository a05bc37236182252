//! Runs the server until a signal stops it, or until a background task ends that must not end.

use std::{io, pin::pin, time::Duration};

use anyhow::Context as _;
use axum::{
    Router,
    http::{HeaderValue, header},
    middleware::map_response,
    response::Response,
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{Limits, Transport, listener::serve};
use crate::state::{Readiness, Requirement};

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
    /// How its connections are bounded.
    pub limits: Limits,
}

/// Serves both ports, the webhook's as soon as it is there, until `stop` resolves, then shuts down in the order that
/// loses no request: not ready any more, go on accepting for `linger` while that gets around, let requests in progress
/// end.
///
/// # Errors
/// When `stop` or `webhook` fails, or when one of the `background` tasks ends: each of them is to run as long as the process, and a
/// process that goes on without one of them would quietly judge by what is no longer true.
pub async fn run(
    webhook: impl Future<Output = anyhow::Result<Port>>,
    admin: Port,
    linger: Duration,
    readiness: &Readiness,
    background: &mut JoinSet<anyhow::Result<()>>,
    stop: impl Future<Output = io::Result<&'static str>>,
) -> anyhow::Result<()> {
    let (stop_webhook, stop_admin) = (CancellationToken::new(), CancellationToken::new());
    let leaving = CancellationToken::new();
    let start = |port: Port, stop: &CancellationToken| {
        let app = until_leaving(port.app, leaving.clone());
        tokio::spawn(serve(port.listener, port.transport, app, port.limits, stop.clone()))
    };
    let mut admin = aside(admin, leaving.clone(), stop_admin.clone())?;
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
    readiness.missing(Requirement::Running, format!("{signal} was received, the process is about to end"));
    leaving.cancel();
    tokio::time::sleep(linger).await;
    stop_webhook.cancel();
    serving.await?;
    // Probes and metrics are there to the very end.
    stop_admin.cancel();
    admin.await.context("the plain port broke down")?;
    tracing::info!("drained");
    Ok(())
}

/// Serves a port on a thread and a runtime of its own, so that it answers whatever the other one is busy with: a probe that
/// is not answered has the process killed. The result resolves when it is no longer served.
fn aside(port: Port, leaving: CancellationToken, stop: CancellationToken) -> anyhow::Result<oneshot::Receiver<()>> {
    // A socket belongs to the runtime that it was made in.
    let listener = port.listener.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (ended, end) = oneshot::channel();
    std::thread::Builder::new().name("plain-port".to_owned()).spawn(move || {
        runtime.block_on(async {
            match TcpListener::from_std(listener) {
                Ok(listener) => {
                    serve(listener, port.transport, until_leaving(port.app, leaving), port.limits, stop).await;
                }
                Err(error) => tracing::error!(%error, "the plain port cannot be served"),
            }
        });
        let _ = ended.send(());
    })?;
    Ok(end)
}

/// From the moment on that the process is about to end, every answer asks the client to close its connection: the API
/// server keeps one for as long as it is used, and does not repeat a POST that meets a closed one.
fn until_leaving(app: Router, leaving: CancellationToken) -> Router {
    app.layer(map_response(move |mut response: Response| {
        if leaving.is_cancelled() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        std::future::ready(response)
    }))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        sync::Notify,
    };

    use super::*;

    async fn port() -> Port {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let app = Router::new().route("/", get(|| async { "the answer" }));
        Port { listener, transport: Transport::Plain, app, limits: Limits::default() }
    }

    async fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut text = String::new();
        while !text.ends_with("the answer") {
            let mut bytes = [0; 1024];
            let read = stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "closed after {text:?}");
            text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
        text
    }

    #[tokio::test]
    async fn while_it_lingers_answers_ask_for_another_connection() {
        let (webhook, admin) = (port().await, port().await);
        let address = webhook.address().unwrap();
        let (readiness, stop) = (Arc::new(Readiness::default()), Arc::new(Notify::new()));
        let running = tokio::spawn({
            let (readiness, stop) = (readiness.clone(), stop.clone());
            async move {
                let told = async {
                    stop.notified().await;
                    Ok("SIGTERM")
                };
                let linger = Duration::from_secs(5);
                let mut nothing = JoinSet::new();
                run(async { Ok(webhook) }, admin, linger, &readiness, &mut nothing, told).await
            }
        });
        let mut kept = TcpStream::connect(address).await.unwrap();
        assert!(!ask(&mut kept).await.contains("connection: close"));
        stop.notify_one();
        while readiness.is_ready() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(ask(&mut kept).await.contains("connection: close"));
        assert_eq!(kept.read(&mut [0; 1]).await.unwrap(), 0, "the connection was not closed");
        // Whoever comes now is still served.
        let mut fresh = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut fresh).await.contains("connection: close"));
        running.abort();
    }
}
