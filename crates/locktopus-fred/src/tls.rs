//! TLS settings as a rustls configuration.

use std::path::Path;
use std::sync::Arc;

use fred::types::config::{TlsConfig, TlsConnector};
use locktopus_protocol::TlsOptions;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::ConnectError;

/// The settings in fred's terms.
pub(crate) fn config(options: &TlsOptions) -> Result<TlsConfig, ConnectError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|failure| ConnectError::Tls(failure.to_string()))?;
    let builder = if options.danger_accept_invalid_certs {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAll(provider)))
    } else {
        builder.with_root_certificates(roots(options.ca_file.as_deref())?)
    };
    let config = match &options.client_identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates(&identity.cert_file)?;
            let key = PrivateKeyDer::from_pem_file(&identity.key_file)
                .map_err(|failure| unusable(&identity.key_file, &failure))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|failure| unusable(&identity.cert_file, &failure))?
        }
    };
    Ok(TlsConfig::from(TlsConnector::from(config)))
}

fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, ConnectError> {
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
            return Err(ConnectError::Tls(problem.to_owned()));
        }
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|failure| unusable(path, &failure))?;
    if certificates.is_empty() {
        return Err(ConnectError::Tls(format!(
            "{} holds no PEM certificate",
            path.display()
        )));
    }
    Ok(certificates)
}

fn unusable(path: &Path, failure: &dyn std::fmt::Display) -> ConnectError {
    ConnectError::Tls(format!("cannot use {}: {failure}", path.display()))
}

/// Believes every certificate, for `danger_accept_invalid_certs`.
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
