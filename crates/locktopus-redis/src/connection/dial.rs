//! Makes a connection: stream and login, within a time limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use locktopus_protocol::{
    Budget, ClientError, ConnectOptions, Credentials, HostPort, Login, ROLE_QUESTION, SecretFilter,
    Servers, says_replica,
};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, RedisConnectionInfo};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::connection::error::not_connected;
use crate::connection::greeting::{Greeted, Greeting};
use crate::connection::health::{Health, Listener};
use crate::connection::reply::reply_of;
use crate::connection::send::Live;
use crate::connection::stream::{self, Address, Stream};
use crate::connection::tls::Tls;

/// Capacity of the queue to the writing task. Small, so that a stuck socket is noticed early; large
/// enough to pipeline the commands of all tasks of a busy process.
const QUEUED_COMMANDS: usize = 256;

/// Makes connections with the same login.
pub(crate) struct Dialer {
    login: Login,
    database: u32,
    /// Whether to pick the primary if a name has several addresses.
    wants_primary: bool,
    secret_filter: SecretFilter,
    tls: Option<Tls>,
    client_name: Option<String>,
    budget: Budget,
    dialled: AtomicU64,
    /// Counts the times when another server may have taken over.
    changes: watch::Sender<u64>,
}

impl Dialer {
    /// For the data servers.
    pub(crate) fn for_data(options: &ConnectOptions, tls: Option<Tls>) -> Self {
        Self {
            database: options.database,
            // Sentinels and slot maps name individual servers, and say which are primaries.
            wants_primary: matches!(options.servers, Servers::Standalone(_)),
            ..Self::new(options, Login::for_data(options), tls)
        }
    }

    /// For the sentinels, which have their own users and no databases.
    pub(crate) fn for_sentinels(options: &ConnectOptions, tls: Option<Tls>) -> Self {
        Self::new(options, Login::for_sentinels(options), tls)
    }

    fn new(options: &ConnectOptions, login: Login, tls: Option<Tls>) -> Self {
        Self {
            login,
            database: 0,
            wants_primary: false,
            secret_filter: SecretFilter::of(options),
            tls,
            client_name: options.client_name.clone(),
            budget: Budget::of(options),
            dialled: AtomicU64::new(0),
            changes: watch::Sender::new(0),
        }
    }

    /// How many attempts to connect it has started.
    pub(crate) fn dialled(&self) -> u64 {
        self.dialled.load(Ordering::SeqCst)
    }

    /// Counts the times when another server may have taken over.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Notes that another server may answer from now on.
    pub(crate) fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// The time limits of steps that this crate starts itself. It has no others.
    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// Connects and logs in. `listener` receives everything that the server pushes.
    ///
    /// If the name has several addresses, it connects to the primary's. Each address gets the full
    /// time.
    pub(crate) async fn dial(
        &self,
        server: &HostPort,
        listener: Option<&Arc<dyn Listener>>,
    ) -> Result<Live, ClientError> {
        let mut deadline = self.deadline();
        let mut left = self
            .in_time(deadline, server, stream::addresses(server))
            .await?;
        let choose = self.wants_primary && left.len() > 1;
        let mut silence = None;
        loop {
            let health = Health::new(server.clone(), listener.map(Arc::clone));
            let outcome = self.attempt(deadline, &left, choose, &health).await;
            if let Ok((live, None)) = outcome {
                return Ok(live);
            }
            // It was never in use, so do not report its end.
            health.retire();
            let address = match outcome {
                Ok((_, replica)) => replica,
                Err((error, silent)) => {
                    silence = Some(error);
                    silent
                }
            };
            tracing::debug!(%server, ?address, "an address that is of no use");
            // Without an address the error is a refusal: do not try the others.
            left.retain(|left| address.is_some_and(|address| *left != address));
            if left.is_empty() {
                let why = "each of its addresses leads to a replica";
                return Err(silence.unwrap_or_else(|| not_connected(why, server)));
            }
            deadline = self.deadline();
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.budget.connection()
    }

    /// Connects to the address that answers first. If there is a choice and that address is a
    /// replica, returns the address too. An error includes the address if it accepted the
    /// connection but did not greet; other addresses may work then.
    async fn attempt(
        &self,
        deadline: Instant,
        addresses: &[Address],
        choose: bool,
        health: &Arc<Health>,
    ) -> Result<(Live, Option<Address>), (ClientError, Option<Address>)> {
        let server = health.server();
        self.dialled.fetch_add(1, Ordering::SeqCst);
        let credentials = self.login.next(deadline).await;
        let credentials = credentials.map_err(|why| {
            (
                not_connected(&self.secret_filter.conceal(&why), server),
                None,
            )
        })?;
        let greeting = Greeting::default();
        let mut opened = None;
        let attempt = Box::pin(async {
            let (stream, address) = stream::open(server, addresses, self.tls.as_ref()).await?;
            opened = Some(address);
            let info = self.info(credentials.as_ref());
            let stream = Box::new(Greeted::new(stream, greeting.clone()));
            let (mut connection, driver) = self.log_in(&info, stream, health).await?;
            let is_replica = choose && is_replica(&mut connection).await?;
            let live = Live::new((connection, driver), Arc::clone(health));
            Ok((live, is_replica.then_some(address)))
        });
        let outcome = self.in_time(deadline, server, attempt).await;
        outcome.map_err(|error| {
            let refusal = greeting.refusal();
            let silent = opened.filter(|_| refusal.is_none());
            let ClientError::NotSent(why) = error else {
                return (error, silent);
            };
            // The refusal explains why the connection broke.
            let why = refusal.map_or(why, |refusal| {
                format!("cannot connect to {server}: {refusal}")
            });
            let filter = self.secret_filter.and(credentials.as_ref());
            (ClientError::NotSent(filter.conceal(&why)), silent)
        })
    }

    async fn in_time<T>(
        &self,
        deadline: Instant,
        server: &HostPort,
        step: impl Future<Output = redis::RedisResult<T>>,
    ) -> Result<T, ClientError> {
        match timeout_at(deadline, step).await {
            Ok(outcome) => outcome.map_err(|error| not_connected(&error.to_string(), server)),
            Err(_) => {
                let limit = self.budget.connection();
                let why = format!("not connected within {limit:?}");
                Err(not_connected(&why, server))
            }
        }
    }

    async fn log_in(
        &self,
        login: &RedisConnectionInfo,
        stream: Stream,
        health: &Arc<Health>,
    ) -> redis::RedisResult<(MultiplexedConnection, Driver)> {
        let listener = Arc::clone(health);
        // Only the callers' timeouts apply: an inner one would end a command while its caller still
        // waits.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUED_COMMANDS)
            .set_push_sender(move |push: PushInfo| {
                listener.on_push(push);
                Ok::<(), std::convert::Infallible>(())
            });
        let (mut connection, driving) =
            MultiplexedConnection::new_with_config(login, stream, config).await?;
        let driver = Driver(tokio::spawn(driving).abort_handle());
        if let Some(name) = &self.client_name {
            let mut command = redis::cmd("CLIENT");
            command.arg("SETNAME").arg(name);
            // A refusal arrives as a value and is ignored: the name only helps operators, and the
            // user may not be allowed to set it.
            connection.send_packed_command(&command).await?;
        }
        Ok((connection, driver))
    }

    fn info(&self, credentials: Option<&Credentials>) -> RedisConnectionInfo {
        // Pushed data, such as disconnections and messages, needs RESP3.
        let mut info = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_db(i64::from(self.database));
        if let Some(Credentials { username, password }) = credentials {
            if let Some(username) = username {
                info = info.set_username(username);
            }
            info = info.set_password(password.expose());
        }
        info
    }
}

/// Whether the server reports that it is a replica.
async fn is_replica(connection: &mut MultiplexedConnection) -> redis::RedisResult<bool> {
    let question = redis::cmd(ROLE_QUESTION);
    let role = connection.send_packed_command(&question).await?;
    Ok(reply_of(role).is_ok_and(|role| says_replica(&role)))
}

/// The task that moves the bytes of a connection. Dropping this ends the task and the connection,
/// even with commands in flight.
#[derive(Debug)]
pub(crate) struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the login.
        f.debug_struct("Dialer")
            .field("tls", &self.tls.is_some())
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
