//! The accept loop: connections in, connections out, and never more of them than the process can carry.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use rustls::pki_types::CertificateDer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{
    ServerTls,
    connections::{Connections, Place},
    limits::Limits,
};
use crate::certs::names;

/// What a connection buffers of a request beside its body. Headers of the API server are a few hundred bytes.
const BUFFER: usize = 64 << 10;

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

/// Whose certificate the other end of a connection has shown; empty where nobody is asked for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client(pub Arc<str>);

impl Client {
    /// The first name in the certificate.
    fn of(chain: Option<&[CertificateDer<'_>]>) -> Self {
        let names = chain.and_then(<[_]>::first).and_then(|certificate| names(certificate).ok());
        Self(names.and_then(|names| names.into_iter().next()).unwrap_or_default().into())
    }
}

/// What a handler puts into effect that makes a request wait before it has read its body.
#[derive(Clone, Debug)]
pub(super) struct Patience(Arc<Place>);

impl Patience {
    /// The connection will be waiting for the server for so long, and is not to be dropped for that.
    pub(super) fn put_off(&self, wait: Duration) {
        self.0.put_off(wait);
    }
}

/// Serves `app` until `stop` is cancelled, then lets requests in progress end.
pub async fn serve(listener: TcpListener, transport: Transport, app: Router, limits: Limits, stop: CancellationToken) {
    let connections = Connections::new(limits);
    let draining = GracefulShutdown::new();
    let mut pause = PAUSE;
    let mut number = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                pause = PAUSE;
                number += 1;
                let place = tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    place = connections.place(number, peer) => Arc::new(place),
                };
                let connection = Connection { peer, limits, watcher: draining.watcher(), place };
                tokio::spawn(connection.run(stream, transport.clone(), app.clone()));
            }
            // The connection went away before it was taken up; the next one is none the worse.
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // Out of file descriptors, most likely. Trying at once again would only burn the processor.
                connections.shed();
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
    place: Arc<Place>,
}

impl Connection {
    /// Serves until the other end goes, or has to.
    async fn run(self, stream: TcpStream, transport: Transport, app: Router) {
        let (peer, place) = (self.peer, self.place.clone());
        tokio::select! {
            () = self.talk(stream, transport, app) => {}
            () = place.has_to_go() => tracing::debug!(%peer, "connection dropped: it asked nothing, or others need its place"),
        }
    }

    async fn talk(self, stream: TcpStream, transport: Transport, app: Router) {
        // Answers are small and somebody waits for each of them.
        let _ = stream.set_nodelay(true);
        let Transport::Tls(tls) = transport else {
            return self.serve(stream, Client::default(), app).await;
        };
        match tls.acceptor().accept(stream).await {
            Ok(stream) => {
                let client = Client::of(stream.get_ref().1.peer_certificates());
                self.serve(stream, client, app).await;
            }
            Err(error) => tracing::debug!(peer = %self.peer, %error, "TLS handshake failed"),
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(self, stream: S, client: Client, app: Router) {
        let (peer, place) = (Peer(self.peer), self.place);
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let (place, app) = (place.clone(), app.clone());
            let mut request = request.map(|body| Body::new(Noticed::new(body, place.clone())));
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(client.clone());
            request.extensions_mut().insert(Patience(place.clone()));
            async move {
                let answer = app.oneshot(request).await;
                place.is_answered();
                answer
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .max_buf_size(BUFFER)
            // Nobody needs the time of day here, and with a clock before 1970 there is none that HTTP could tell.
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(peer = %self.peer, %error, "connection ended");
        }
    }
}

/// The body of a request that tells when all of it has come in.
struct Noticed {
    body: Incoming,
    place: Option<Arc<Place>>,
}

impl Noticed {
    fn new(body: Incoming, place: Arc<Place>) -> Self {
        let mut noticed = Self { body, place: Some(place) };
        noticed.notice(noticed.body.is_end_stream());
        noticed
    }

    fn notice(&mut self, is_whole: bool) {
        if is_whole && let Some(place) = self.place.take() {
            place.asks();
        }
    }
}

impl hyper::body::Body for Noticed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(frame) = &polled {
            let is_whole = frame.is_none() || self.body.is_end_stream();
            self.notice(is_whole);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
