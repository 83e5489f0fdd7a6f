//! Makes one connection within a time limit: TCP, TLS, login, database, name.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fred::clients::Client;
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::RespVersion;
use fred::types::config::{Config, ConnectionConfig, PerformanceConfig, ServerConfig, TcpConfig};
use locktopus_protocol::sentinels::{Sentinels, Target};
use locktopus_protocol::{
    Budget, ClientError, ConnectOptions, Credentials, HostPort, Login, SecretFilter, Servers,
};
use socket2::TcpKeepalive;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::connection::address::{self, Address};
use crate::connection::conn::Conn;
use crate::connection::error;
use crate::connection::request::Request;
use crate::connection::tls::{self, Tls};

/// How many messages may wait for our forwarding task before fred drops some.
const MESSAGE_BACKLOG: usize = 4096;

/// How long a peer may be silent before the kernel probes it.
const SILENCE: Duration = Duration::from_secs(5);

/// The use of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Commands,
    Messages,
}

/// The settings shared by all connections of a client.
pub(crate) struct Dialer {
    options: ConnectOptions,
    login: Login,
    budget: Budget,
    secret_filter: SecretFilter,
    dialled: AtomicU64,
    /// Counts the times when another server may have taken over.
    changes: watch::Sender<u64>,
    tls: Option<Tls>,
}

/// Omits the options, which contain secrets.
impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("dialled", &self.dialled())
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// For the data servers.
    pub(crate) fn for_data(options: &ConnectOptions, tls: Option<Tls>) -> Self {
        Self::new(options.clone(), Login::for_data(options), tls)
    }

    /// For the sentinels, which have their own users and no databases.
    pub(crate) fn for_sentinels(options: &ConnectOptions, tls: Option<Tls>) -> Self {
        let login = Login::for_sentinels(options);
        let options = ConnectOptions {
            database: 0,
            ..options.clone()
        };
        Self::new(options, login, tls)
    }

    fn new(options: ConnectOptions, login: Login, tls: Option<Tls>) -> Self {
        Self {
            login,
            budget: Budget::of(&options),
            secret_filter: SecretFilter::of(&options),
            options,
            dialled: AtomicU64::new(0),
            changes: watch::Sender::new(0),
            tls,
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

    /// Connects. The error is one line for people, without secrets.
    pub(crate) async fn dial(&self, target: &Target, purpose: Purpose) -> Result<Conn, String> {
        match target {
            Target::Server(node) => self.reach(node, purpose).await,
            Target::Primary(sentinels) => {
                let limit = self.budget.primary_of_sentinels();
                let found = tokio::time::timeout(limit, self.primary(sentinels, purpose));
                found.await.unwrap_or_else(|_elapsed| Err(no_answer(limit)))
            }
        }
    }

    /// Connects to the server that the sentinels name. Fails if it reports that it is a replica.
    async fn primary(&self, sentinels: &Sentinels, purpose: Purpose) -> Result<Conn, String> {
        let named = sentinels.primary().await.map_err(|error| match error {
            ClientError::NotSent(why) => why,
            other => other.to_string(),
        })?;
        let server = named.server();
        let conn = self.reach(server, purpose).await;
        let conn = conn.map_err(|why| format!("cannot connect to {server}: {why}"))?;
        // A sentinel that was cut off may name a server that is now a replica.
        match conn.is_replica().await {
            Ok(false) => Ok(conn.named(named)),
            Ok(true) => Err(format!("{server} is a replica, although sentinels name it")),
            Err(error) => Err(format!("{server} does not say what it is: {error}")),
        }
    }

    /// Connects to one server. If its name has several addresses, to the primary's.
    async fn reach(&self, node: &HostPort, purpose: Purpose) -> Result<Conn, String> {
        let deadline = Instant::now() + self.budget.connection();
        let addresses = timeout_at(deadline, address::all(node)).await;
        let addresses = addresses.map_err(|_elapsed| no_answer(self.budget.connection()))??;
        let choose = self.wants_primary() && addresses.len() > 1;
        let mut problems = Vec::new();
        for address in addresses {
            match self.connect_to(node, &address, choose, purpose).await {
                Ok(conn) => return Ok(conn),
                Err(why) if choose => problems.push(format!("{address}: {why}")),
                Err(why) => problems.push(why),
            }
        }
        Err(problems.join("; "))
    }

    /// Whether a name must lead to the primary. Sentinels and slot maps name individual servers,
    /// and say which are primaries.
    fn wants_primary(&self) -> bool {
        matches!(self.options.servers, Servers::Standalone(_))
    }

    async fn connect_to(
        &self,
        node: &HostPort,
        address: &Address,
        choose: bool,
        purpose: Purpose,
    ) -> Result<Conn, String> {
        let limit = self.budget.connection();
        let deadline = Instant::now() + limit;
        self.dialled.fetch_add(1, Ordering::SeqCst);
        let credentials = self.login.next(deadline).await;
        let credentials = credentials.map_err(|why| self.secret_filter.conceal(&why))?;
        let connecting = async {
            let config = self.config(node, address, credentials.as_ref());
            let conn = self.handshake(node, config, purpose).await?;
            // Subscriptions on a replica do not count, and another address may lead to the primary.
            let must_be_primary = choose || purpose == Purpose::Messages;
            if must_be_primary && conn.is_replica().await.map_err(|e| e.to_string())? {
                return Err("the server is a replica".to_owned());
            }
            Ok(conn)
        };
        match timeout_at(deadline, connecting).await {
            Ok(outcome) => {
                let filter = self.secret_filter.and(credentials.as_ref());
                outcome.map_err(|why| filter.conceal(&why))
            }
            Err(_elapsed) => Err(no_answer(limit)),
        }
    }

    async fn handshake(
        &self,
        node: &HostPort,
        config: Config,
        purpose: Purpose,
    ) -> Result<Conn, String> {
        let client = Client::new(
            config,
            Some(self.performance(purpose)),
            Some(self.connection()),
            None,
        );
        let mut up = client.reconnect_rx();
        // Dropping this future also drops the half-made connection.
        let mut router = AbortOnDropHandle::new(client.connect());
        tokio::select! {
            ended = &mut router => return Err(ending(ended)),
            _connected = up.recv() => {}
        }
        let conn = Conn::new(client, router.detach(), node.to_string());
        self.prepare(&conn).await?;
        Ok(conn)
    }

    async fn prepare(&self, conn: &Conn) -> Result<(), String> {
        if self.options.database != 0 {
            let number = Bytes::from(self.options.database.to_string());
            let select = Request::of("SELECT", vec![number]);
            conn.send(select)
                .await
                .map_err(|failure| format!("SELECT: {failure}"))?;
        }
        if let Some(name) = &self.options.client_name {
            let args = vec![Bytes::from_static(b"SETNAME"), Bytes::from(name.clone())];
            match conn.send(Request::of("CLIENT", args)).await {
                // The name only helps operators, and an ACL may well forbid it.
                Ok(_) | Err(ClientError::Rejected { .. }) => {}
                Err(failure) => return Err(failure.to_string()),
            }
        }
        Ok(())
    }

    fn config(
        &self,
        node: &HostPort,
        address: &Address,
        credentials: Option<&Credentials>,
    ) -> Config {
        let (username, password) = login(credentials);
        let (username, password) = (username.map(inline), password.map(inline));
        let mut config = Config {
            fail_fast: true,
            version: RespVersion::RESP3,
            server: self.server_config(node, address),
            username,
            password,
            ..Config::default()
        };
        tls::encrypt(&mut config, self.tls.as_ref());
        config
    }

    fn server_config(&self, node: &HostPort, address: &Address) -> ServerConfig {
        match address {
            #[cfg(unix)]
            Address::Socket(path) => ServerConfig::Unix { path: path.into() },
            Address::Tcp(address) => ServerConfig::Centralized {
                server: tls::server(self.tls.as_ref(), node, *address),
            },
        }
    }

    fn connection(&self) -> ConnectionConfig {
        ConnectionConfig {
            connection_timeout: self.budget.connection(),
            // fred sends these commands while connecting, which has this limit as a whole.
            internal_command_timeout: self.budget.connection(),
            max_command_attempts: 1,
            max_redirections: 0,
            auto_client_setname: false,
            reconnect_on_auth_error: false,
            tcp: tcp(),
            ..ConnectionConfig::default()
        }
    }

    fn performance(&self, purpose: Purpose) -> PerformanceConfig {
        PerformanceConfig {
            // The callers have their own deadlines.
            default_command_timeout: Duration::ZERO,
            broadcast_channel_capacity: match purpose {
                // fred makes eight such channels per client and allocates them in advance.
                Purpose::Commands => 8,
                Purpose::Messages => MESSAGE_BACKLOG,
            },
            ..PerformanceConfig::default()
        }
    }
}

/// The kernel notices a peer that vanished silently, even on an idle connection.
fn tcp() -> TcpConfig {
    let keepalive = TcpKeepalive::new()
        .with_time(SILENCE)
        .with_interval(SILENCE / 2);
    TcpConfig {
        nodelay: Some(true),
        keepalive: Some(keepalive),
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        user_timeout: Some(SILENCE * 2),
        ..TcpConfig::default()
    }
}

fn no_answer(limit: Duration) -> String {
    format!("no answer within {} ms", limit.as_millis())
}

fn ending(ended: Result<Result<(), fred::error::Error>, JoinError>) -> String {
    match ended {
        Ok(Err(failure)) => error::describe(&failure),
        Ok(Ok(())) | Err(_) => "the connection was closed at once".to_owned(),
    }
}

/// Quotes a word for a command on one line, which is how fred sends `HELLO`. Otherwise a space or a
/// quote in a password would end it, and a line break would begin another command.
fn inline(word: String) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word;
    }
    let mut quoted = String::from("\"");
    for byte in word.bytes() {
        match char::from(byte) {
            letter if letter.is_ascii_alphanumeric() => quoted.push(letter),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}

fn login(credentials: Option<&Credentials>) -> (Option<String>, Option<String>) {
    match credentials {
        Some(Credentials { username, password }) => {
            (username.clone(), Some(password.expose().to_owned()))
        }
        None => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::inline;

    #[test]
    fn a_word_stays_one_word() {
        for (word, line) in [
            ("s3cret!#%+", "s3cret!#%+"),
            ("", "\"\""),
            ("two words", "\"two\\x20words\""),
            ("a\"b'c\\", "\"a\\x22b\\x27c\\x5c\""),
            ("x\r\nFLUSHALL", "\"x\\x0d\\x0aFLUSHALL\""),
            ("\u{416}", "\"\\xd0\\x96\""),
        ] {
            assert_eq!(inline(word.to_owned()), line);
        }
    }
}
