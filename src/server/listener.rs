//! The accept loop: connections in, connections out, and never more of them than the process can carry.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::ServerTls;

/// How connections are bounded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many connections at a time; more wait in the kernel's queue.
    pub connections: usize,
    /// A TLS handshake that takes longer is given up.
    pub handshake: Duration,
    /// Request headers that take longer are given up. hyper counts an idle keep-alive connection as one that owes its
    /// headers, and the API server keeps idle connections for 90 seconds and does not repeat a POST that meets a closed
    /// one. So this must be longer than 90 seconds.
    pub headers: Duration,
    /// After the server was told to stop, requests in progress have so long to end.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(120),
            drain: Duration::from_secs(15),
        }
    }
}

/// What the bytes of a connection are wrapped in.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Nothing.
    Plain,
    /// TLS.
    Tls(Arc<ServerTls>),
}

/// The other end of the connection that a request came in on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Serves `app` until `stop` is cancelled, then lets requests in progress end.
pub async fn serve(listener: TcpListener, transport: Transport, app: Router, limits: Limits, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let draining = GracefulShutdown::new();
    let mut pause = PAUSE;
    loop {
        // The permit comes first: a connection that nobody has room for stays in the kernel's queue.
        let permit = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            permit = permits.clone().acquire_owned() => permit,
        };
        // The semaphore is never closed.
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                pause = PAUSE;
                let connection = Connection { peer, limits, watcher: draining.watcher(), _permit: permit };
                tokio::spawn(connection.run(stream, transport.clone(), app.clone()));
            }
            // The connection went away before it was taken up; the next one is none the worse.
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // Out of file descriptors, most likely. Trying at once again would only burn the processor.
                tracing::error!(%error, pause_seconds = pause.as_secs_f64(), "cannot accept connections");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
    drop(listener);
    let open = draining.count();
    if timeout(limits.drain, draining.shutdown()).await.is_err() {
        tracing::warn!(connections = open, "requests were still in progress when the time to drain was over");
    }
}

const PAUSE: Duration = Duration::from_millis(20);

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

struct Connection {
    peer: SocketAddr,
    limits: Limits,
    watcher: Watcher,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, stream: TcpStream, transport: Transport, app: Router) {
        // Answers are small and somebody waits for each of them.
        let _ = stream.set_nodelay(true);
        let Transport::Tls(tls) = transport else { return self.serve(stream, app).await };
        match timeout(self.limits.handshake, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, app).await,
            Ok(Err(error)) => tracing::debug!(peer = %self.peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(peer = %self.peer, "TLS handshake took too long"),
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(self, stream: S, app: Router) {
        let peer = Peer(self.peer);
        let service = app.map_request(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            request
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(peer = %self.peer, %error, "connection ended");
        }
    }
}
