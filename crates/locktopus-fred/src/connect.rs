//! [`connect`]: checks the options, then connects.

use std::sync::Arc;

use locktopus_protocol::sentinels::Sentinels;
use locktopus_protocol::{
    ClientError, ClusterRouter, ConnectOptions, Deployment, HostPort, SentinelTls, Servers,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc::unbounded_channel;

use crate::client::{self, FredClient};
use crate::cluster::Cluster;
use crate::connection::dial::{Dialer, Target};
use crate::connection::error::ConnectError;
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
/// * [`ConnectError::TlsNotBuilt`] if TLS is requested in a build without the feature `tls`.
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
    match &options.servers {
        Servers::Standalone(node) => {
            let target = Target::Node(node.clone());
            single(&dialer, Deployment::Standalone, target, node.to_string()).await
        }
        Servers::Sentinel {
            sentinels,
            master_name,
        } => {
            let name = format!(
                "the primary {master_name:?} through sentinels {}",
                list(sentinels)
            );
            let tls = match &options.sentinel_tls {
                SentinelTls::AsServers => tls,
                SentinelTls::Off => None,
                SentinelTls::Own(own) => tls::load(Some(own)).await?,
            };
            let asking = SentinelConnections(Dialer::for_sentinels(options, tls));
            let sentinels = Sentinels::new(sentinels, master_name, dialer.budget(), asking);
            let target = Target::Primary(Arc::new(sentinels));
            single(&dialer, Deployment::Sentinel, target, name).await
        }
        Servers::Cluster(seeds) => cluster(dialer, seeds).await,
    }
}

async fn single(
    dialer: &Arc<Dialer>,
    deployment: Deployment,
    target: Target,
    name: String,
) -> Result<FredClient, ConnectError> {
    let (events, receiver) = unbounded_channel();
    let single = Single::new(dialer, target.clone(), events);
    let failure = single.ready().await.err();
    let error = failure.map(|failure| unreachable(&target, name, failure));
    match error {
        Some(error) if !dialer.lazy() => return Err(error),
        Some(error) => tracing::warn!(%error, "{WAITING}"),
        None => {}
    }
    let servers = client::Servers::Single(single);
    Ok(FredClient::new(
        deployment,
        servers,
        Arc::clone(dialer),
        receiver,
    ))
}

/// The warning of a lazy client that starts without a server.
const WAITING: &str = "no server answers yet; the client connects as soon as one does";

fn unreachable(target: &Target, name: String, failure: ClientError) -> ConnectError {
    let reason = match failure {
        ClientError::NotSent(why) => why,
        other => other.to_string(),
    };
    let prefix = format!("cannot connect to {target}: ");
    let reason = reason.strip_prefix(&prefix).unwrap_or(&reason);
    let reason = reason.strip_prefix("cannot connect to ").unwrap_or(reason);
    ConnectError::Unreachable {
        target: name,
        reason: reason.to_owned(),
    }
}

async fn cluster(dialer: Arc<Dialer>, seeds: &[HostPort]) -> Result<FredClient, ConnectError> {
    let (events, receiver) = unbounded_channel();
    let (cluster, failure) = Cluster::connect(Arc::clone(&dialer), seeds.to_vec(), events).await;
    if let Some(reason) = failure {
        let error = ConnectError::Unreachable {
            target: format!("cluster {}", list(seeds)),
            reason,
        };
        if !dialer.lazy() {
            return Err(error);
        }
        tracing::warn!(%error, "{WAITING}");
    }
    let servers = client::Servers::Cluster(cluster);
    Ok(FredClient::new(
        Deployment::Cluster,
        servers,
        dialer,
        receiver,
    ))
}

fn list(addresses: &[HostPort]) -> String {
    addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn check(options: &ConnectOptions) -> Result<(), ConnectError> {
    Handle::try_current().map_err(|_| ConnectError::NoRuntime)?;
    let invalid = |option, problem: &str| {
        Err(ConnectError::InvalidOption {
            option,
            problem: problem.to_owned(),
        })
    };
    let name = options.client_name.as_deref().unwrap_or_default();
    if let Err(problem) = ConnectOptions::check_client_name(name) {
        return invalid("client_name", problem);
    }
    match &options.servers {
        Servers::Sentinel { sentinels, .. } if sentinels.is_empty() => {
            invalid("servers", "no sentinel is given: name at least one")
        }
        Servers::Cluster(nodes) if nodes.is_empty() => {
            invalid("servers", "no cluster node is given: name at least one")
        }
        Servers::Cluster(_) if options.database != 0 => {
            invalid("database", "a cluster has only database 0")
        }
        _ if options.cluster_router == ClusterRouter::Client => invalid(
            "cluster_router",
            "the router of fred queues commands and writes them late: use redis-rs",
        ),
        _ if options.connect_timeout.is_zero() => {
            invalid("connect_timeout", "must be longer than zero")
        }
        _ => Ok(()),
    }
}
