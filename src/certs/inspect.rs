//! What a certificate says of itself.

use jiff::Timestamp;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

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

/// Whom a certificate (DER) names: its common names, then its DNS names.
///
/// # Errors
/// When the bytes are no certificate.
pub fn names(der: &[u8]) -> Result<Vec<String>, InspectError> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|error| InspectError(error.to_string()))?;
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok().map(str::to_owned));
    let mut names: Vec<String> = common.collect();
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    names.extend(alternatives.iter().flat_map(|extension| &extension.value.general_names).filter_map(
        |name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        },
    ));
    Ok(names)
}
