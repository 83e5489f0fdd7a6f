//! Connects a client from options.

use std::sync::Arc;

use locktopus_protocol::sentinels::{Sentinels, Target};
use locktopus_protocol::{
    Budget, ClusterRouter, ConnectError, ConnectOptions, SentinelTls, Servers, TlsOptions,
};

use crate::client::RedisRsClient;
use crate::cluster::{Cluster, Router};
use crate::connection::dial::Dialer;
use crate::connection::sentinel::SentinelConnections;
use crate::connection::tls::Tls;
use crate::single::Single;
use crate::topology::Topology;

/// Connects to the servers in `options`.
///
/// Returns once the primary has accepted the login. For a cluster, it returns once a node has
/// listed the primaries. With [`ConnectOptions::lazy`] it also returns if no server answers.
///
/// # Errors
///
/// [`ConnectError::InvalidOption`], [`ConnectError::NotBuiltIn`] and [`ConnectError::Tls`] for
/// options that cannot be used, [`ConnectError::Unreachable`] if no server answers properly,
/// [`ConnectError::NoRuntime`] outside a tokio runtime.
///
/// # Cancel safety
///
/// Dropping the future drops the connections made so far.
///
/// # Examples
///
/// ```no_run
/// use locktopus_protocol::{ConnectOptions, HostPort, RedisClient, Route, Servers};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = HostPort { host: "127.0.0.1".to_owned(), port: 6379 };
/// let options = ConnectOptions::new(Servers::Standalone(server));
/// let client: locktopus_redis::RedisRsClient = locktopus_redis::connect(&options).await?;
/// client.command(Route::Any, &[b"PING"]).await?;
/// # Ok(())
/// # }
/// ```
pub async fn connect(options: &ConnectOptions) -> Result<RedisRsClient, ConnectError> {
    ConnectError::check(options)?;
    let router = match (&options.servers, options.cluster_router) {
        (Servers::Cluster(seeds), ClusterRouter::Client) => {
            Some(Router::new(options, seeds, Budget::of(options))?)
        }
        _ => None,
    };
    build(options, router).await
}

/// Like [`connect`], for a cluster, but sends commands over a connection of your own.
///
/// Build its client with `.retries(0)`: redis-rs must not resend a command that may have run,
/// because it cannot know whether that is safe. `options` apply to everything that does not use
/// your connection: subscriptions, redirects, `WAIT`, and requests to all primaries.
///
/// You keep your connection, and it works on after this client is closed. Retries are detected by a
/// script on the key `locktopus:probe:repeated`. If the user may not run it, the check is skipped.
///
/// # Errors
///
/// Those of [`connect`]. A connection that retries, or does not answer in time, is an
/// [`ConnectError::InvalidOption`].
///
/// # Cancel safety
///
/// Like [`connect`].
///
/// # Examples
///
/// ```no_run
/// use locktopus_protocol::{ConnectOptions, HostPort, Servers};
/// use locktopus_redis::redis::cluster::ClusterClientBuilder;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let seed = HostPort { host: "127.0.0.1".to_owned(), port: 7000 };
/// let cluster = ClusterClientBuilder::new([format!("redis://{}:{}", seed.host, seed.port)]).retries(0).build()?;
/// let connection = cluster.get_async_connection().await?;
/// let options = ConnectOptions::new(Servers::Cluster(vec![seed]));
/// let client = locktopus_redis::connect_through(&options, connection).await?;
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "cluster-async")]
pub async fn connect_through(
    options: &ConnectOptions,
    connection: redis::cluster_async::ClusterConnection,
) -> Result<RedisRsClient, ConnectError> {
    if !matches!(options.servers, Servers::Cluster(_)) {
        let problem = "a connection for a cluster is handed in, and the options name none";
        return Err(ConnectError::invalid("cluster_router", problem));
    }
    ConnectError::check(options)?;
    let router = Router::handed_in(connection, Budget::of(options)).await?;
    build(options, Some(router)).await
}

async fn build(
    options: &ConnectOptions,
    router: Option<Router>,
) -> Result<RedisRsClient, ConnectError> {
    let tls = load(options.tls.as_ref()).await?;
    let dialer = Arc::new(Dialer::for_data(options, tls.clone()));
    let topology = match &options.servers {
        Servers::Standalone(server) => {
            let target = Target::Server(server.clone());
            Topology::Single(Single::new(target, Arc::clone(&dialer)))
        }
        Servers::Sentinel {
            sentinels,
            master_name,
        } => {
            let tls = match &options.sentinel_tls {
                SentinelTls::AsServers => tls,
                SentinelTls::Off => None,
                SentinelTls::Own(own) => load(Some(own)).await?,
            };
            let asking = SentinelConnections(Dialer::for_sentinels(options, tls));
            let sentinels = Sentinels::new(sentinels, master_name, dialer.budget(), asking);
            let target = Target::Primary(Arc::new(sentinels));
            Topology::Single(Single::new(target, Arc::clone(&dialer)))
        }
        Servers::Cluster(seeds) => {
            let cluster = Cluster::new(seeds.clone(), Arc::clone(&dialer), router);
            Topology::Cluster(Box::new(cluster))
        }
    };
    if let Err(error) = topology.begin().await {
        let error = ConnectError::unreachable(options, &error);
        if !options.lazy {
            return Err(error);
        }
        tracing::warn!(%error, "no server answers yet; the client connects as soon as one does");
    }
    Ok(RedisRsClient::new(topology, dialer))
}

async fn load(options: Option<&TlsOptions>) -> Result<Option<Tls>, ConnectError> {
    match options {
        Some(options) => Tls::load(options).await.map(Some),
        None => Ok(None),
    }
}
