//! [`connect`]: checks the options, then connects.

use std::sync::Arc;

use locktopus_protocol::sentinels::{Sentinels, Target};
use locktopus_protocol::{
    ClientError, ClusterRouter, ConnectError, ConnectOptions, PushEvent, SentinelTls, Servers,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::client::{self, FredClient};
use crate::cluster::Cluster;
use crate::connection::dial::Dialer;
use crate::connection::sentinel::SentinelConnections;
use crate::connection::tls;
use crate::single::Single;

/// Connects to the servers in `options`.
///
/// Returns once the primary has accepted the login. In a cluster, any node that knows the slots
/// will do. It makes one attempt per address and then fails, unless [`ConnectOptions::lazy`] is
/// set. Later failures are repaired in the background.
///
/// # Errors
///
/// * [`ConnectError::InvalidOption`] if options contradict each other.
/// * [`ConnectError::NotBuiltIn`] if TLS is requested in a build without the feature `tls`.
/// * [`ConnectError::Tls`] if a certificate or key is unusable.
/// * [`ConnectError::Unreachable`] if no server answers or accepts the login.
/// * [`ConnectError::NoRuntime`] outside a tokio runtime.
///
/// # Cancel safety
///
/// Dropping the future closes the connections opened so far.
///
/// # Examples
///
/// ```no_run
/// use locktopus_protocol::{ConnectOptions, HostPort, RedisClient, Route, Servers};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = HostPort { host: "127.0.0.1".to_owned(), port: 6379 };
/// let options = ConnectOptions::new(Servers::Standalone(server));
/// let client: locktopus_fred::FredClient = locktopus_fred::connect(&options).await?;
/// let pong = client.command(Route::Any, &[b"PING"]).await?;
/// # Ok(())
/// # }
/// ```
pub async fn connect(options: &ConnectOptions) -> Result<FredClient, ConnectError> {
    check(options)?;
    let tls = tls::load(options.tls.as_ref()).await?;
    let dialer = Arc::new(Dialer::for_data(options, tls.clone()));
    let (events, receiver) = unbounded_channel();
    let (servers, failure) = match &options.servers {
        Servers::Standalone(server) => {
            single(&dialer, Target::Server(server.clone()), events).await
        }
        Servers::Sentinel {
            sentinels,
            master_name,
        } => {
            let tls = match &options.sentinel_tls {
                SentinelTls::AsServers => tls,
                SentinelTls::Off => None,
                SentinelTls::Own(own) => tls::load(Some(own)).await?,
            };
            let asking = SentinelConnections(Dialer::for_sentinels(options, tls));
            let sentinels = Sentinels::new(sentinels, master_name, dialer.budget(), asking);
            single(&dialer, Target::Primary(Arc::new(sentinels)), events).await
        }
        Servers::Cluster(seeds) => {
            let cluster = Cluster::connect(Arc::clone(&dialer), seeds.clone(), events).await;
            let (cluster, failure) = cluster;
            let failure = failure.map(ClientError::NotSent);
            (client::Servers::Cluster(cluster), failure)
        }
    };
    if let Some(failure) = failure {
        let error = ConnectError::unreachable(options, &failure);
        if !options.lazy {
            return Err(error);
        }
        tracing::warn!(%error, "no server answers yet; the client connects as soon as one does");
    }
    Ok(FredClient::new(servers, dialer, receiver))
}

async fn single(
    dialer: &Arc<Dialer>,
    target: Target,
    events: UnboundedSender<PushEvent>,
) -> (client::Servers, Option<ClientError>) {
    let single = Single::new(dialer, target, events);
    let failure = single.links.commands().first_conn().await.err();
    (client::Servers::Single(Box::new(single)), failure)
}

fn check(options: &ConnectOptions) -> Result<(), ConnectError> {
    ConnectError::check(options)?;
    if options.cluster_router == ClusterRouter::Client {
        let problem = "the router of fred queues commands and writes them late: use redis-rs";
        return Err(ConnectError::invalid("cluster_router", problem));
    }
    if options.connect_timeout.is_zero() {
        let problem = "must be longer than zero";
        return Err(ConnectError::invalid("connect_timeout", problem));
    }
    Ok(())
}
