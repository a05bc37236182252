//! What a certificate says of itself.

use jiff::Timestamp;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Why a certificate cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("it is no X.509 certificate: {0}")]
pub struct InspectError(String);

/// When a certificate (DER) expires.
///
/// # Errors
/// When the bytes are no certificate.
pub fn not_after(der: &[u8]) -> Result<Timestamp, InspectError> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|error| InspectError(error.to_string()))?;
    Timestamp::from_second(certificate.validity().not_after.timestamp())
        .map_err(|error| InspectError(format!("its end is out of range: {error}")))
}
