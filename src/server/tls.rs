//! The serving certificate, and the authorities of client certificates.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
    time_provider::TimeProvider,
};
use tokio_rustls::TlsAcceptor;

use super::clients::NamedClients;
use crate::{
    certs::{InspectError, not_after},
    state::{FileError, WatchedFiles},
    telemetry::Metrics,
};

/// Why a certificate and key cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no certificate in the PEM text.
    #[error("the certificate file holds no usable certificate: {0}")]
    Certificate(String),
    /// The end of the certificate cannot be told.
    #[error("the serving certificate is unreadable: {0}")]
    Unreadable(#[from] InspectError),
    /// There is no private key in the PEM text.
    #[error("the key file holds no usable private key: {0}")]
    Key(String),
    /// The two are not a pair.
    #[error("the certificate and the private key do not belong together ({0}); both files must come from one issuance")]
    Mismatch(rustls::Error),
    /// The authority for client certificates cannot be used.
    #[error("the file of client authorities cannot be used: {0}")]
    ClientCa(String),
}

/// Where certificate, key and the authority for client certificates are kept.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain, PEM, the serving certificate first.
    pub cert: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Authorities of client certificates, PEM. If given, nobody connects without such a certificate.
    pub client_ca: Option<PathBuf>,
    /// Whose certificates of those authorities are taken; if empty, anybody's.
    pub client_names: Vec<String>,
}

/// Who may connect.
#[derive(Clone, Copy, Debug)]
pub struct Clients<'a> {
    /// Authorities of their certificates, PEM.
    pub ca: &'a [u8],
    /// Of these names one stands in their certificates; if there are none, any certificate of the authorities will do.
    pub names: &'a [String],
}

impl TlsFiles {
    fn read(&self) -> Result<WatchedFiles, FileError> {
        let paths = [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()];
        WatchedFiles::read(paths.into_iter().flatten().cloned().collect())
    }
}

/// The TLS side of the server. Handshakes read one pointer; a rotation replaces what it points to, client authorities
/// included, and leaves established connections alone.
#[derive(Debug)]
pub struct ServerTls {
    serving: ArcSwap<Serving>,
    client_names: Vec<String>,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct Serving {
    config: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
    not_after: Timestamp,
}

impl ServerTls {
    /// Serves this certificate chain and key (PEM), to everybody or only to `clients`.
    ///
    /// # Errors
    /// When they cannot be served; the error says which of them is wrong and why.
    pub fn new(cert: &[u8], key: &[u8], clients: Option<Clients<'_>>, metrics: Arc<Metrics>) -> Result<Self, TlsError> {
        let serving = server_config(cert, key, clients)?;
        metrics.set_certificate_not_after(serving.not_after);
        let client_names = clients.map(|clients| clients.names.to_vec()).unwrap_or_default();
        Ok(Self { serving: ArcSwap::from_pointee(serving), client_names, metrics })
    }

    /// Serves the pair in `files`; the second part of the result follows their changes once it is run.
    ///
    /// # Errors
    /// When a file cannot be read or the pair cannot be served.
    pub fn from_files(files: &TlsFiles, metrics: Arc<Metrics>) -> Result<(Arc<Self>, WatchedFiles), TlsError> {
        let watched = files.read()?;
        let bytes = watched.bytes();
        let tls = Self::new(&bytes[0], &bytes[1], clients(bytes, &files.client_names), metrics)?;
        Ok((Arc::new(tls), watched))
    }

    /// Follows the files for ever. A pair that cannot be served is refused and the last good one kept.
    ///
    /// # Errors
    /// Never; it has the type of a background task.
    pub async fn follow(self: Arc<Self>, files: WatchedFiles, every: Duration) -> anyhow::Result<()> {
        let never = files.follow("the certificate", every, |bytes| {
            match server_config(&bytes[0], &bytes[1], clients(bytes, &self.client_names)) {
                Ok(serving) => {
                    let not_after = serving.not_after;
                    self.serving.store(Arc::new(serving));
                    self.metrics.set_certificate_not_after(not_after);
                    tracing::info!(%not_after, "serving the new certificate");
                }
                Err(error) => {
                    tracing::error!(%error, "the new certificate is refused; the last good one is kept");
                }
            }
        });
        match never.await {}
    }

    /// An acceptor for one handshake.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.serving.load().config.clone())
    }

    /// The certificate that is being served, then those between it and its authority.
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.serving.load().chain.clone()
    }

    /// When the certificate that is being served expires.
    pub fn not_after(&self) -> Timestamp {
        self.serving.load().not_after
    }
}

/// The files of [`TlsFiles`], in order.
fn clients<'a>(files: &'a [Vec<u8>], names: &'a [String]) -> Option<Clients<'a>> {
    files.get(2).map(|ca| Clients { ca, names })
}

fn server_config(cert: &[u8], key: &[u8], clients: Option<Clients<'_>>) -> Result<Serving, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = certificates(cert).map_err(TlsError::Certificate)?;
    let not_after = not_after(&chain[0])?;
    if not_after < Timestamp::now() {
        // Not refused: a clock may be wrong, and a server that does not start is worse than one that may be told so.
        tracing::error!(%not_after, "the serving certificate has expired; API servers refuse to talk to it");
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key(error.to_string()))?;
    let pair = CertifiedKey::from_der(chain.clone(), key, &provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch(error),
        other => TlsError::Key(other.to_string()),
    })?;
    let builder = ServerConfig::builder_with_details(provider.clone(), Arc::new(WallClock))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| TlsError::Certificate(error.to_string()))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            builder.with_client_cert_verifier(client_verifier(clients, &provider).map_err(TlsError::ClientCa)?)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(pair)));
    // The API server speaks HTTP/1.1 to a Service. Offering nothing else keeps a loopback test from using another path.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Serving { config: Arc::new(config), chain, not_after })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    if chain.is_empty() { Err("it holds no PEM block called CERTIFICATE".to_owned()) } else { Ok(chain) }
}

fn client_verifier(
    clients: Clients<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(clients.ca)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| error.to_string())?;
    Ok(if clients.names.is_empty() { verifier } else { Arc::new(NamedClients::new(verifier, clients.names)) })
}

/// The time of day for TLS, which rustls by itself would not survive before 1970: a machine whose clock was never set
/// has to answer all the same.
#[derive(Debug)]
struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix_time(SystemTime::now()))
    }
}

fn unix_time(now: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// Files in the layout that `cascade-guard certs` and `kubernetes.io/tls` Secrets use.
pub fn files_in(folder: &Path) -> TlsFiles {
    TlsFiles { cert: folder.join("tls.crt"), key: folder.join("tls.key"), client_ca: None, client_names: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_before_1970_is_its_beginning() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(86_400);
        assert_eq!(unix_time(before).as_secs(), 0);
        assert_eq!(unix_time(SystemTime::UNIX_EPOCH + Duration::from_secs(7)).as_secs(), 7);
    }
}
