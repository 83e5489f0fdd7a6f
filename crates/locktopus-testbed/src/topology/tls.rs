//! Certificates for the TLS topology, made anew for every deployment.
//!
//! A second authority that signed nothing is made as well, for tests which must see a refusal.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::topology::error::TopologyError;

/// PEM texts of one deployment.
#[derive(Clone)]
pub(crate) struct Certificates {
    authority: String,
    stranger: String,
    server: String,
    server_key: String,
}

impl Certificates {
    /// Makes an authority, a certificate for the loopback names, and an unrelated authority.
    pub(crate) fn make() -> Result<Self, TopologyError> {
        Self::try_make().map_err(|error| TopologyError::Certificates {
            message: error.to_string(),
        })
    }

    fn try_make() -> Result<Self, rcgen::Error> {
        let (authority, issuer) = make_authority("Locktopus test authority")?;
        let (stranger, _) = make_authority("Locktopus untrusted authority")?;
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "Locktopus test server");
        params.use_authority_key_identifier_extension = true;
        params.key_usages.push(KeyUsagePurpose::DigitalSignature);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate()?;
        Ok(Self {
            authority,
            stranger,
            server: params.signed_by(&key, &issuer)?.pem(),
            server_key: key.serialize_pem(),
        })
    }

    /// Server option, file name and content, for every file the server reads.
    pub(crate) fn server_files(&self) -> [(&'static str, &'static str, &str); 3] {
        [
            ("tls-ca-cert-file", "ca.pem", &self.authority),
            ("tls-cert-file", "server.pem", &self.server),
            ("tls-key-file", "server.key", &self.server_key),
        ]
    }

    /// Writes what clients need into `dir`.
    pub(crate) fn write_client_files(&self, dir: &Path) -> Result<TlsFiles, TopologyError> {
        let files = TlsFiles {
            ca: dir.join("ca.pem"),
            untrusted_ca: dir.join("untrusted-ca.pem"),
        };
        for (path, text) in [
            (&files.ca, &self.authority),
            (&files.untrusted_ca, &self.stranger),
        ] {
            std::fs::write(path, text).map_err(TopologyError::io("write", path))?;
        }
        Ok(files)
    }
}

/// Files that clients of the TLS topology need.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The authority that signed the server's certificate.
    pub ca: PathBuf,
    /// An authority that did not: a client trusting only this one must refuse the server.
    pub untrusted_ca: PathBuf,
}

fn make_authority(name: &str) -> Result<(String, Issuer<'static, KeyPair>), rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    let key = KeyPair::generate()?;
    let text = params.self_signed(&key)?.pem();
    Ok((text, Issuer::new(params, key)))
}
