//! The server on real sockets: certificates that change, connections that stall, the way down.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

mod serving;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use cascade_guard::{
    certs::{Authority, Issued, not_after},
    server::{
        Limits, ServerTls, Transport,
        listener::serve,
        routes,
        tls::{Clients, TlsError, files_in},
    },
    telemetry::Metrics,
};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::{SendRequest, handshake},
    header::{CONNECTION, CONTENT_TYPE},
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};
use serving::{guard, review};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

const DAY: Duration = Duration::from_secs(86_400);
/// Nothing here takes long. What takes this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Writes a fresh pair into a folder and gives its certificate (DER) back.
fn write_pair(folder: &Path, authority: &Authority) -> Vec<u8> {
    let pair = authority.serving(&["127.0.0.1".to_owned()], DAY).unwrap();
    fs::write(folder.join("tls.crt"), &pair.cert_pem).unwrap();
    fs::write(folder.join("tls.key"), &pair.key_pem).unwrap();
    CertificateDer::from_pem_slice(pair.cert_pem.as_bytes()).unwrap().to_vec()
}

struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

async fn start(tls: Arc<ServerTls>, app: axum::Router, limits: Limits) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(serve(listener, Transport::Tls(tls), app, limits, stop.clone()));
    Server { address, stop, running }
}

fn webhook() -> axum::Router {
    routes::router(Arc::new(guard("enforce")))
}

fn tls_of(authority: &Authority, client_ca: Option<&str>) -> Arc<ServerTls> {
    tls_for(authority, client_ca, &[])
}

fn tls_for(authority: &Authority, client_ca: Option<&str>, names: &[String]) -> Arc<ServerTls> {
    let pair = authority.serving(&["127.0.0.1".to_owned()], DAY).unwrap();
    let clients = client_ca.map(|ca| Clients { ca: ca.as_bytes(), names });
    let metrics = Arc::new(Metrics::new());
    Arc::new(ServerTls::new(pair.cert_pem.as_bytes(), pair.key_pem.as_bytes(), clients, metrics).unwrap())
}

fn roots(authority: &Authority) -> RootCertStore {
    install_provider();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.cert_pem.as_bytes()).unwrap()).unwrap();
    roots
}

fn trusting(authority: &Authority) -> ClientConfig {
    ClientConfig::builder().with_root_certificates(roots(authority)).with_no_client_auth()
}

async fn connect(server: &Server, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(server.address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::from(server.address.ip()), stream).await
}

async fn open(server: &Server, config: ClientConfig) -> SendRequest<Full<Bytes>> {
    let stream = connect(server, config).await.unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn post(path: &str) -> Request<Full<Bytes>> {
    let body = review("u-1", "DELETE").to_string();
    Request::post(path).header(CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(body))).unwrap()
}

async fn ask(sender: &mut SendRequest<Full<Bytes>>) -> Response<Incoming> {
    sender.send_request(post("/validate")).await.unwrap()
}

/// Reads until the other end closes; fails if it does not.
async fn until_closed(stream: &mut (impl AsyncReadExt + Unpin)) {
    let mut rest = Vec::new();
    // An abrupt end is an end as well.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the server never closed the connection");
}

#[tokio::test]
async fn reviews_are_answered_over_both_versions_and_nothing_but_http_1_is_offered() {
    let authority = Authority::new(DAY).unwrap();
    let server = start(tls_of(&authority, None), webhook(), Limits::default()).await;
    for version in [&TLS12, &TLS13] {
        let mut config = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(roots(&authority))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let stream = connect(&server, config).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(stream.get_ref().1.protocol_version(), Some(version.version));
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        assert_eq!(ask(&mut sender).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn rotated_certificate_is_served_and_a_bad_one_is_not() {
    let authority = Authority::new(DAY).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let first = write_pair(folder.path(), &authority);
    let metrics = Arc::new(Metrics::new());
    let (tls, content) = ServerTls::from_files(&files_in(folder.path()), metrics.clone()).unwrap();
    let follower = tokio::spawn(tls.clone().follow(content, Duration::from_millis(5)));
    let server = start(tls, webhook(), Limits::default()).await;
    let shown = async || {
        let stream = connect(&server, trusting(&authority)).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    };
    assert_eq!(shown().await, first);
    // A connection from before the rotations goes on.
    let mut old = open(&server, trusting(&authority)).await;
    let mut last = first;
    for _ in 0..2 {
        let next = write_pair(folder.path(), &authority);
        assert_ne!(next, last);
        timeout(PATIENCE, async {
            while shown().await != next {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the new certificate was never served");
        last = next;
    }
    // A key that does not fit, then a file that is no key at all, then none: the last good pair is served throughout.
    let stranger = authority.serving(&["127.0.0.1".to_owned()], DAY).unwrap();
    for bad in [Some(stranger.key_pem.as_str()), Some("this is no key"), None] {
        match bad {
            Some(text) => fs::write(folder.path().join("tls.key"), text).unwrap(),
            None => fs::remove_file(folder.path().join("tls.key")).unwrap(),
        }
        for _ in 0..20 {
            assert_eq!(shown().await, last);
        }
    }
    // And a good one is taken up again.
    last = write_pair(folder.path(), &authority);
    timeout(PATIENCE, async { while shown().await != last {} }).await.expect("the good pair was never served");
    assert_eq!(ask(&mut old).await.status(), StatusCode::OK);
    let expires = not_after(&last).unwrap().as_second();
    let text = metrics.encode();
    assert!(text.contains(&format!("cascade_guard_certificate_not_after_timestamp_seconds {expires}")), "{text}");
    assert!(!follower.is_finished());
}

#[tokio::test]
async fn bad_pair_is_refused_at_the_start_with_the_reason() {
    let authority = Authority::new(DAY).unwrap();
    let (one, other) =
        (authority.serving(&["a".to_owned()], DAY).unwrap(), authority.serving(&["a".to_owned()], DAY).unwrap());
    let attempt = |cert: &str, key: &str, ca: Option<&str>| {
        let metrics = Arc::new(Metrics::new());
        ServerTls::new(cert.as_bytes(), key.as_bytes(), ca.map(|ca| Clients { ca: ca.as_bytes(), names: &[] }), metrics)
            .map(|_| ())
            .unwrap_err()
    };
    assert!(matches!(attempt(&one.cert_pem, &other.key_pem, None), TlsError::Mismatch(_)));
    assert!(matches!(attempt(&one.cert_pem, "", None), TlsError::Key(_)));
    assert!(matches!(attempt("", &one.key_pem, None), TlsError::Certificate(_)));
    assert!(matches!(attempt(&one.key_pem, &one.key_pem, None), TlsError::Certificate(_)));
    assert!(matches!(attempt(&one.cert_pem, &one.key_pem, Some("nobody")), TlsError::ClientCa(_)));
    let folder = tempfile::tempdir().unwrap();
    let missing = ServerTls::from_files(&files_in(folder.path()), Arc::new(Metrics::new())).map(|_| ()).unwrap_err();
    assert!(missing.to_string().contains("tls.crt"), "{missing}");
}

#[tokio::test]
async fn with_client_authority_only_its_clients_are_answered() {
    let (authority, clients, strangers) =
        (Authority::new(DAY).unwrap(), Authority::new(DAY).unwrap(), Authority::new(DAY).unwrap());
    let server = start(tls_of(&authority, Some(&clients.cert_pem)), webhook(), Limits::default()).await;
    let with = |issuer: &Authority| {
        let pair = issuer.client("kube-apiserver", DAY).unwrap();
        let chain = vec![CertificateDer::from_pem_slice(pair.cert_pem.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
        ClientConfig::builder().with_root_certificates(roots(&authority)).with_client_auth_cert(chain, key).unwrap()
    };
    let mut sender = open(&server, with(&clients)).await;
    assert_eq!(ask(&mut sender).await.status(), StatusCode::OK);
    for config in [trusting(&authority), with(&strangers)] {
        // Under TLS 1.3 the client learns of the refusal only when it reads.
        if let Ok(stream) = connect(&server, config).await {
            let (mut sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            assert!(sender.send_request(post("/validate")).await.is_err());
        }
    }
}

#[tokio::test]
async fn with_client_names_a_certificate_of_the_right_authority_is_not_enough() {
    let (authority, clients) = (Authority::new(DAY).unwrap(), Authority::new(DAY).unwrap());
    let names = ["kube-apiserver".to_owned(), "other-apiserver".to_owned()];
    let server = start(tls_for(&authority, Some(&clients.cert_pem), &names), webhook(), Limits::default()).await;
    for version in [&TLS12, &TLS13] {
        let with = |issued: &Issued| {
            let chain = vec![CertificateDer::from_pem_slice(issued.cert_pem.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
            let builder = ClientConfig::builder_with_protocol_versions(&[version]);
            builder.with_root_certificates(roots(&authority)).with_client_auth_cert(chain, key).unwrap()
        };
        for name in &names {
            let mut sender = open(&server, with(&clients.client(name, DAY).unwrap())).await;
            assert_eq!(ask(&mut sender).await.status(), StatusCode::OK, "{name}");
        }
        // A kubelet's certificate, near misses, and one for a server of that authority.
        let mut others: Vec<Issued> = ["system:node:a", "kube-apiserver2", "KUBE-APISERVER", ""]
            .iter()
            .map(|name| clients.client(name, DAY).unwrap())
            .collect();
        others.push(clients.serving(&["kube-apiserver".to_owned()], DAY).unwrap());
        for issued in &others {
            if let Ok(stream) = connect(&server, with(issued)).await {
                let (mut sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                assert!(sender.send_request(post("/validate")).await.is_err());
            }
        }
    }
}

#[tokio::test]
async fn request_in_progress_ends_before_the_server_does() {
    let authority = Authority::new(DAY).unwrap();
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let app = {
        let (begun, go_on) = (begun.clone(), go_on.clone());
        axum::Router::new().route(
            "/validate",
            axum::routing::post(async move || {
                begun.notify_one();
                go_on.notified().await;
                "the whole answer"
            }),
        )
    };
    let mut server = start(tls_of(&authority, None), app, Limits::default()).await;
    let mut sender = open(&server, trusting(&authority)).await;
    let mut idle = connect(&server, trusting(&authority)).await.unwrap();
    let answer = tokio::spawn(async move { sender.send_request(post("/validate")).await.unwrap() });
    begun.notified().await;
    server.stop.cancel();
    // An idle connection is closed at once; the one with a request in progress is waited for.
    until_closed(&mut idle).await;
    assert!(TcpStream::connect(server.address).await.is_err(), "the port is still open");
    assert!(!server.running.is_finished());
    go_on.notify_one();
    let answer = answer.await.unwrap();
    assert_eq!(answer.headers()[CONNECTION], "close");
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "the whole answer");
    timeout(PATIENCE, &mut server.running).await.expect("the server never stopped").unwrap();
}

#[tokio::test]
async fn drain_has_an_end() {
    let authority = Authority::new(DAY).unwrap();
    let begun = Arc::new(Notify::new());
    let app = {
        let begun = begun.clone();
        axum::Router::new().route(
            "/validate",
            axum::routing::post(async move || {
                begun.notify_one();
                std::future::pending::<&'static str>().await
            }),
        )
    };
    let limits = Limits { drain: Duration::from_millis(50), ..Limits::default() };
    let server = start(tls_of(&authority, None), app, limits).await;
    let mut sender = open(&server, trusting(&authority)).await;
    let answer = tokio::spawn(async move { sender.send_request(post("/validate")).await });
    begun.notified().await;
    server.stop.cancel();
    timeout(PATIENCE, server.running).await.expect("the server never stopped").unwrap();
    answer.abort();
}

#[tokio::test]
async fn handshake_that_stalls_is_given_up_and_stands_in_nobodys_way() {
    let authority = Authority::new(DAY).unwrap();
    let limits = Limits { first: Duration::from_millis(500), connections: 4, ..Limits::default() };
    let server = start(tls_of(&authority, None), webhook(), limits).await;
    let mut stalled = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // The first bytes of a handshake, and then nothing more.
        stream.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
        stalled.push(stream);
    }
    // Twice as many as there is room for: the honest client waits its turn and gets it.
    let mut sender = timeout(PATIENCE, open(&server, trusting(&authority))).await.expect("nobody else gets through");
    assert_eq!(ask(&mut sender).await.status(), StatusCode::OK);
    for stream in &mut stalled {
        until_closed(stream).await;
    }
}

#[tokio::test]
async fn what_is_never_a_whole_request_is_given_up() {
    let authority = Authority::new(DAY).unwrap();
    let limits = Limits { first: Duration::from_millis(300), ..Limits::default() };
    let server = start(tls_of(&authority, None), webhook(), limits).await;
    let head = "POST /validate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    let beginnings = ["", "POST /vali", head, &format!("{head}Content-Length: 1000\r\n\r\n{{"), "GET / HTTP/1.1\r\n"];
    for beginning in beginnings {
        let mut stream = connect(&server, trusting(&authority)).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        until_closed(&mut stream).await;
    }
}

#[tokio::test]
async fn connection_that_has_asked_once_outlives_those_that_never_ask() {
    let authority = Authority::new(DAY).unwrap();
    let limits = Limits { first: Duration::from_millis(300), connections: 8, fresh_per_peer: 4, ..Limits::default() };
    let server = start(tls_of(&authority, None), webhook(), limits).await;
    let mut kept = Vec::new();
    for _ in 0..4 {
        let mut sender = open(&server, trusting(&authority)).await;
        ask(&mut sender).await.into_body().collect().await.unwrap();
        kept.push(sender);
    }
    // Far more half requests than there is room for, all from the same address, one after the other.
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(&server, trusting(&authority)).await.unwrap();
        stream.write_all(b"POST /vali").await.unwrap();
        stalled.push(stream);
        // Somebody new is served all the while.
        let mut fresh = timeout(PATIENCE, open(&server, trusting(&authority))).await.expect("nobody gets through");
        assert_eq!(ask(&mut fresh).await.status(), StatusCode::OK);
    }
    for stream in &mut stalled {
        until_closed(stream).await;
    }
    for sender in &mut kept {
        assert_eq!(ask(sender).await.status(), StatusCode::OK, "it was idle for longer than a first request may take");
    }
}

#[tokio::test]
async fn port_full_of_connections_that_have_all_asked_still_takes_another() {
    let authority = Authority::new(DAY).unwrap();
    let limits = Limits { connections: 4, fresh_per_peer: 4, ..Limits::default() };
    let server = start(tls_of(&authority, None), webhook(), limits).await;
    let mut greedy = Vec::new();
    for _ in 0..8 {
        let mut sender = open(&server, trusting(&authority)).await;
        let answer = timeout(PATIENCE, ask(&mut sender)).await.expect("nobody gets through");
        answer.into_body().collect().await.unwrap();
        greedy.push(sender);
    }
    // The last of them were never in anybody's way.
    for sender in &mut greedy[5..] {
        assert_eq!(ask(sender).await.status(), StatusCode::OK);
    }
}

#[test]
fn idle_connections_of_the_api_server_are_kept_longer_than_it_keeps_them() {
    assert!(Limits::default().headers > Duration::from_secs(90));
}

#[tokio::test]
async fn connection_is_used_again() {
    let authority = Authority::new(DAY).unwrap();
    let server = start(tls_of(&authority, None), webhook(), Limits::default()).await;
    let mut sender = open(&server, trusting(&authority)).await;
    for _ in 0..3 {
        let answer = ask(&mut sender).await;
        assert_eq!(answer.status(), StatusCode::OK);
        answer.into_body().collect().await.unwrap();
    }
}
