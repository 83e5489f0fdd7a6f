//! Why an adapter could not connect, and the options that no adapter accepts.

use tokio::runtime::Handle;

use crate::client::ClientError;
use crate::client::options::{ConnectOptions, HostPort, Servers};

/// Why no client could be built.
///
/// No variant contains a password. Servers are named by host and port, files by path.
///
/// ```
/// use locktopus_protocol::ConnectError;
///
/// fn say(error: ConnectError) {
///     match error {
///         ConnectError::Unreachable { .. } => println!("later, perhaps: {error}"),
///         _ => println!("never, with these options: {error}"),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An option contradicts another one, or this client does not support it.
    #[error("option `{option}`: {problem}")]
    InvalidOption {
        /// The field of [`ConnectOptions`].
        option: &'static str,
        /// The problem, and what to do about it.
        problem: String,
    },
    /// An option asks for something that this build excludes.
    #[error("option `{option}`: not built in; enable the cargo feature `{feature}` of {library}")]
    NotBuiltIn {
        /// The field of [`ConnectOptions`].
        option: &'static str,
        /// The feature to enable.
        feature: &'static str,
        /// The crate that has it.
        library: &'static str,
    },
    /// The TLS settings are unusable. Names the certificate or key file.
    #[error("TLS: {0}")]
    Tls(String),
    /// The client was asked for outside a tokio runtime, which drives the connections.
    #[error("called outside a tokio runtime, which drives the connections")]
    NoRuntime,
    /// No server was reachable, or none accepted the login.
    #[error("cannot connect to {target}: {reason}")]
    Unreachable {
        /// The deployment, by kind and addresses.
        target: String,
        /// The error for the last address tried.
        reason: String,
    },
}

impl ConnectError {
    /// An option that cannot be used.
    ///
    /// ```
    /// use locktopus_protocol::ConnectError;
    ///
    /// let error = ConnectError::invalid("database", "a cluster has only database 0");
    /// assert_eq!(error.to_string(), "option `database`: a cluster has only database 0");
    /// ```
    #[must_use]
    pub fn invalid(option: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::InvalidOption { option, problem }
    }

    /// The servers in the options could not be reached, because of this error.
    ///
    /// ```
    /// use locktopus_protocol::{ClientError, ConnectError, ConnectOptions, HostPort, Servers};
    ///
    /// let server = HostPort { host: "localhost".to_owned(), port: 6379 };
    /// let options = ConnectOptions::new(Servers::Standalone(server));
    /// let refused = ClientError::NotSent("refused".to_owned());
    /// let error = ConnectError::unreachable(&options, &refused);
    /// assert_eq!(error.to_string(), "cannot connect to the server localhost:6379: refused");
    /// ```
    #[must_use]
    pub fn unreachable(options: &ConnectOptions, error: &ClientError) -> Self {
        let target = match &options.servers {
            Servers::Standalone(server) => format!("the server {server}"),
            Servers::Sentinel {
                sentinels,
                master_name,
            } => {
                let sentinels = listed(sentinels);
                format!("the primary {master_name:?} through sentinels {sentinels}")
            }
            Servers::Cluster(seeds) => format!("the cluster of {}", listed(seeds)),
        };
        let reason = match error {
            ClientError::NotSent(why) => why.clone(),
            other => other.to_string(),
        };
        // The target names a single server already.
        let known = match &options.servers {
            Servers::Standalone(server) => format!("cannot connect to {server}: "),
            Servers::Sentinel { .. } | Servers::Cluster(_) => "cannot connect to ".to_owned(),
        };
        let reason = reason.strip_prefix(&known).unwrap_or(&reason).to_owned();
        Self::Unreachable { target, reason }
    }

    /// Checks the options, as every adapter does before it connects.
    ///
    /// ```
    /// use locktopus_protocol::{ConnectError, ConnectOptions, HostPort, Servers};
    ///
    /// let server = HostPort { host: "localhost".to_owned(), port: 6379 };
    /// let options = ConnectOptions::new(Servers::Standalone(server));
    /// assert_eq!(ConnectError::check(&options), Err(ConnectError::NoRuntime));
    /// ```
    ///
    /// # Errors
    ///
    /// Fails for options that no client can use, and outside a tokio runtime.
    pub fn check(options: &ConnectOptions) -> Result<(), Self> {
        Handle::try_current().map_err(|_| Self::NoRuntime)?;
        let name = options.client_name.as_deref().unwrap_or_default();
        let named = ConnectOptions::check_client_name(name);
        named.map_err(|problem| Self::invalid("client_name", problem))?;
        let (option, problem) = match &options.servers {
            Servers::Sentinel { sentinels, .. } if sentinels.is_empty() => {
                ("servers", "no sentinel is given: name at least one")
            }
            Servers::Cluster(seeds) if seeds.is_empty() => {
                ("servers", "no cluster node is given: name at least one")
            }
            Servers::Cluster(_) if options.database != 0 => {
                ("database", "a cluster has only database 0")
            }
            Servers::Standalone(_) | Servers::Sentinel { .. } | Servers::Cluster(_) => {
                return Ok(());
            }
        };
        Err(Self::invalid(option, problem))
    }
}

fn listed(servers: &[HostPort]) -> String {
    let names: Vec<_> = servers.iter().map(ToString::to_string).collect();
    names.join(", ")
}
