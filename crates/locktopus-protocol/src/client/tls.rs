//! TLS settings as a rustls configuration, for every adapter.
//!
//! The cryptography provider is passed on explicitly. A process has one default provider, and that is the program's to
//! choose: a library that installed one would make the program's own choice fail, or take its place.

use std::path::Path;
use std::sync::Arc;

pub use rustls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use tokio_rustls::TlsConnector;

use crate::client::options::TlsOptions;
pub use crate::client::prepared_tls::PreparedTls;

/// Why there is no TLS configuration: one line for humans, which names files and shows nothing of what is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

/// What makes the handshakes: the program's own, or one for the files that `options` name.
///
/// # Errors
///
/// [`TlsError`] if a file cannot be used, the server name is none, or the system has no trusted authorities and none are
/// named.
///
/// # Cancel safety
///
/// Cancel safe: files are only read.
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

/// Reads the files and puts a configuration together: with the program's provider if it has installed one, for a program
/// that is bound to a certain cryptography, and with ring otherwise. Installs nothing.
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
                .map_err(|failure| unusable(&identity.key_file, &failure))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|failure| unusable(&identity.cert_file, &failure))
        }
    }
}

fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|failure| unusable(path, &failure))?;
        }
    } else {
        // One broken file among the system's does not make the others useless.
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
        .map_err(|failure| unusable(path, &failure))?;
    if certificates.is_empty() {
        return Err(TlsError(format!(
            "{} holds no PEM certificate",
            path.display()
        )));
    }
    Ok(certificates)
}

fn unusable(path: &Path, failure: &dyn std::fmt::Display) -> TlsError {
    TlsError(format!("cannot use {}: {failure}", path.display()))
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
