//! A certificate authority of our own, for development, tests, the demo, and clusters without cert-manager.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};

/// Why a certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// No name was given.
    #[error("a serving certificate needs at least one name; clients do not look at anything else")]
    NoNames,
    /// A name cannot stand in a certificate.
    #[error("`{name}` is no DNS name and no IP address")]
    BadName {
        /// The name.
        name: String,
    },
    /// An authority that was made before cannot be used.
    #[error("the authority cannot be used: {0}")]
    BadAuthority(String),
    /// The certificate library refuses.
    #[error("the certificate cannot be made: {0}")]
    Library(#[from] rcgen::Error),
}

/// Clocks of API servers and of this machine may differ by so much.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// A certificate authority.
#[derive(Debug)]
pub struct Authority {
    /// Its certificate, PEM. This is the `caBundle` of a webhook configuration.
    pub cert_pem: String,
    /// Its private key, PEM.
    pub key_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its private key, PEM.
#[derive(Debug)]
pub struct Issued {
    /// The certificate.
    pub cert_pem: String,
    /// The private key.
    pub key_pem: String,
}

impl Authority {
    /// Makes an authority that is valid for so long.
    ///
    /// # Errors
    /// When the certificate library refuses.
    pub fn new(valid: Duration) -> Result<Self, IssueError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = called("cascade-guard CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        validity(&mut params, valid);
        let cert_pem = params.self_signed(&key)?.pem();
        let key_pem = key.serialize_pem();
        Ok(Self { cert_pem, key_pem, issuer: Issuer::new(params, key) })
    }

    /// Takes up an authority that was made before.
    ///
    /// # Errors
    /// When certificate or key cannot be read, or do not belong together.
    pub fn from_pem(cert_pem: &str, key_pem: &str) -> Result<Self, IssueError> {
        let bad = |what: &str, error: rcgen::Error| IssueError::BadAuthority(format!("{what}: {error}"));
        let key = KeyPair::from_pem(key_pem).map_err(|error| bad("its private key", error))?;
        let public = key.subject_public_key_info();
        let (_, pem) = x509_parser::pem::parse_x509_pem(cert_pem.as_bytes())
            .map_err(|error| IssueError::BadAuthority(format!("its certificate: {error}")))?;
        let certificate =
            pem.parse_x509().map_err(|error| IssueError::BadAuthority(format!("its certificate: {error}")))?;
        if certificate.public_key().raw != public.as_slice() {
            return Err(IssueError::BadAuthority("its certificate and its private key do not belong together".into()));
        }
        let issuer = Issuer::from_ca_cert_pem(cert_pem, key).map_err(|error| bad("its certificate", error))?;
        Ok(Self { cert_pem: cert_pem.to_owned(), key_pem: key_pem.to_owned(), issuer })
    }

    /// Makes a serving certificate for DNS names and IP addresses.
    ///
    /// # Errors
    /// When there is no name, or one that cannot stand in a certificate.
    pub fn serving(&self, names: &[String], valid: Duration) -> Result<Issued, IssueError> {
        let first = names.first().ok_or(IssueError::NoNames)?;
        // The API server compares names with the certificate's, and Go takes no others than these.
        let allowed = |name: &&String| {
            name.parse::<std::net::IpAddr>().is_ok()
                || (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.*_".contains(&b)))
        };
        if let Some(name) = names.iter().find(|name| !allowed(name)) {
            return Err(IssueError::BadName { name: name.clone() });
        }
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = called(first);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params, valid)
    }

    /// Makes a client certificate for a user, as an API server may present it to a webhook.
    ///
    /// # Errors
    /// When the certificate library refuses.
    pub fn client(&self, user: &str, valid: Duration) -> Result<Issued, IssueError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = called(user);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, valid)
    }

    fn sign(&self, mut params: CertificateParams, valid: Duration) -> Result<Issued, IssueError> {
        validity(&mut params, valid);
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let cert_pem = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { cert_pem, key_pem: key.serialize_pem() })
    }
}

fn called(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    // A common name has 64 characters at most (RFC 5280, ub-common-name); nothing depends on it.
    names.push(DnType::CommonName, name.chars().take(64).collect::<String>());
    names
}

fn validity(params: &mut CertificateParams, valid: Duration) {
    let now = SystemTime::now();
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + valid).into();
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn authority_can_be_taken_up_again() {
        let made = Authority::new(DAY).unwrap();
        let again = Authority::from_pem(&made.cert_pem, &made.key_pem).unwrap();
        let issued = again.serving(&["guard.example".to_owned(), "127.0.0.1".to_owned()], DAY).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(issued.cert_pem.as_bytes()).unwrap();
        let (_, ca) = x509_parser::pem::parse_x509_pem(made.cert_pem.as_bytes()).unwrap();
        let (leaf, ca) = (pem.parse_x509().unwrap(), ca.parse_x509().unwrap());
        assert_eq!(leaf.issuer(), ca.subject());
        assert_eq!(leaf.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 2);
    }

    #[test]
    fn foreign_key_is_no_authority() {
        let (one, other) = (Authority::new(DAY).unwrap(), Authority::new(DAY).unwrap());
        assert!(matches!(Authority::from_pem(&one.cert_pem, &other.key_pem), Err(IssueError::BadAuthority(_))));
    }

    #[test]
    fn names_are_checked() {
        let authority = Authority::new(DAY).unwrap();
        assert!(matches!(authority.serving(&[], DAY), Err(IssueError::NoNames)));
        let bad = authority.serving(&["no good".to_owned()], DAY);
        assert!(matches!(bad, Err(IssueError::BadName { .. })), "{bad:?}");
    }
}
