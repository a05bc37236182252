//! The API server's part in the demo: a TLS client that posts reviews.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::Bytes,
    header::{ACCEPT, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What comes back.
#[derive(Debug, Deserialize)]
pub struct Answer {
    /// UID of the review that was answered.
    pub uid: String,
    /// Whether the request may go on.
    pub allowed: bool,
    /// Why not.
    #[serde(default)]
    pub status: Status,
    /// Lines for the client.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Why not.
#[derive(Debug, Default, Deserialize)]
pub struct Status {
    /// HTTP code that the user's client gets.
    pub code: u16,
    /// One word.
    pub reason: String,
    /// For a person.
    pub message: String,
}

/// Posts reviews over TLS.
pub struct Client {
    connector: TlsConnector,
    server: SocketAddr,
}

impl Client {
    /// Trusts `ca` alone.
    pub fn new(ca: &str, server: SocketAddr) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), server })
    }

    /// Posts one review and reads the answer.
    pub async fn send(&self, path: &str, review: &str) -> anyhow::Result<Answer> {
        #[derive(Deserialize)]
        struct Review {
            response: Answer,
        }
        let stream = TcpStream::connect(self.server).await?;
        let stream = self.connector.connect(ServerName::from(self.server.ip()), stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let request = Request::post(format!("{path}?timeout=10s"))
            .header(HOST, self.server.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .body(Full::new(Bytes::from(review.to_owned())))?;
        let response = sender.send_request(request).await?;
        anyhow::ensure!(response.status().is_success(), "the server answered {}", response.status());
        let body = response.into_body().collect().await?.to_bytes();
        drop(sender);
        connection.await??;
        let Review { response } = serde_json::from_slice(&body).context("the answer is no AdmissionReview")?;
        Ok(response)
    }
}
