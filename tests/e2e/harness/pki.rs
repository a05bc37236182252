//! Keys and certificates of the test cluster.

use std::{fs, path::Path};

use anyhow::Result;
use kube::config::AuthInfo;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn der(&self) -> Vec<u8> {
        self.0.der().to_vec()
    }

    /// A certificate for a server on this machine.
    pub fn server(&self, names: &[&str]) -> Result<Pair> {
        let names: Vec<String> =
            ["localhost", "127.0.0.1"].iter().chain(names).map(|name| (*name).to_owned()).collect();
        self.sign(CertificateParams::new(names)?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// The same, valid for another day only.
    pub fn short_lived_server(&self) -> Result<Pair> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24);
        params.not_after =
            rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(u64::try_from(end.as_second())?);
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate by which the API server knows `user`, a member of `group`.
    pub fn client(&self, user: &str, group: &str) -> Result<Pair> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl Pair {
    /// Writes `NAME.crt` and `NAME.key`.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        fs::write(folder.join(format!("{name}.crt")), &self.certificate)?;
        fs::write(folder.join(format!("{name}.key")), &self.key)?;
        Ok(())
    }

    /// As a client's credentials.
    pub fn auth(&self) -> AuthInfo {
        AuthInfo {
            client_certificate_data: Some(base64(&self.certificate)),
            client_key_data: Some(base64(&self.key).into()),
            ..AuthInfo::default()
        }
    }
}

/// Base64 of a PEM file, as a kubeconfig and a `caBundle` want it.
pub fn base64(text: &str) -> String {
    // k8s-openapi writes bytes as base64, so there is no need for another library.
    let bytes = k8s_openapi::ByteString(text.as_bytes().to_vec());
    serde_json::to_value(bytes).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
