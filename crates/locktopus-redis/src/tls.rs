//! Certificates and the cryptography provider; without the feature `tls`, the refusal to connect.

#[cfg(feature = "tls")]
pub(crate) use enabled::Tls;

#[cfg(not(feature = "tls"))]
pub(crate) use disabled::Tls;

#[cfg(feature = "tls")]
mod enabled {
    use std::path::Path;

    use locktopus_protocol::TlsOptions;
    use redis::{Client, ClientTlsConfig, ConnectionInfo, RedisResult, TlsCertificates};

    use crate::error::ConnectError;

    /// What every encrypted connection needs, read once.
    #[derive(Clone)]
    pub(crate) struct Tls {
        certificates: TlsCertificates,
        accepts_anything: bool,
    }

    impl Tls {
        /// Reads the files and makes sure that rustls has a cryptography provider.
        pub(crate) async fn load(options: &TlsOptions) -> Result<Self, ConnectError> {
            // redis-rs picks no provider; rustls panics on first use if there is none. Another
            // crate of the same program may have installed its own, which is just as good.
            if rustls::crypto::CryptoProvider::get_default().is_none() {
                // Fails only if another thread was faster.
                let _ = rustls::crypto::ring::default_provider().install_default();
            }
            let root_cert = match &options.ca_file {
                Some(path) => Some(read("certificate authorities", path).await?),
                None => None,
            };
            let client_tls = match &options.client_identity {
                Some(identity) => Some(ClientTlsConfig {
                    client_cert: read("client certificate", &identity.cert_file).await?,
                    client_key: read("client key", &identity.key_file).await?,
                }),
                None => None,
            };
            Ok(Self {
                certificates: TlsCertificates {
                    client_tls,
                    root_cert,
                },
                accepts_anything: options.danger_accept_invalid_certs,
            })
        }

        pub(crate) fn accepts_anything(&self) -> bool {
            self.accepts_anything
        }

        pub(crate) fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
            Client::build_with_tls(info, self.certificates.clone())
        }
    }

    async fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, ConnectError> {
        let owned = path.to_owned();
        let read = tokio::task::spawn_blocking(move || std::fs::read(owned)).await;
        let problem = match read {
            Ok(Ok(bytes)) => return Ok(bytes),
            Ok(Err(error)) => error.to_string(),
            Err(stopped) => stopped.to_string(),
        };
        Err(ConnectError::TlsFile {
            what,
            path: path.to_owned(),
            problem,
        })
    }
}

#[cfg(not(feature = "tls"))]
mod disabled {
    use locktopus_protocol::TlsOptions;
    use redis::{Client, ConnectionInfo, RedisResult};

    use crate::error::ConnectError;

    /// Never exists: [`Tls::load`] refuses.
    #[derive(Clone)]
    pub(crate) enum Tls {}

    impl Tls {
        #[expect(clippy::unused_async, reason = "the other build reads files here")]
        pub(crate) async fn load(_: &TlsOptions) -> Result<Self, ConnectError> {
            Err(ConnectError::TlsNotBuiltIn)
        }

        pub(crate) fn accepts_anything(&self) -> bool {
            match *self {}
        }

        pub(crate) fn client(&self, _: ConnectionInfo) -> RedisResult<Client> {
            match *self {}
        }
    }
}
