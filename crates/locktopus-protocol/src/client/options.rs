//! Connection settings that every adapter understands. No client type appears here.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::client::credentials::CredentialsProvider;

/// Connecting takes several exchanges and the computation of two handshakes, however short the
/// timeout of calls is.
const SHORTEST_CONNECT: Duration = Duration::from_secs(2);

/// The addresses of the servers, and how to talk to them.
///
/// The facade builds this from a URL. Adapters only read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Addresses for the kind of deployment.
    pub servers: Servers,
    /// Login for the data nodes.
    pub credentials: Option<Credentials>,
    /// Supplies the login for each connection to a data node, instead of `credentials`.
    pub credentials_provider: Option<CredentialsProvider>,
    /// Login for the sentinels, which have their own users.
    pub sentinel_credentials: Option<Credentials>,
    /// Supplies the login for each connection to a sentinel, instead of `sentinel_credentials`.
    pub sentinel_credentials_provider: Option<CredentialsProvider>,
    /// Logical database; must be 0 in a cluster.
    pub database: u32,
    /// TLS settings; `None` means plain TCP. Redirects and sentinel answers never fall back to
    /// plain TCP.
    pub tls: Option<TlsOptions>,
    /// TLS settings for the sentinels.
    pub sentinel_tls: SentinelTls,
    /// Who routes commands to the nodes of a cluster.
    pub cluster_router: ClusterRouter,
    /// Longest time for one connection: credentials from their provider, TCP and TLS handshake,
    /// login, database and client name. Together with `command_timeout` it determines the limits of
    /// other steps: see [`Budget`](crate::Budget).
    pub connect_timeout: Duration,
    /// Longest time for one command. The backend enforces it; clients set theirs a little longer.
    pub command_timeout: Duration,
    /// `CLIENT SETNAME` value, so that operators can identify connections. See
    /// [`check_client_name`](Self::check_client_name).
    pub client_name: Option<String>,
    /// Start even if no server answers. Until one does, commands fail as not sent.
    pub lazy: bool,
}

impl ConnectOptions {
    /// Settings with the defaults: connect 2 s, command 1 s, database 0, no login, no TLS, not
    /// lazy.
    #[must_use]
    pub fn new(servers: Servers) -> Self {
        let command_timeout = Duration::from_secs(1);
        Self {
            servers,
            credentials: None,
            credentials_provider: None,
            sentinel_credentials: None,
            sentinel_credentials_provider: None,
            database: 0,
            tls: None,
            sentinel_tls: SentinelTls::AsServers,
            cluster_router: ClusterRouter::Own,
            connect_timeout: Self::usual_connect_timeout(command_timeout),
            command_timeout,
            client_name: None,
            lazy: false,
        }
    }

    /// The default time for a connection: the command timeout, but at least two seconds.
    #[must_use]
    pub fn usual_connect_timeout(command_timeout: Duration) -> Duration {
        command_timeout.max(SHORTEST_CONNECT)
    }

    /// Checks a [`client_name`](Self::client_name): servers accept visible ASCII without spaces.
    ///
    /// ```
    /// use locktopus_protocol::ConnectOptions;
    ///
    /// assert!(ConnectOptions::check_client_name("billing-7").is_ok());
    /// assert!(ConnectOptions::check_client_name("billing 7").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// The rule that the name breaks.
    pub fn check_client_name(name: &str) -> Result<(), &'static str> {
        if name.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(())
        } else {
            Err("must be visible ASCII characters without spaces, as CLIENT SETNAME wants it")
        }
    }
}

/// The servers' addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Servers {
    /// One server.
    Standalone(HostPort),
    /// Sentinels, and the name they have for the primary.
    Sentinel {
        /// The sentinels' addresses.
        sentinels: Vec<HostPort>,
        /// The name of the monitored primary, for example `mymaster`.
        master_name: String,
    },
    /// Some nodes of a cluster; the rest is discovered.
    Cluster(Vec<HostPort>),
}

/// A host name or address with a port, or a unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// Name, IPv4 or IPv6 address (without brackets). If it begins with `/`, the path of a unix
    /// socket.
    pub host: String,
    /// TCP port; 0 for a unix socket.
    pub port: u16,
}

impl HostPort {
    /// The unix socket with this absolute path.
    #[must_use]
    pub fn unix(path: impl Into<String>) -> Self {
        Self {
            host: path.into(),
            port: 0,
        }
    }

    /// The path, if this is a unix socket.
    #[must_use]
    pub fn socket_path(&self) -> Option<&str> {
        self.host.starts_with('/').then_some(self.host.as_str())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.socket_path() {
            f.write_str(path)
        } else if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A user and password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// ACL user; `None` logs in as `default`.
    pub username: Option<String>,
    /// The password.
    pub password: Secret,
}

impl Credentials {
    /// A user with a password.
    ///
    /// ```
    /// use locktopus_protocol::Credentials;
    ///
    /// let login = Credentials::new("app", "s3cret");
    /// assert!(!format!("{login:?}").contains("s3cret"));
    /// ```
    #[must_use]
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            username: Some(username.into()),
            password: Secret::new(password),
        }
    }
}

/// A string that never shows itself in `Debug` output.
///
/// ```
/// use locktopus_protocol::Secret;
///
/// assert_eq!(format!("{:?}", Secret::new("s3cret")), "***");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    ///
    /// ```
    /// use locktopus_protocol::{Credentials, Secret};
    ///
    /// let default_user = Credentials { username: None, password: Secret::new("s3cret") };
    /// # drop(default_user);
    /// ```
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The secret itself, for handing it to a client library.
    ///
    /// ```
    /// use locktopus_protocol::Secret;
    ///
    /// assert_eq!(Secret::new("s3cret").expose(), "s3cret");
    /// ```
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// TLS settings. `Debug` shows no file names, because some people put a key where its file name
/// should be.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// PEM file with the authorities to trust; `None` trusts the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM files with a client certificate and its key, for servers that ask for one.
    pub client_identity: Option<ClientIdentity>,
    /// Accept any certificate. The name stands out in `Debug` output and in a URL.
    pub danger_accept_invalid_certs: bool,
    /// The name that certificates must match, also sent as SNI; `None` uses the host that the
    /// client connects to. One name for all servers, for servers reached by addresses that their
    /// certificates lack.
    pub server_name: Option<String>,
    /// A configuration that the program built. It overrides the files and
    /// `danger_accept_invalid_certs`.
    #[cfg(feature = "tls")]
    pub prepared: Option<crate::client::prepared_tls::PreparedTls>,
}

impl TlsOptions {
    /// Uses these files, and defaults for the rest.
    #[must_use]
    pub fn of_files(ca_file: Option<PathBuf>, client_identity: Option<ClientIdentity>) -> Self {
        Self {
            ca_file,
            client_identity,
            ..Self::default()
        }
    }

    /// The same options, with `insecure` turning certificate checks off.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.danger_accept_invalid_certs = insecure;
        self
    }
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let insecure = &self.danger_accept_invalid_certs;
        f.debug_struct("TlsOptions")
            .field("server_name", &self.server_name)
            .field("danger_accept_invalid_certs", insecure)
            .finish_non_exhaustive()
    }
}

/// TLS settings for the sentinels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SentinelTls {
    /// The same as for the data servers.
    #[default]
    AsServers,
    /// No TLS: plain TCP.
    Off,
    /// With these settings.
    Own(TlsOptions),
}

/// Who routes commands to the nodes of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClusterRouter {
    /// The adapter, with its own connection to each primary.
    #[default]
    Own,
    /// The client library's own cluster client, with its retries turned off. Not every adapter has
    /// one.
    Client,
}

/// Settings read from a client that the program configured itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSettings {
    /// Addresses, logins, database and TLS.
    pub options: ConnectOptions,
    /// Why the TLS settings, which exist, could not be read. The program must supply them in
    /// another way.
    pub hidden_tls: Option<SettingsError>,
}

/// Why the settings of a program's own client cannot be used. Shows no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {problem}")]
#[non_exhaustive]
pub struct SettingsError {
    /// The setting, by the client library's name.
    pub setting: &'static str,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

impl SettingsError {
    /// An error about this setting.
    #[must_use]
    pub fn new(setting: &'static str, problem: impl Into<String>) -> Self {
        Self {
            setting,
            problem: problem.into(),
        }
    }
}

/// The start of PEM text. Some people put the text where its file name should be.
#[cfg(feature = "tls")]
pub(crate) const PEM_MARK: &str = "-----BEGIN";

/// A client certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// PEM file with the certificate chain.
    pub cert_file: PathBuf,
    /// PEM file with the private key.
    pub key_file: PathBuf,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_shown_by_its_path() {
        let socket = HostPort::unix("/run/redis.sock");
        assert_eq!(socket.to_string(), "/run/redis.sock");
        assert_eq!(socket.socket_path(), Some("/run/redis.sock"));
        let port = 6379;
        for (host, shown) in [("::1", "[::1]:6379"), ("h", "h:6379")] {
            let host = host.to_owned();
            let server = HostPort { host, port };
            assert_eq!(
                (server.to_string().as_str(), server.socket_path()),
                (shown, None)
            );
        }
    }

    #[test]
    fn whoever_waits_longer_for_an_answer_waits_longer_for_a_connection() {
        let patient = Duration::from_secs(3);
        assert_eq!(ConnectOptions::usual_connect_timeout(patient), patient);
        let hasty = Duration::from_millis(50);
        assert_eq!(
            ConnectOptions::usual_connect_timeout(hasty),
            SHORTEST_CONNECT
        );
        let usual = ConnectOptions::usual_connect_timeout;
        assert_eq!(usual(Duration::ZERO), SHORTEST_CONNECT);
        assert_eq!(usual(Duration::MAX), Duration::MAX);
    }
}
