//! TLS settings in fred's terms; without the feature `tls`, the refusal to connect.

use fred::types::config::{Config, Server};
use locktopus_protocol::{HostPort, TlsOptions};

use crate::connection::error::ConnectError;

#[cfg(feature = "tls")]
pub(crate) use enabled::Tls;

#[cfg(not(feature = "tls"))]
pub(crate) use disabled::Tls;

/// Reads what the options name, once for all connections.
pub(crate) async fn load(options: Option<&TlsOptions>) -> Result<Option<Tls>, ConnectError> {
    match options {
        Some(options) => Tls::load(options).await.map(Some),
        None => Ok(None),
    }
}

/// The address of a server, with the name that its certificate must be for.
pub(crate) fn server(tls: Option<&Tls>, node: &HostPort) -> Server {
    match tls {
        Some(tls) => tls.server(node),
        None => Server::new(node.host.as_str(), node.port),
    }
}

/// Connections by this configuration are encrypted, if `tls` is given.
pub(crate) fn encrypt(config: &mut Config, tls: Option<&Tls>) {
    if let Some(tls) = tls {
        tls.encrypt(config);
    }
}

#[cfg(feature = "tls")]
mod enabled {
    use fred::types::config::{Config, Server, TlsConfig};
    use locktopus_protocol::{HostPort, TlsOptions};

    use crate::connection::error::ConnectError;

    /// What every encrypted connection needs.
    #[derive(Clone)]
    pub(crate) struct Tls {
        config: TlsConfig,
        /// Instead of the host that is connected to.
        server_name: Option<String>,
    }

    impl Tls {
        pub(super) async fn load(options: &TlsOptions) -> Result<Self, ConnectError> {
            let connector = locktopus_protocol::tls::connector(options)
                .await
                .map_err(|failure| ConnectError::Tls(failure.to_string()))?;
            Ok(Self {
                config: TlsConfig::from(connector),
                server_name: options.server_name.clone(),
            })
        }

        pub(super) fn server(&self, node: &HostPort) -> Server {
            Server::new_with_tls(node.host.as_str(), node.port, self.server_name.clone())
        }

        pub(super) fn encrypt(&self, config: &mut Config) {
            config.tls = Some(self.config.clone());
        }
    }
}

#[cfg(not(feature = "tls"))]
mod disabled {
    use fred::types::config::{Config, Server};
    use locktopus_protocol::{HostPort, TlsOptions};

    use crate::connection::error::ConnectError;

    /// Never exists: [`Tls::load`] refuses.
    #[derive(Clone)]
    pub(crate) enum Tls {}

    impl Tls {
        #[expect(clippy::unused_async, reason = "the other build reads files here")]
        pub(super) async fn load(_: &TlsOptions) -> Result<Self, ConnectError> {
            Err(ConnectError::TlsNotBuilt)
        }

        pub(super) fn server(&self, _: &HostPort) -> Server {
            match *self {}
        }

        pub(super) fn encrypt(&self, _: &mut Config) {
            match *self {}
        }
    }
}
