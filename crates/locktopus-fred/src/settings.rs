//! Reads connection options from a program's fred configuration.
//!
//! Only addresses, logins, the database and TLS are taken. Timeouts, retries, TCP settings and the
//! protocol are our own, because locks need different ones than a cache.

use fred::interfaces::ClientLike;
use fred::types::Builder;
use fred::types::config::{Config, Server, ServerConfig};
use locktopus_protocol::{
    ConnectOptions, Credentials, HostPort, ReadSettings, Secret, SentinelTls, Servers,
    SettingsError, TlsOptions,
};

/// Reads the servers of a [`Config`]: standalone, sentinels or a cluster. Credentials from a
/// provider that fred calls for each connection are not available.
///
/// # Errors
///
/// [`SettingsError`] for a setting that lock connections do not support.
///
/// ```
/// use locktopus_fred::fred::types::config::Config;
///
/// let config = Config::from_url("redis-sentinel://app:s3cret@a:26379/1?sentinelServiceName=mymaster")?;
/// let read = locktopus_fred::from_config(&config)?;
/// assert_eq!(read.options.database, 1);
/// assert!(!format!("{read:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_config(config: &Config) -> Result<ReadSettings, SettingsError> {
    let (tls, hidden_tls) = encryption(config)?;
    let mut options = ConnectOptions {
        credentials: credentials(config.username.as_ref(), config.password.as_ref()),
        database: config.database.unwrap_or_default().into(),
        tls,
        ..ConnectOptions::new(servers(&config.server)?)
    };
    if let ServerConfig::Sentinel {
        username, password, ..
    } = &config.server
    {
        options.sentinel_credentials = credentials(username.as_ref(), password.as_ref());
    }
    if let Some(name) = server_name(&config.server)?
        && let Some(tls) = &mut options.tls
    {
        let named = TlsOptions {
            server_name: Some(name),
            ..tls.clone()
        };
        match &options.servers {
            // fred verifies this name only on the sentinels, because those are its given servers.
            Servers::Sentinel { .. } => options.sentinel_tls = SentinelTls::Own(named),
            _ => *tls = named,
        }
    }
    Ok(ReadSettings {
        options,
        hidden_tls,
    })
}

/// Like [`from_config`], for the configuration that a [`Builder`] has so far.
///
/// ```
/// use locktopus_fred::fred::types::{Builder, config::Config};
///
/// let builder = Builder::from_config(Config::from_url("redis://app:s3cret@db:6379/3")?);
/// let read = locktopus_fred::from_builder(&builder)?;
/// assert_eq!(read.options.database, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SettingsError`] if it has no configuration, or one that lock connections do not support.
pub fn from_builder(builder: &Builder) -> Result<ReadSettings, SettingsError> {
    let config = builder.get_config();
    from_config(
        config.ok_or_else(|| SettingsError::new("the builder", "has no configuration yet"))?,
    )
}

/// Like [`from_config`], for a client or a pool.
///
/// ```
/// use locktopus_fred::fred::types::{Builder, config::Config};
///
/// let client = Builder::from_config(Config::from_url("redis://app:s3cret@db:6379/3")?).build()?;
/// let read = locktopus_fred::from_client(&client)?;
/// assert_eq!(read.options.database, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SettingsError`] for a setting that lock connections do not support.
pub fn from_client(client: &impl ClientLike) -> Result<ReadSettings, SettingsError> {
    from_config(&client.client_config())
}

fn servers(config: &ServerConfig) -> Result<Servers, SettingsError> {
    Ok(match config {
        ServerConfig::Centralized { server } => Servers::Standalone(address(server)),
        ServerConfig::Clustered { hosts, .. } => Servers::Cluster(addresses(hosts)),
        ServerConfig::Sentinel {
            hosts,
            service_name,
            ..
        } => Servers::Sentinel {
            sentinels: addresses(hosts),
            master_name: service_name.clone(),
        },
        ServerConfig::Unix { path } => {
            let path = path.to_str().filter(|path| path.starts_with('/'));
            let path = path.ok_or_else(|| {
                SettingsError::new("the unix socket", "needs an absolute path in UTF-8")
            })?;
            Servers::Standalone(HostPort::unix(path))
        }
    })
}

fn addresses(servers: &[Server]) -> Vec<HostPort> {
    servers.iter().map(address).collect()
}

fn address(server: &Server) -> HostPort {
    HostPort {
        host: server.host.to_string(),
        port: server.port,
    }
}

fn credentials(username: Option<&String>, password: Option<&String>) -> Option<Credentials> {
    // As in fred, a user without a password does not log in.
    password.map(|password| Credentials {
        username: username.cloned(),
        password: Secret::new(password),
    })
}

type Encryption = (Option<TlsOptions>, Option<SettingsError>);

#[cfg(feature = "tls")]
fn encryption(config: &Config) -> Result<Encryption, SettingsError> {
    use fred::types::config::{TlsConnector, TlsHostMapping};

    let Some(tls) = &config.tls else {
        return Ok((None, None));
    };
    if !matches!(tls.hostnames, TlsHostMapping::None) {
        let problem = "maps addresses to names, which connections for locks do not; give tls_server_name as an option";
        return Err(SettingsError::new("the TLS configuration of fred", problem));
    }
    #[allow(
        irrefutable_let_patterns,
        reason = "a program that turns on native-tls in fred adds another variant"
    )]
    let TlsConnector::Rustls(connector) = &tls.connector else {
        let problem = "is of native-tls, and connections for locks use rustls; give its files as options (ca, cert, key), or a \
                       rustls configuration";
        let hidden = SettingsError::new("the TLS configuration of fred", problem);
        return Ok((Some(TlsOptions::default()), Some(hidden)));
    };
    let options = TlsOptions {
        prepared: Some(connector.clone().into()),
        ..TlsOptions::default()
    };
    Ok((Some(options), None))
}

#[cfg(not(feature = "tls"))]
#[expect(clippy::unnecessary_wraps, reason = "the other build finds fault")]
fn encryption(config: &Config) -> Result<Encryption, SettingsError> {
    // Connecting then fails, instead of using plain text.
    Ok((config.uses_tls().then(TlsOptions::default), None))
}

/// The name that the certificates of all servers must have.
#[cfg(feature = "tls")]
fn server_name(config: &ServerConfig) -> Result<Option<String>, SettingsError> {
    let servers = config.hosts();
    let names: Vec<_> = servers
        .iter()
        .map(|server| &server.tls_server_name)
        .collect();
    if names.windows(2).any(|two| two[0] != two[1]) {
        let problem = "differ between the servers; one is used for all";
        return Err(SettingsError::new("the TLS server names", problem));
    }
    let name = names.first().copied().cloned().flatten();
    Ok(name.map(|name| name.to_string()))
}

#[cfg(not(feature = "tls"))]
#[expect(clippy::unnecessary_wraps, reason = "the other build finds fault")]
fn server_name(_: &ServerConfig) -> Result<Option<String>, SettingsError> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, port: u16) -> HostPort {
        HostPort {
            host: host.to_owned(),
            port,
        }
    }

    fn app(password: &str) -> Option<Credentials> {
        Some(Credentials {
            username: Some("app".to_owned()),
            password: Secret::new(password),
        })
    }

    #[test]
    fn every_kind_of_deployment() {
        let nodes = vec![server("a", 1), server("b", 2)];
        for (url, servers, database) in [
            (
                "redis://app:hunter2@a:1/3",
                Servers::Standalone(server("a", 1)),
                3,
            ),
            (
                "redis-cluster://app:hunter2@a:1?node=b:2",
                Servers::Cluster(nodes.clone()),
                0,
            ),
            (
                "redis-sentinel://app:hunter2@a:1/2?node=b:2&sentinelServiceName=m",
                Servers::Sentinel {
                    sentinels: nodes.clone(),
                    master_name: "m".to_owned(),
                },
                2,
            ),
            (
                "redis+unix://app:hunter2@x/run/redis.sock",
                Servers::Standalone(HostPort::unix("/run/redis.sock")),
                0,
            ),
        ] {
            let mut read = from_config(&Config::from_url(url).unwrap()).unwrap();
            // fred does not keep the order of a URL, which does not matter.
            if let Servers::Cluster(nodes)
            | Servers::Sentinel {
                sentinels: nodes, ..
            } = &mut read.options.servers
            {
                nodes.sort_by_key(|node| node.port);
            }
            let expected = ConnectOptions {
                credentials: app("hunter2"),
                database,
                ..ConnectOptions::new(servers)
            };
            assert_eq!(read.options, expected, "{url}");
            assert!(!format!("{read:?}").contains("hunter2"), "{url}");
        }
    }

    #[test]
    fn sentinels_have_a_login_of_their_own() {
        let config = Config {
            username: Some("app".to_owned()),
            password: Some("hunter2".to_owned()),
            server: ServerConfig::Sentinel {
                hosts: vec![Server::new("s", 1)],
                service_name: "m".to_owned(),
                username: Some("app".to_owned()),
                password: Some("hunter3".to_owned()),
            },
            ..Config::default()
        };
        let read = from_config(&config).unwrap();
        assert_eq!(read.options.credentials, app("hunter2"));
        assert_eq!(read.options.sentinel_credentials, app("hunter3"));
    }

    #[test]
    fn builders_and_pools_have_a_configuration_too() {
        let config = Config::from_url("redis://:hunter2@a:1/3").unwrap();
        let direct = from_config(&config).unwrap();
        let builder = Builder::from_config(config);
        assert_eq!(from_builder(&builder).unwrap(), direct);
        let pool = builder.build_pool(2).unwrap();
        assert_eq!(from_client(&pool).unwrap(), direct);
        assert_eq!(from_client(pool.next()).unwrap(), direct);
        let error = from_builder(&Builder::default()).unwrap_err().to_string();
        assert!(error.contains("no configuration"), "{error}");
    }

    #[cfg(feature = "tls")]
    fn trusting_nobody() -> fred::types::config::TlsConfig {
        use locktopus_protocol::tls::rustls::{ClientConfig, RootCertStore, crypto::ring};

        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        fred::types::config::TlsConnector::from(config).into()
    }

    #[cfg(feature = "tls")]
    #[test]
    fn a_name_of_sentinels_is_not_one_of_servers() {
        let mut config = Config {
            server: ServerConfig::Sentinel {
                hosts: vec![Server::new_with_tls("s", 1, Some("watch".to_owned()))],
                service_name: "m".to_owned(),
                username: None,
                password: None,
            },
            tls: Some(trusting_nobody()),
            ..Config::default()
        };
        let read = from_config(&config).unwrap();
        assert_eq!(read.options.tls.unwrap().server_name, None);
        let SentinelTls::Own(own) = read.options.sentinel_tls else {
            panic!("{:?}", read.options.sentinel_tls)
        };
        assert_eq!(own.server_name.as_deref(), Some("watch"));
        assert!(
            own.prepared.is_some(),
            "the program's own, as for the servers"
        );
        config.server = ServerConfig::Sentinel {
            hosts: vec![Server::new("s", 1)],
            service_name: "m".to_owned(),
            username: None,
            password: None,
        };
        let read = from_config(&config).unwrap();
        assert_eq!(read.options.sentinel_tls, SentinelTls::AsServers);
    }

    #[cfg(feature = "tls")]
    #[test]
    fn one_name_for_all_servers() {
        let named = |host: &str, name: &str| Server::new_with_tls(host, 1, Some(name.to_owned()));
        let mut config = Config {
            server: ServerConfig::Clustered {
                hosts: vec![named("a", "locks"), named("b", "locks")],
                policy: fred::types::config::ClusterDiscoveryPolicy::default(),
            },
            ..Config::default()
        };
        assert_eq!(
            server_name(&config.server).unwrap().as_deref(),
            Some("locks")
        );
        if let ServerConfig::Clustered { hosts, .. } = &mut config.server {
            hosts.push(Server::new("c", 1));
        }
        let error = from_config(&config).unwrap_err().to_string();
        assert!(error.contains("TLS server names differ"), "{error}");
    }
}
