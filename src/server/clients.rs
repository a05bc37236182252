//! Who may connect where clients are authenticated.
//!
//! An authority of a cluster issues certificates to many: every kubelet has one. So a certificate of the right authority is
//! not enough, it has to bear one of the names that were given.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};

use crate::{certs::names, telemetry::Repeats};

/// So many different strangers are told apart in the log.
const STRANGERS: usize = 16;

/// Verifies certificates as `inner` does, and then their names.
#[derive(Debug)]
pub(super) struct NamedClients {
    inner: Arc<dyn ClientCertVerifier>,
    allowed: Vec<String>,
    strangers: Repeats<String, STRANGERS>,
}

impl NamedClients {
    /// Of these names one has to stand in a certificate, as its common name or as one of its DNS names.
    pub(super) fn new(inner: Arc<dyn ClientCertVerifier>, allowed: &[String]) -> Self {
        Self { inner, allowed: allowed.to_vec(), strangers: Repeats::default() }
    }

    fn bears_a_name(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let borne = names(certificate).map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if borne.iter().any(|name| self.allowed.contains(name)) {
            return Ok(());
        }
        let borne = borne.join(", ");
        // What is beyond the number that is told apart is not told at all: whoever holds many certificates could fill the log.
        if self.strangers.has_room_for(&borne)
            && let Some(repeats) = self.strangers.admit(&borne, std::time::Instant::now())
        {
            tracing::warn!(
                names = borne,
                repeats,
                "a client was turned away: its authority is the right one, but --client-name names nobody of these names"
            );
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }
}

impl ClientCertVerifier for NamedClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        self.bears_a_name(end_entity)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
