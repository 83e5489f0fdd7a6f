//! Sends commands over the cluster connection of redis-rs, if the user wants that.
//!
//! The connection must not retry. Then redis-rs sends each request once, to the primary it believes
//! serves the slot, or to another node while that one is unreachable (read in redis 1.8,
//! `cluster_handling/async_connection`). The caller gets every answer, including `MOVED` and `ASK`.
//! We follow redirects over our own connections.
//!
//! Its errors are harder to interpret than those of our own connections. When redis-rs fails to
//! refresh its map, it fails **every** request in flight with that error, including requests that
//! were written long ago, and does not say so. It returns most refusals as answers. Of its errors,
//! we trust only those that a refresh cannot produce.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use locktopus_protocol::{
    Budget, ClientError, ConnectError, ConnectOptions, Credentials, HostPort, Reply, Route, lock,
};
use redis::cluster::{ClusterClient, ClusterClientBuilder, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route as SlotRoute, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{
    ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError,
};
use tokio::time::timeout;

use crate::connection::reply::reply_of;
use crate::connection::send::packed;
use crate::connection::stream;

/// redis-rs times out after this multiple of our callers' longest timeout, so that they time out
/// first.
const ANSWERS_TO_WAIT_FOR: u32 = 2;

/// Refusals about the slot of the request. Internal requests of redis-rs (`CLUSTER SLOTS`, `PING`,
/// login) never get these.
const ABOUT_THE_SLOT: [&str; 6] = [
    "MOVED",
    "ASK",
    "TRYAGAIN",
    "CROSSSLOT",
    "CLUSTERDOWN",
    "READONLY",
];

/// A script whose answer invites a retry, to test whether a connection retries.
const ASKS_TO_BE_REPEATED: &str = "redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], 10000) \
     return redis.error_reply('TRYAGAIN this is not to be sent again')";

/// Exists for ten seconds after a program hands in a connection.
const REPEATED: &str = "locktopus:probe:repeated";

/// A cluster connection of redis-rs without retries.
pub(crate) struct Router {
    /// `None` once closed.
    connection: Mutex<Option<ClusterConnection>>,
    /// Counts commands, because redis-rs does not report when it dials.
    sent: AtomicU64,
    /// Makes our own connections. `None` if the program handed one in.
    own: Option<(ClusterClient, Budget)>,
}

impl Router {
    /// Our own connection, made as soon as the cluster is reachable.
    pub(crate) fn new(
        options: &ConnectOptions,
        seeds: &[HostPort],
        budget: Budget,
    ) -> Result<Self, ConnectError> {
        if options.tls.is_some() {
            return Err(unusable(
                "it makes connections without TLS, because redis-rs takes its cryptography from the process: hand in a \
                 connection that you have configured, or leave the option out",
            ));
        }
        if options.credentials_provider.is_some() {
            let problem = "it logs in by itself and cannot ask a credentials provider: hand in a connection that you have configured";
            return Err(unusable(problem));
        }
        let nodes = seeds
            .iter()
            .map(|seed| node(seed, options.credentials.as_ref()));
        let client = ClusterClientBuilder::new(nodes)
            .retries(0)
            .use_protocol(ProtocolVersion::RESP3)
            .tcp_settings(stream::settings())
            .build()
            .map_err(|error| unusable(error.category()))?;
        Ok(Self::connected_by(client, budget))
    }

    /// A copy on this runtime. A connection handed in by the program stays on the program's
    /// runtime.
    pub(crate) fn again(&self) -> Self {
        match &self.own {
            Some((client, budget)) => Self::connected_by(client.clone(), *budget),
            None => Self::of(lock(&self.connection).clone(), None),
        }
    }

    fn connected_by(client: ClusterClient, budget: Budget) -> Self {
        let config = ClusterConfig::new()
            .set_connection_timeout(budget.connection())
            .set_response_timeout(budget.answer() * ANSWERS_TO_WAIT_FOR);
        let connection = client.get_pending_async_connection_with_config(config);
        Self::of(Some(connection), Some((client, budget)))
    }

    /// Uses a connection that the program hands in. Fails if it retries.
    pub(crate) async fn handed_in(
        connection: ClusterConnection,
        budget: Budget,
    ) -> Result<Self, ConnectError> {
        check(connection.clone(), budget.answer_of_anybody()).await?;
        Ok(Self::of(Some(connection), None))
    }

    fn of(connection: Option<ClusterConnection>, own: Option<(ClusterClient, Budget)>) -> Self {
        Self {
            connection: Mutex::new(connection),
            sent: AtomicU64::new(0),
            own,
        }
    }

    /// How many commands it has sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    pub(crate) async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let connection = lock(&self.connection).clone();
        let Some(mut connection) = connection else {
            return Err(ClientError::NotSent("the client was closed".to_owned()));
        };
        let route = match route {
            Route::Slot(slot) => {
                SingleNodeRoutingInfo::SpecificNode(SlotRoute::new(slot, SlotAddr::Master))
            }
            Route::Any => SingleNodeRoutingInfo::RandomPrimary,
        };
        let answer = connection.route_command(packed(args), RoutingInfo::SingleNode(route));
        match answer.await {
            Ok(value) => reply_of(value),
            Err(error) => Err(meaning(&error)),
        }
    }

    /// Drops this handle. A program that handed the connection in can keep using it.
    pub(crate) fn close(&self) {
        drop(lock(&self.connection).take());
    }
}

/// Whether the command may have run, according to its error.
fn meaning(error: &RedisError) -> ClientError {
    let is_server = matches!(error.kind(), ErrorKind::Server(_));
    match error.code() {
        Some(code) if is_server && ABOUT_THE_SLOT.contains(&code) => ClientError::Rejected {
            code: code.to_owned(),
            message: error.detail().unwrap_or_default().to_owned(),
        },
        _ => ClientError::MaybeExecuted(format!("cluster connection: {error}")),
    }
}

/// Refuses a connection that retries. With retries, redis-rs either waits before it retries, and
/// does not answer in time, or has retried, which the counter shows.
async fn check(mut connection: ClusterConnection, limit: Duration) -> Result<(), ConnectError> {
    let mut script = redis::cmd("EVAL");
    script.arg(ASKS_TO_BE_REPEATED).arg(1).arg(REPEATED);
    let mut count = redis::cmd("GET");
    count.arg(REPEATED);
    let mut forget = redis::cmd("DEL");
    forget.arg(REPEATED);
    let key = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(SlotRoute::new(
        locktopus_protocol::slot::key_slot(REPEATED.as_bytes()),
        SlotAddr::Master,
    )));
    let mut ask = async |command| {
        let answer = timeout(limit, connection.route_command(command, key.clone())).await;
        answer.ok()
    };
    let _left_behind = ask(forget.clone()).await;
    match ask(script).await {
        Some(Err(error)) if error.code() == Some("TRYAGAIN") => {}
        // A user without the needed permissions may go on. The manual states the requirement.
        Some(Ok(redis::Value::ServerError(_))) => return Ok(()),
        Some(Err(error)) => return Err(unusable(error.category())),
        Some(Ok(_)) | None => return Err(unusable(RETRIES)),
    }
    let once = match ask(count).await {
        Some(Ok(value)) => matches!(reply_of(value), Ok(Reply::Bytes(count)) if count == "1"),
        _ => false,
    };
    let _tidied = ask(forget).await;
    once.then_some(()).ok_or_else(|| unusable(RETRIES))
}

const RETRIES: &str = "the connection that was handed in repeats requests, which may have run: build its client with `.retries(0)`";

/// The cluster connection of redis-rs cannot be used.
fn unusable(problem: &str) -> ConnectError {
    ConnectError::invalid("cluster_router", problem)
}

fn node(server: &HostPort, credentials: Option<&Credentials>) -> ConnectionInfo {
    let mut login = RedisConnectionInfo::default();
    if let Some(Credentials { username, password }) = credentials {
        if let Some(username) = username {
            login = login.set_username(username);
        }
        login = login.set_password(password.expose());
    }
    let addr = ConnectionAddr::Tcp(server.host.clone(), server.port);
    let info = addr
        .into_connection_info()
        .expect("an address is all there is to it");
    info.set_redis_settings(login)
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &[u8]) -> RedisError {
        let value = redis::parse_redis_value(line).unwrap();
        value.extract_error().unwrap_err()
    }

    #[test]
    fn a_refusal_about_the_slot_is_the_servers_answer() {
        assert_eq!(
            meaning(&said(b"-MOVED 3999 127.0.0.1:6381\r\n")),
            ClientError::rejected("MOVED 3999 127.0.0.1:6381")
        );
        assert_eq!(
            meaning(&said(b"-CLUSTERDOWN The cluster is down\r\n")),
            ClientError::rejected("CLUSTERDOWN The cluster is down")
        );
    }

    /// A refresh of the map may have failed with these while the request was in flight.
    #[test]
    fn whatever_a_refresh_can_end_in_may_have_run() {
        let not_found =
            RedisError::from((ErrorKind::ClusterConnectionNotFound, "No connections found"));
        let broken = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        for error in [
            said(b"-LOADING dataset in memory\r\n"),
            said(b"-NOPERM no permission to run cluster|slots\r\n"),
            said(b"-ERR unknown\r\n"),
            not_found,
            broken,
        ] {
            assert!(
                matches!(meaning(&error), ClientError::MaybeExecuted(_)),
                "{error}"
            );
        }
    }
}
