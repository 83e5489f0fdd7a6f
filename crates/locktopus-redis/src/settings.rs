//! Reads connection options from a program's redis-rs configuration.
//!
//! Only addresses, logins, databases and TLS are taken. Timeouts and TCP settings are our own,
//! because locks need different ones than a cache. So is the protocol: pushed messages need RESP3.

use locktopus_protocol::{
    ConnectOptions, Credentials, HostPort, ReadSettings, Secret, SentinelTls, Servers,
    SettingsError, TlsOptions,
};
use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError, TlsMode,
};

/// TLS settings, if enabled, with an error if some of them cannot be read.
type Tls = Option<(TlsOptions, Option<SettingsError>)>;

/// Reads the server of a [`redis::Client`], from its
/// [`get_connection_info`](redis::Client::get_connection_info).
///
/// # Errors
///
/// [`SettingsError`] for a setting that lock connections do not support.
///
/// ```
/// use locktopus_redis::redis::Client;
///
/// let client = Client::open("redis://app:s3cret@db:6380/3")?;
/// let read = locktopus_redis::from_connection_info(client.get_connection_info())?;
/// assert_eq!(read.options.database, 3);
/// assert!(!format!("{read:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_connection_info(info: &ConnectionInfo) -> Result<ReadSettings, SettingsError> {
    let (server, tls) = address(info.addr())?;
    settings(Servers::Standalone(server), info.redis_settings(), tls)
}

/// Reads a cluster from the nodes you gave to
/// [`redis::cluster::ClusterClient::builder`](https://docs.rs/redis), which does not return them.
/// As in redis-rs, all nodes must have the same login and TLS settings.
///
/// ```
/// let read = locktopus_redis::from_cluster_nodes(["redis://app:s3cret@a:7000", "redis://app:s3cret@b:7000"])?;
/// assert!(!format!("{read:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SettingsError`] if there is no node, if nodes differ, or for a setting that lock connections
/// do not support.
pub fn from_cluster_nodes<T: IntoConnectionInfo>(
    nodes: impl IntoIterator<Item = T>,
) -> Result<ReadSettings, SettingsError> {
    let nodes = Nodes::read("the nodes of the cluster", nodes)?;
    settings(Servers::Cluster(nodes.servers), &nodes.login, nodes.tls)
}

/// Reads the primary that these sentinels know as `master_name`. Pass what you gave to
/// [`redis::sentinel::SentinelClientBuilder`](https://docs.rs/redis), which does not return it.
/// `tls` and `login` are for the primary; `sentinels` contain their own.
///
/// ```
/// use locktopus_redis::redis::RedisConnectionInfo;
///
/// let login = RedisConnectionInfo::default().set_db(3);
/// let read = locktopus_redis::from_sentinels(["redis://a:26379"], "mymaster", None, &login)?;
/// assert_eq!(read.options.database, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SettingsError`] if there is no sentinel, if sentinels differ, or for a setting that lock
/// connections do not support.
pub fn from_sentinels<T: IntoConnectionInfo>(
    sentinels: impl IntoIterator<Item = T>,
    master_name: impl Into<String>,
    tls: Option<TlsMode>,
    login: &RedisConnectionInfo,
) -> Result<ReadSettings, SettingsError> {
    let nodes = Nodes::read("the sentinels", sentinels)?;
    let servers = Servers::Sentinel {
        sentinels: nodes.servers,
        master_name: master_name.into(),
    };
    let tls = tls.map(|mode| {
        (
            TlsOptions::default().insecure(mode == TlsMode::Insecure),
            None,
        )
    });
    let mut read = settings(servers, login, tls)?;
    read.options.sentinel_credentials = credentials(&nodes.login);
    read.options.sentinel_tls = match nodes.tls {
        None => SentinelTls::Off,
        Some((_, Some(hidden))) => return Err(hidden),
        Some((own, None)) => SentinelTls::Own(own),
    };
    Ok(read)
}

/// Several servers with one login.
struct Nodes {
    servers: Vec<HostPort>,
    login: RedisConnectionInfo,
    tls: Tls,
}

impl Nodes {
    fn read<T: IntoConnectionInfo>(
        which: &'static str,
        nodes: impl IntoIterator<Item = T>,
    ) -> Result<Self, SettingsError> {
        let mut all: Option<Self> = None;
        for node in nodes {
            let node = node
                .into_connection_info()
                .map_err(|error| unreadable(which, &error))?;
            let (server, tls) = address(node.addr())?;
            if server.socket_path().is_some() {
                let problem = "are unix sockets, but their peers are found by host and port";
                return Err(SettingsError::new(which, problem));
            }
            let login = node.redis_settings();
            let Some(all) = &mut all else {
                all = Some(Self {
                    servers: vec![server],
                    login: login.clone(),
                    tls,
                });
                continue;
            };
            if credentials(login) != credentials(&all.login) {
                return Err(SettingsError::new(
                    which,
                    "have different logins; one is used for all",
                ));
            }
            if tls != all.tls {
                let problem = "have different TLS settings; one is used for all";
                return Err(SettingsError::new(which, problem));
            }
            all.servers.push(server);
        }
        all.ok_or_else(|| SettingsError::new(which, "are none: name at least one"))
    }
}

/// Reports only the kind of error: the message of redis-rs may quote the URL.
fn unreadable(which: &'static str, error: &RedisError) -> SettingsError {
    let problem = format!("cannot be read: {}", error.category());
    SettingsError::new(which, problem)
}

fn address(addr: &ConnectionAddr) -> Result<(HostPort, Tls), SettingsError> {
    match addr {
        ConnectionAddr::Tcp(host, port) => Ok((server(host, *port), None)),
        ConnectionAddr::TcpTls {
            host,
            port,
            insecure,
            tls_params,
        } => {
            let tls = encryption(*insecure, tls_params.is_some());
            Ok((server(host, *port), Some(tls)))
        }
        ConnectionAddr::Unix(path) => {
            let path = path.to_str().filter(|path| path.starts_with('/'));
            let path = path.ok_or_else(|| {
                SettingsError::new("the unix socket", "needs an absolute path in UTF-8")
            })?;
            Ok((HostPort::unix(path), None))
        }
        _ => Err(SettingsError::new(
            "the address",
            "is of a kind that this version does not know",
        )),
    }
}

fn encryption(insecure: bool, has_certificates: bool) -> (TlsOptions, Option<SettingsError>) {
    let hidden = has_certificates.then(|| {
        let problem = "cannot be read back from it; give the same files as options (ca, cert, key), or a rustls configuration";
        SettingsError::new("the certificates of the redis-rs client", problem)
    });
    (TlsOptions::default().insecure(insecure), hidden)
}

fn server(host: &str, port: u16) -> HostPort {
    HostPort {
        host: host.to_owned(),
        port,
    }
}

fn settings(
    servers: Servers,
    login: &RedisConnectionInfo,
    tls: Tls,
) -> Result<ReadSettings, SettingsError> {
    let database = u32::try_from(login.db()).map_err(|_| {
        SettingsError::new(
            "the database",
            format!("is {}, not a number from 0", login.db()),
        )
    })?;
    let (tls, hidden_tls) = match tls {
        Some((tls, hidden)) => (Some(tls), hidden),
        None => (None, None),
    };
    Ok(ReadSettings {
        options: ConnectOptions {
            credentials: credentials(login),
            database,
            tls,
            ..ConnectOptions::new(servers)
        },
        hidden_tls,
    })
}

fn credentials(login: &RedisConnectionInfo) -> Option<Credentials> {
    // As in redis-rs, a user without a password does not log in.
    login.password().map(|password| Credentials {
        username: login.username().map(ToOwned::to_owned),
        password: Secret::new(password),
    })
}

#[cfg(test)]
mod tests;
