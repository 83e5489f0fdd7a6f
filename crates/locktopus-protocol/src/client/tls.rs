//! TLS settings as a rustls configuration, for every adapter.
//!
//! The cryptography provider is passed explicitly. A process has one default provider, and the
//! program chooses it: a library that installed one would break or replace the program's choice.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use rustls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use tokio_rustls::TlsConnector;

use crate::client::options::{PEM_MARK, TlsOptions};
pub use crate::client::prepared_tls::PreparedTls;

/// Why there is no TLS configuration: one line for humans, which names files but shows nothing of
/// their contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

/// Builds the connector for handshakes: the program's own, or one from the files in `options`.
///
/// # Errors
///
/// [`TlsError`] if a file cannot be used, the server name is invalid, or neither the options nor
/// the system name a trusted authority.
///
/// # Cancel safety
///
/// Cancel safe, because it only reads files.
pub async fn connector(options: &TlsOptions) -> Result<TlsConnector, TlsError> {
    if let Some(name) = &options.server_name
        && let Err(error) = ServerName::try_from(name.as_str())
    {
        return Err(TlsError(format!("server name {name:?}: {error}")));
    }
    match &options.prepared {
        Some(prepared) => Ok(prepared.connector().clone()),
        None => Ok(Arc::new(client_config(options).await?).into()),
    }
}

/// Reads the files and builds a configuration. It uses the provider that the program installed,
/// since a program may be bound to a certain cryptography, otherwise ring. It installs nothing.
async fn client_config(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let options = options.clone();
    let read = tokio::task::spawn_blocking(move || read(&options)).await;
    read.unwrap_or_else(|stopped| Err(TlsError(stopped.to_string())))
}

fn read(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let provider = CryptoProvider::get_default()
        .map_or_else(|| Arc::new(ring::default_provider()), Arc::clone);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|failure| TlsError(failure.to_string()))?;
    let builder = if options.danger_accept_invalid_certs {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAll(provider)))
    } else {
        builder.with_root_certificates(roots(options.ca_file.as_deref())?)
    };
    match &options.client_identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let chain = certificates(&identity.cert_file)?;
            let key = PrivateKeyDer::from_pem_file(&identity.key_file)
                .map_err(|failure| TlsError(format!("{KEY_FILE}: {}", reason(&failure))))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|failure| unusable(&identity.cert_file, failure))
        }
    }
}

fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|failure| unusable(path, failure))?;
        }
    } else {
        // One broken system file does not make the others useless.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let problem = "the system has no trusted authorities: name a CA file";
            return Err(TlsError(problem.to_owned()));
        }
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|failure| unusable(path, reason(&failure)))?;
    if certificates.is_empty() {
        return Err(unusable(path, NO_PEM));
    }
    Ok(certificates)
}

/// The URL may have the key itself in place of its file name, so the name is never shown.
const KEY_FILE: &str =
    "cannot use the file that key= (or sentinel_key=) names as the client's private key";

const NO_PEM: &str = "it holds no PEM of the kind that is needed";

/// Names the file, unless PEM text stands in place of its name.
fn unusable(path: &Path, failure: impl fmt::Display) -> TlsError {
    let name = path.to_string_lossy();
    if name.contains(PEM_MARK) {
        let advice = "there is PEM text where the name of a file should be: write the text into a file, and name that";
        return TlsError(advice.to_owned());
    }
    TlsError(format!("cannot use {name}: {failure}"))
}

/// Omits lines of the file: the parser takes a key without line breaks for a "marker".
fn reason(failure: &pem::Error) -> String {
    match failure {
        pem::Error::Io(failure) => failure.to_string(),
        pem::Error::NoItemsFound => NO_PEM.to_owned(),
        _ => "its PEM is damaged".to_owned(),
    }
}

/// Accepts every certificate, for `danger_accept_invalid_certs`.
#[derive(Debug)]
struct AcceptAll(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::client::options::ClientIdentity;

    /// The key as each file name and as each file's text, with and without line breaks.
    #[tokio::test]
    async fn no_message_shows_a_key() {
        let folder = std::env::temp_dir().join(format!("locktopus-tls-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = "-----BEGIN PRIVATE KEY-----\nSEKRITSEKRIT\n-----END PRIVATE KEY-----\n";
        let cert = key.replace("PRIVATE KEY", "CERTIFICATE");
        for text in [key, &cert, "SEKRIT", "!SEKRIT!"] {
            for text in [
                text.to_owned(),
                text.replace('\n', ""),
                format!("{key}{text}"),
            ] {
                let file = folder.join("file.pem");
                std::fs::write(&file, &text).unwrap();
                let good = folder.join("cert.pem");
                std::fs::write(&good, &cert).unwrap();
                for path in [file.clone(), PathBuf::from(&text)] {
                    let both = |cert_file: &PathBuf, key_file: &PathBuf| {
                        let (cert_file, key_file) = (cert_file.clone(), key_file.clone());
                        TlsOptions::of_files(
                            None,
                            Some(ClientIdentity {
                                cert_file,
                                key_file,
                            }),
                        )
                    };
                    let is_name = path != file && !text.contains(PEM_MARK);
                    let others = [
                        TlsOptions::of_files(Some(path.clone()), None),
                        both(&path, &good).insecure(true),
                    ];
                    // Only PEM text can be recognised as not a certificate's file name.
                    let options = [both(&good, &path).insecure(true)].into_iter();
                    for options in options.chain(others.into_iter().filter(|_| !is_name)) {
                        let failed = connector(&options).await.map(drop).unwrap_err();
                        let shown = format!("{failed} {failed:?} {options:?}");
                        assert!(!shown.contains("SEKRIT"), "{text:?}: {shown}");
                    }
                }
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
