//! TLS settings for fred. Without the feature `tls`, refuses to connect.

use std::net::SocketAddr;

use fred::types::config::{Config, Server};
use locktopus_protocol::{ConnectError, HostPort, TlsOptions};

#[cfg(feature = "tls")]
pub(crate) use enabled::Tls;

#[cfg(not(feature = "tls"))]
pub(crate) use disabled::Tls;

/// Loads the files in the options, once for all connections.
pub(crate) async fn load(options: Option<&TlsOptions>) -> Result<Option<Tls>, ConnectError> {
    match options {
        Some(options) => Tls::load(options).await.map(Some),
        None => Ok(None),
    }
}

/// A server's address, with the name that its certificate must have.
pub(crate) fn server(tls: Option<&Tls>, node: &HostPort, address: SocketAddr) -> Server {
    // Keep the brackets of an IPv6 address: fred appends the port and parses the whole.
    let shown = address.to_string();
    let host = shown.rsplit_once(':').map_or(&*shown, |(host, _)| host);
    match tls {
        Some(tls) => tls.server(node, host, address.port()),
        None => Server::new(host, address.port()),
    }
}

/// Enables encryption, if `tls` is given.
pub(crate) fn encrypt(config: &mut Config, tls: Option<&Tls>) {
    if let Some(tls) = tls {
        tls.encrypt(config);
    }
}

#[cfg(feature = "tls")]
mod enabled {
    use fred::types::config::{Config, Server, TlsConfig};
    use locktopus_protocol::{ConnectError, HostPort, TlsOptions};

    /// The settings of every encrypted connection.
    #[derive(Clone)]
    pub(crate) struct Tls {
        config: TlsConfig,
        /// The name to verify instead of the host.
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
    use locktopus_protocol::{ConnectError, HostPort, TlsOptions};

    /// Cannot be created: [`Tls::load`] fails.
    #[derive(Clone)]
    pub(crate) enum Tls {}

    impl Tls {
        #[expect(clippy::unused_async, reason = "the other build reads files here")]
        pub(super) async fn load(_: &TlsOptions) -> Result<Self, ConnectError> {
            Err(ConnectError::NotBuiltIn {
                option: "tls",
                feature: "tls",
                library: "locktopus-fred",
            })
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

    /// fred joins host and port and lets the system parse them.
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
