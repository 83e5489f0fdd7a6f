//! Backends on servers: turns the parts of a URL into options of a client.

use std::sync::Arc;

use locktopus_core::DynBackend;
use locktopus_protocol::{
    BackendOptions, ClientIdentity, ClusterRouter, ConnectOptions, Credentials, HostPort,
    PubSubMode, RedisBackend, RedisClient, Secret, SentinelTls, Servers, TlsOptions,
};

use crate::connect_error::ConnectError;
#[cfg(feature = "cluster-async")]
use crate::url::OwnConnection;
use crate::url::{
    Authority, BackendUrl, ClientChoice, ConnectWhen, PubSub, Routing, SentinelTlsSettings,
    TlsSettings, Topology,
};

pub(super) async fn open(
    url: &BackendUrl,
    tls: bool,
    authority: &Authority,
    topology: &Topology,
) -> Result<DynBackend, ConnectError> {
    Ok(Arc::new(open_backend(url, tls, authority, topology).await?))
}

/// As [`open`], with the concrete type, which knows its server.
pub(super) async fn open_backend(
    url: &BackendUrl,
    tls: bool,
    authority: &Authority,
    topology: &Topology,
) -> Result<RedisBackend, ConnectError> {
    let client = open_client(url, tls, authority, topology).await?;
    let options = BackendOptions {
        call_timeout: url.options.timeout,
        token_retention: url.options.token_retention,
        pubsub: match url.options.pubsub {
            PubSub::Auto => PubSubMode::Auto,
            PubSub::Plain => PubSubMode::Plain,
            PubSub::Sharded => PubSubMode::Sharded,
        },
        safety: url.options.safety,
        probe_prefix: url.options.namespace.clone(),
    };
    RedisBackend::new(client, options)
        .await
        .map_err(|source| ConnectError::Backend {
            url: url.to_string(),
            source,
        })
}

pub(super) async fn open_client(
    url: &BackendUrl,
    tls: bool,
    authority: &Authority,
    topology: &Topology,
) -> Result<Arc<dyn RedisClient>, ConnectError> {
    let options = connect_options(url, tls, authority, topology);
    let tls = options.tls.is_some() || matches!(options.sentinel_tls, SentinelTls::Own(_));
    if options.cluster_router == ClusterRouter::Client && cfg!(not(feature = "cluster-async")) {
        return Err(ConnectError::FeatureMissing {
            url: url.to_string(),
            feature: "cluster-async",
        });
    }
    if tls && cfg!(not(feature = "tls")) {
        return Err(ConnectError::FeatureMissing {
            url: url.to_string(),
            feature: "tls",
        });
    }
    client(url, &options).await
}

pub(crate) fn connect_options(
    url: &BackendUrl,
    tls: bool,
    authority: &Authority,
    topology: &Topology,
) -> ConnectOptions {
    let options = &url.options;
    let mut hosts = authority.hosts.iter().map(|(host, port)| HostPort {
        host: host.clone(),
        port: *port,
    });
    let (servers, database) = match topology {
        Topology::Standalone { database } => {
            let host = hosts.next().expect("the parser gives at least one address");
            (Servers::Standalone(host), *database)
        }
        Topology::Sentinel {
            master_name,
            database,
        } => {
            let master_name = master_name.clone();
            (
                Servers::Sentinel {
                    sentinels: hosts.collect(),
                    master_name,
                },
                *database,
            )
        }
        Topology::Cluster => (Servers::Cluster(hosts.collect()), 0),
    };
    let login = |username: &Option<String>, password: &Option<String>| {
        password.as_ref().map(|password| Credentials {
            username: username.clone(),
            password: Secret::new(password.clone()),
        })
    };
    let read = url.read.as_deref().map(|read| &read.options);
    let read_login = |login: fn(&ConnectOptions) -> &Option<Credentials>| login(read?).clone();
    ConnectOptions {
        credentials: login(&authority.username, &authority.password)
            .or_else(|| read_login(|read| &read.credentials)),
        credentials_provider: url.providers.servers.clone(),
        sentinel_credentials_provider: url.providers.sentinels.clone(),
        sentinel_credentials: login(&options.sentinel_user, &options.sentinel_password)
            .or_else(|| read_login(|read| &read.sentinel_credentials)),
        database,
        tls: tls.then(|| tls_options(&options.tls, read.and_then(|read| read.tls.as_ref()))),
        sentinel_tls: sentinel_tls(&options.sentinel_tls, read),
        cluster_router: match options.router {
            Routing::Own => ClusterRouter::Own,
            Routing::Client => ClusterRouter::Client,
        },
        connect_timeout: options
            .connect_timeout
            .unwrap_or_else(|| ConnectOptions::usual_connect_timeout(options.timeout)),
        command_timeout: options.timeout,
        client_name: options.client_name.clone(),
        lazy: options.connect_when == ConnectWhen::Lazy,
        ..ConnectOptions::new(servers)
    }
}

/// The TLS options of the URL. The program's own client fills in what they leave open.
fn tls_options(said: &TlsSettings, read: Option<&TlsOptions>) -> TlsOptions {
    let mut tls = match read {
        Some(read) if !said.says_whom_to_trust() => read.clone(),
        _ => {
            let identity = said.cert.clone().zip(said.key.clone());
            let identity = identity.map(|(cert_file, key_file)| ClientIdentity {
                cert_file,
                key_file,
            });
            let mut tls = TlsOptions::of_files(said.ca.clone(), identity)
                .insecure(said.danger_accept_invalid_certs);
            tls.server_name = read.and_then(|read| read.server_name.clone());
            tls
        }
    };
    if said.server_name.is_some() {
        tls.server_name.clone_from(&said.server_name);
    }
    tls
}

fn sentinel_tls(said: &SentinelTlsSettings, read: Option<&ConnectOptions>) -> SentinelTls {
    match (said.wanted, read) {
        (Some(false), _) => SentinelTls::Off,
        _ if said.differ() => SentinelTls::Own(tls_options(&said.own, None)),
        (_, Some(read)) => read.sentinel_tls.clone(),
        (_, None) => SentinelTls::AsServers,
    }
}

async fn client(
    url: &BackendUrl,
    options: &ConnectOptions,
) -> Result<Arc<dyn RedisClient>, ConnectError> {
    // Features never choose: see the table in `locktopus::url`.
    match url.options.client.unwrap_or(ClientChoice::Redis) {
        #[cfg(feature = "redis")]
        ClientChoice::Redis => match redis_client(url, options).await {
            Ok(client) => Ok(Arc::new(client)),
            Err(error) => Err(unreachable(url, error)),
        },
        #[cfg(feature = "fred")]
        ClientChoice::Fred => match locktopus_fred::connect(options).await {
            Ok(client) => Ok(Arc::new(client)),
            Err(error) => Err(unreachable(url, error)),
        },
        #[cfg(not(feature = "redis"))]
        ClientChoice::Redis if url.options.client.is_none() => Err(ConnectError::ClientMissing {
            url: url.to_string(),
        }),
        #[cfg(not(all(feature = "redis", feature = "fred")))]
        missing => {
            let feature = match missing {
                ClientChoice::Redis => "redis",
                ClientChoice::Fred => "fred",
            };
            Err(ConnectError::FeatureMissing {
                url: url.to_string(),
                feature,
            })
        }
    }
}

#[cfg(feature = "redis")]
async fn redis_client(
    url: &BackendUrl,
    options: &ConnectOptions,
) -> Result<locktopus_redis::RedisRsClient, locktopus_redis::ConnectError> {
    #[cfg(feature = "cluster-async")]
    if let Some(OwnConnection(connection)) = &url.connection {
        let connection = connection.as_ref().clone();
        return locktopus_redis::connect_through(options, connection).await;
    }
    #[cfg(not(feature = "cluster-async"))]
    let _ = url;
    locktopus_redis::connect(options).await
}

fn unreachable(
    url: &BackendUrl,
    error: impl std::error::Error + Send + Sync + 'static,
) -> ConnectError {
    ConnectError::Unreachable {
        url: url.to_string(),
        source: Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client that a URL chooses, without a server.
    async fn client_of(options: &str) -> Result<&'static str, ConnectError> {
        let url = format!("redis://127.0.0.1:1?connect=lazy&checks=off{options}");
        let backend = crate::connect_backend(&url).await?;
        let name = backend.info().name;
        backend.close().await;
        Ok(name)
    }

    /// Features add up over a program's dependencies. With any set of them, a URL means one client,
    /// or is an error.
    #[tokio::test]
    async fn the_url_chooses_the_client_and_features_never_do() {
        for (option, is_on, name) in [
            ("", cfg!(feature = "redis"), "redis-rs"),
            ("&client=redis", cfg!(feature = "redis"), "redis-rs"),
            ("&client=fred", cfg!(feature = "fred"), "fred"),
        ] {
            match client_of(option).await {
                Ok(found) => assert_eq!(found, name),
                Err(ConnectError::ClientMissing { .. }) => assert!(!is_on && option.is_empty()),
                Err(ConnectError::FeatureMissing { .. }) => assert!(!is_on && !option.is_empty()),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
