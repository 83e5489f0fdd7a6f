//! Making one connection: stream, login, time limit.

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

use crate::connection::duplex::Stream;
use crate::connection::error::not_connected;
use crate::connection::greeting::{Greeted, Greeting};
use crate::connection::health::{Health, Listener};
use crate::connection::reply::reply_of;
use crate::connection::send::Live;
use crate::connection::stream::{self, Address};
use crate::connection::tls::Tls;

/// Commands that may wait for the writing task. Small, so that a stuck socket is felt early; large
/// enough for every task of a busy process to be pipelined.
const QUEUED_COMMANDS: usize = 256;

/// Makes connections that log in the same way.
pub(crate) struct Dialer {
    login: Login,
    database: u32,
    /// Whether one name stands for a primary, wherever that is.
    wants_primary: bool,
    secret_filter: SecretFilter,
    tls: Option<Tls>,
    client_name: Option<String>,
    budget: Budget,
    dialled: AtomicU64,
    /// Counts the moments after which another server may answer.
    changes: watch::Sender<u64>,
}

impl Dialer {
    /// For the servers that hold the data.
    pub(crate) fn for_data(options: &ConnectOptions, tls: Option<Tls>) -> Self {
        Self {
            database: options.database,
            // Sentinels and slot maps name single servers and say which of them are primaries.
            wants_primary: matches!(options.servers, Servers::Standalone(_)),
            ..Self::new(options, Login::for_data(options), tls)
        }
    }

    /// For the sentinels, which have users of their own and no databases.
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

    /// How many connections it has begun to make.
    pub(crate) fn dialled(&self) -> u64 {
        self.dialled.load(Ordering::SeqCst)
    }

    /// Counts the moments after which another server may answer than before.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Another server may answer from now on.
    pub(crate) fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Time limits of the steps that this crate starts by itself; it has no others.
    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// Connects and logs in. `listener` hears of everything that the server sends unasked.
    ///
    /// If the name has several addresses, it connects to the one of the primary, and each of them
    /// has the whole time.
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
            // It was never in use, so its end is no news.
            health.retire();
            let address = match outcome {
                Ok((_, replica)) => replica,
                Err((error, silent)) => {
                    silence = Some(error);
                    silent
                }
            };
            tracing::debug!(%server, ?address, "an address that is of no use");
            // Without an address the error is a refusal, and the others are not tried.
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

    /// Connects to the address that answers first. Names that address if it leads to a replica and
    /// there is a choice. An error names the address that accepted the connection and did not
    /// greet. Other addresses may do better then.
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
            // It says more than that the connection broke.
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
        // The callers' timeouts are the only ones: an inner one would end a command that the caller
        // still waits for.
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
            // A refusal is a value, not an error, and is ignored: the name only helps operators,
            // and the user may not be allowed to set it.
            connection.send_packed_command(&command).await?;
        }
        Ok((connection, driver))
    }

    fn info(&self, credentials: Option<&Credentials>) -> RedisConnectionInfo {
        // Everything received out of turn (closed connections, messages) needs RESP3.
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

/// Whether the server says that it is a replica.
async fn is_replica(connection: &mut MultiplexedConnection) -> redis::RedisResult<bool> {
    let question = redis::cmd(ROLE_QUESTION);
    let role = connection.send_packed_command(&question).await?;
    Ok(reply_of(role).is_ok_and(|role| says_replica(&role)))
}

/// The task that moves the bytes of a connection. It ends, and the connection with it, when this is
/// dropped, whatever is still under way.
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
