//! TLS settings in fred's terms; without the feature `tls`, the refusal to connect.

use std::net::SocketAddr;

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

/// An address of a server, with the name that its certificate must be for.
pub(crate) fn server(tls: Option<&Tls>, node: &HostPort, address: SocketAddr) -> Server {
    // With brackets around an IPv6 address: fred puts the port behind it and reads the whole.
    let shown = address.to_string();
    let host = shown.rsplit_once(':').map_or(&*shown, |(host, _)| host);
    match tls {
        Some(tls) => tls.server(node, host, address.port()),
        None => Server::new(host, address.port()),
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

        pub(super) fn server(&self, node: &HostPort, host: &str, port: u16) -> Server {
            let name = self.server_name.as_ref().unwrap_or(&node.host);
            Server::new_with_tls(host, port, Some(name.clone()))
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

        pub(super) fn server(&self, _: &HostPort, _: &str, _: u16) -> Server {
            match *self {}
        }

        pub(super) fn encrypt(&self, _: &mut Config) {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs as _;

    use super::*;

    /// fred puts host and port together and has the system read them.
    #[test]
    fn fred_reads_every_address_as_it_is() {
        let node = HostPort {
            host: "several.example".to_owned(),
            port: 6379,
        };
        for address in ["127.0.0.1:7", "[::1]:7", "[fe80::1%2]:7"] {
            let address: SocketAddr = address.parse().unwrap();
            let server = server(None, &node, address);
            let read = format!("{}:{}", server.host, server.port).to_socket_addrs();
            assert_eq!(read.unwrap().collect::<Vec<_>>(), [address]);
        }
    }
}
