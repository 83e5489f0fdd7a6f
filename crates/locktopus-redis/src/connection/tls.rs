//! Encrypts connections. Without the feature `tls`, refuses to.

#[cfg(feature = "tls")]
pub(crate) use enabled::Tls;

#[cfg(not(feature = "tls"))]
pub(crate) use disabled::Tls;

#[cfg(feature = "tls")]
mod enabled {
    use std::io;

    use locktopus_protocol::{ConnectError, TlsOptions};
    use rustls::pki_types::ServerName;
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;

    use crate::connection::stream::Stream;

    /// The settings of every encrypted connection, loaded once.
    #[derive(Clone)]
    pub(crate) struct Tls {
        connector: TlsConnector,
        /// The name to verify instead of the host.
        server_name: Option<String>,
    }

    impl Tls {
        pub(crate) async fn load(options: &TlsOptions) -> Result<Self, ConnectError> {
            let connector = locktopus_protocol::tls::connector(options)
                .await
                .map_err(|failure| ConnectError::Tls(failure.to_string()))?;
            Ok(Self {
                connector,
                server_name: options.server_name.clone(),
            })
        }

        /// Shakes hands. Verifies that the certificate is for `host`, or for the configured name.
        pub(crate) async fn wrap(&self, host: &str, stream: TcpStream) -> io::Result<Stream> {
            let host = self.server_name.as_deref().unwrap_or(host);
            let name = ServerName::try_from(host.to_owned())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let encrypted = self.connector.connect(name, stream).await?;
            Ok(Box::new(encrypted))
        }
    }
}

#[cfg(not(feature = "tls"))]
mod disabled {
    use std::io;

    use locktopus_protocol::{ConnectError, TlsOptions};
    use tokio::net::TcpStream;

    use crate::connection::stream::Stream;

    /// Cannot be created: [`Tls::load`] fails.
    #[derive(Clone)]
    pub(crate) enum Tls {}

    impl Tls {
        #[expect(clippy::unused_async, reason = "the other build reads files here")]
        pub(crate) async fn load(_: &TlsOptions) -> Result<Self, ConnectError> {
            Err(ConnectError::NotBuiltIn {
                option: "tls",
                feature: "tls",
                library: "locktopus-redis",
            })
        }

        #[expect(clippy::unused_async, reason = "the other build shakes hands here")]
        pub(crate) async fn wrap(&self, _: &str, _: TcpStream) -> io::Result<Stream> {
            match *self {}
        }
    }
}
