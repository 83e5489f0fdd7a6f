//! Making one connection: stream, login, time limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use locktopus_protocol::{Budget, ClientError, ConnectOptions, Credentials, SecretFilter};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, RedisConnectionInfo};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::connection::error::not_connected;
use crate::connection::health::Health;
use crate::connection::stream;
use crate::connection::tls::Tls;

/// Commands that may wait for the writing task. Small, so that a stuck socket is felt early; large
/// enough for every task of a busy process to be pipelined.
const QUEUED_COMMANDS: usize = 256;

/// Makes connections with one login.
pub(crate) struct Dialer {
    login: RedisConnectionInfo,
    secret_filter: SecretFilter,
    tls: Option<Tls>,
    client_name: Option<String>,
    budget: Budget,
    dialled: AtomicU64,
}

impl Dialer {
    /// For the servers that hold the data.
    pub(crate) fn for_data(options: &ConnectOptions, tls: Option<Tls>) -> Self {
        let login = login(options.credentials.as_ref()).set_db(i64::from(options.database));
        Self::new(options, login, tls)
    }

    /// For the sentinels, which have users of their own.
    pub(crate) fn for_sentinels(options: &ConnectOptions, tls: Option<Tls>) -> Self {
        Self::new(options, login(options.sentinel_credentials.as_ref()), tls)
    }

    fn new(options: &ConnectOptions, login: RedisConnectionInfo, tls: Option<Tls>) -> Self {
        Self {
            login,
            secret_filter: SecretFilter::of(options),
            tls,
            client_name: options.client_name.clone(),
            budget: Budget::of(options),
            dialled: AtomicU64::new(0),
        }
    }

    /// How many connections it has begun to make.
    pub(crate) fn dialled(&self) -> u64 {
        self.dialled.load(Ordering::SeqCst)
    }

    /// Time limits of the steps that this crate starts by itself; it has no others.
    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// Connects and logs in. `health` hears of everything that the server sends unasked.
    pub(crate) async fn dial(
        &self,
        health: &Arc<Health>,
    ) -> Result<(MultiplexedConnection, Driver), ClientError> {
        let server = health.server();
        self.dialled.fetch_add(1, Ordering::SeqCst);
        let limit = self.budget.connection();
        match timeout(limit, Box::pin(self.attempt(health))).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(not_connected(
                &self.secret_filter.conceal(&error.to_string()),
                server,
            )),
            Err(_) => Err(ClientError::NotSent(format!(
                "cannot connect to {server}: not connected within {limit:?}"
            ))),
        }
    }

    async fn attempt(
        &self,
        health: &Arc<Health>,
    ) -> redis::RedisResult<(MultiplexedConnection, Driver)> {
        let stream = stream::open(health.server(), self.tls.as_ref()).await?;
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
            MultiplexedConnection::new_with_config(&self.login, stream, config).await?;
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
}

fn login(credentials: Option<&Credentials>) -> RedisConnectionInfo {
    // Everything received out of turn (closed connections, messages) needs RESP3.
    let mut info = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3);
    if let Some(Credentials { username, password }) = credentials {
        if let Some(username) = username {
            info = info.set_username(username);
        }
        info = info.set_password(password.expose());
    }
    info
}

/// The task that moves the bytes of a connection. It ends, and the connection with it, when this is dropped, whatever is
/// still under way.
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
