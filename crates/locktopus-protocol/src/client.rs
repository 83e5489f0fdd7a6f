//! The seam under [`RedisBackend`](crate::RedisBackend): what it needs from a Redis client library.
//!
//! An adapter is deliberately thin. It sends one raw command to the node that serves a slot,
//! subscribes, and reports when the subscription may have missed something. Scripts, retries, the
//! set of wanted channels, decoding and every decision about locks are above it, once for all
//! clients.

pub mod backoff;
pub(crate) mod budget;
mod cluster_map;
pub(crate) mod connect_error;
pub(crate) mod credentials;
pub mod options;
#[cfg(feature = "tls")]
pub(crate) mod prepared_tls;
mod reply;
pub(crate) mod role;
pub(crate) mod secret_filter;
pub mod sentinels;
pub mod slot_map;
mod slot_table;
#[cfg(test)]
pub(crate) mod stub;
#[cfg(feature = "tls")]
pub mod tls;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

pub use reply::Reply;

/// A Redis client library, reduced to what a lock needs.
///
/// # Contract
///
/// * **Never repeat a command that may have run.** Turn off the client's own retries; write a
///   command at most once per call. You may follow a `MOVED` or `ASK` redirect, because the first
///   node refused and nothing ran. Answer anything else with an error.
/// * **Deadlines are the caller's business.** [`RedisBackend`](crate::RedisBackend) wraps every
///   call in a timeout and reports a passed one to [`RedisClient::timed_out`], so that the adapter
///   can replace a connection that accepts bytes and never answers.
/// * Commands and subscriptions use different connections, so that a slow script delays no wake-up.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let client: std::sync::Arc<dyn locktopus_protocol::RedisClient> = unimplemented!();
/// use locktopus_protocol::{ClientError, NodeReply, Pipelined, Reply, Route, slot::key_slot};
///
/// let slot = Route::Slot(key_slot(b"invoice:42"));
/// match client.command(slot, &[b"GET", b"invoice:42"]).await {
///     Ok(Reply::Nil) => println!("it is not there"),
///     Ok(reply) => println!("{reply:?}"),
///     Err(ClientError::NotSent(why)) => println!("it did not run: {why}"),
///     Err(error) => return Err(error.into()),
/// }
/// let Pipelined { node, replies } = client.pipeline(Route::Any, &[&[b"PING"], &[b"TIME"]]).await?;
/// println!("{node}: {replies:?}");
/// for NodeReply { node, reply } in client.command_on_primaries(&[b"DBSIZE"]).await? {
///     println!("{node} of a {}: {reply:?}", client.deployment());
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// Errors must be honest: [`ClientError::Rejected`] only for an error reply of the server,
/// [`ClientError::NotSent`] only if no byte of the command can have left the process, and
/// [`ClientError::MaybeExecuted`] for everything else (I/O errors, closed connections, timeouts).
///
/// # Cancel safety
///
/// You may drop a returned future at any time; its command may still run.
#[async_trait]
pub trait RedisClient: fmt::Debug + Send + Sync + 'static {
    /// The name shown in errors, metrics and reports: `redis-rs` or `fred`.
    fn name(&self) -> &'static str;

    /// Which kind of deployment this client is connected to.
    fn deployment(&self) -> Deployment;

    /// Whether calls that are ready together share a request, if the deployment has one server.
    /// That spares a client most of its own work for each command, and costs a little for each
    /// call. The default is yes.
    fn shares_requests(&self) -> bool {
        true
    }

    /// Waits, if the client is just connecting, until it can write a command at once. Fails as a
    /// command would that could not be sent. Sends nothing.
    ///
    /// Requests that share one wait here, so that those given up meanwhile are not sent. Only used
    /// if [`shares_requests`](Self::shares_requests) says yes. By default it does not wait.
    async fn ready(&self) -> Result<(), ClientError> {
        Ok(())
    }

    /// Sends one raw command (`args[0]` is its name) to the primary that serves `route`.
    async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError>;

    /// Sends several raw commands at once to the primary that serves `route`. They use a connection
    /// that carries nothing else, so a blocking one (`WAIT`) delays only other callers of this
    /// method.
    ///
    /// The commands run in order on one connection, perhaps with those of other calls in between.
    /// Redirects are not followed: each refusal is among the answers. `Err` if any answer is
    /// missing.
    async fn pipeline(&self, route: Route, commands: &[&[&[u8]]])
    -> Result<Pipelined, ClientError>;

    /// Sends one raw command to every primary; each answer comes with the node's address.
    ///
    /// One node's failure does not hide the others' answers. `Err` only if the list of nodes itself
    /// is unavailable.
    async fn command_on_primaries(&self, args: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError>;

    /// Subscribes to all of `channels` and returns once the server has confirmed every one.
    ///
    /// Idempotent: it subscribes again to a channel already subscribed, and waits for that
    /// confirmation. It first replaces a lost connection. Shard channels of different slots may be
    /// mixed; the adapter splits them into one command per slot.
    ///
    /// The server must be a primary. If it [says](crate::says_replica) that it is a replica, now or
    /// later, treat the connection as failed, because scripts on the primary do not count its
    /// subscribers.
    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError>;

    /// Drops the subscriptions. Best effort: a message may still arrive afterwards.
    async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError>;

    /// The stream of messages and disruptions. The first caller gets it, later ones get `None`.
    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>>;

    /// Tells the adapter that a caller gave up waiting for an answer on `route`.
    fn timed_out(&self, route: Route);

    /// Tells the adapter that the publishing server counted no subscriber for a channel. So the
    /// message arrived through another server, such as a replica, and its subscribers get no
    /// grants. The adapter drops the connection that carries the channel, reports
    /// [`PushEvent::Disrupted`], and next subscribes at the current primary.
    ///
    /// The default does nothing; then each waiter must poll the server for its grant.
    fn subscription_misplaced(&self, channel: &[u8]) {
        let _ = channel;
    }

    /// The highest configuration epoch that sentinels have given their primary; each failover
    /// raises it. Connects first if needed. `None` without sentinels, or if they do not tell.
    ///
    /// It shows the quarantine that a server was replaced and became the primary again. With the
    /// default, `None`, such a server looks as if it had never been away.
    async fn configuration_epoch(&self) -> Option<u64> {
        None
    }

    /// How many connections for commands or messages this client has started to open. It grows
    /// before anything is sent over a new one, so two equal readings around a command mean that the
    /// command used an older connection.
    fn generation(&self) -> u64;

    /// A client for the same servers, with connections and tasks on the current runtime. The
    /// default, `None`, is for clients that depend on no runtime or cannot be recreated.
    ///
    /// It sends nothing and returns at once. The first command waits for the connection.
    fn on_this_runtime(&self) -> Option<Arc<dyn RedisClient>> {
        None
    }

    /// Counts possible changes of the server: a connection was lost or given up, or a slot moved.
    ///
    /// The next server may lack the last writes of the previous one. So after a change
    /// [`RedisBackend`](crate::RedisBackend) repeats the releases of the last seconds. By default
    /// the count never grows; then a lock whose release is lost in a failover stays held until its
    /// lease expires.
    fn server_changes(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }

    /// Closes every connection. Later calls fail with [`ClientError::NotSent`].
    async fn close(&self);
}

/// The kind of deployment behind a client.
///
/// ```
/// use locktopus_protocol::Deployment;
/// assert_eq!(Deployment::Cluster.as_str(), "cluster");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deployment {
    /// One server.
    Standalone,
    /// A primary found through Sentinel.
    Sentinel,
    /// A Redis or Valkey Cluster.
    Cluster,
}

impl Deployment {
    /// The word used in reports: `standalone`, `sentinel` or `cluster`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
        }
    }
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which node a command goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// The primary that serves this hash slot; outside a cluster, the primary.
    Slot(u16),
    /// Any primary.
    Any,
}

/// A pub/sub channel and its flavour.
///
/// The flavours are disjoint on the server: a subscriber of one never sees messages of the other.
///
/// ```
/// use locktopus_protocol::{Channel, ChannelFlavour};
/// let channel = Channel { name: "redisson_lock__channel:{invoice:42}".into(), flavour: ChannelFlavour::Plain };
/// assert_ne!(channel.flavour, ChannelFlavour::Sharded);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Channel {
    /// The channel's name.
    pub name: Bytes,
    /// `SUBSCRIBE` or `SSUBSCRIBE`.
    pub flavour: ChannelFlavour,
}

/// `SUBSCRIBE`/`PUBLISH` or `SSUBSCRIBE`/`SPUBLISH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelFlavour {
    /// Classic pub/sub; in a cluster the message reaches every node.
    Plain,
    /// Sharded pub/sub (Redis and Valkey 7.0 and later, clusters only).
    Sharded,
}

/// An event on the subscription connection.
///
/// ```
/// use locktopus_protocol::{PushEvent, RedisClient};
/// /// What an adapter's messages are for.
/// async fn listen(client: &dyn RedisClient) {
///     let mut events = client.take_events().expect("the first caller");
///     while let Some(event) = events.recv().await {
///         match event {
///             PushEvent::Message { channel, payload } => println!("{channel:?}: {payload:?}"),
///             PushEvent::Disrupted { reason } => println!("subscribe again, and look: {reason}"),
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushEvent {
    /// A published message of either flavour.
    Message {
        /// The channel it was published on.
        channel: Bytes,
        /// The published message.
        payload: Bytes,
    },
    /// Messages may have been missed, or subscriptions may be gone: a connection was lost or
    /// rebuilt, a slot moved away, a receiver lagged. The hub subscribes to every wanted channel
    /// again and then makes every waiter check its lock.
    Disrupted {
        /// The event in words for logs, without addresses or secrets.
        reason: &'static str,
    },
}

/// The answer of one node to [`RedisClient::command_on_primaries`].
#[derive(Debug)]
pub struct NodeReply {
    /// `host:port` as the client knows it.
    pub node: String,
    /// The node's answer.
    pub reply: Result<Reply, ClientError>,
}

/// The answers to [`RedisClient::pipeline`].
#[derive(Debug)]
pub struct Pipelined {
    /// `host:port` of the node that answered, as the client knows it.
    pub node: String,
    /// The answers, in the order of the commands.
    pub replies: Vec<Result<Reply, ClientError>>,
}

/// Why a command has no answer. The variants tell what matters to a lock: whether it may have run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum ClientError {
    /// The server answered with an error.
    #[error("{code} {message}")]
    Rejected {
        /// The first word of the error: `MOVED`, `READONLY`, `NOSCRIPT`, `WRONGTYPE`, ...
        code: String,
        /// The rest of the error, as the server wrote it.
        message: String,
    },
    /// The command never left this process.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The command may have run: the connection failed, or no answer came in time.
    #[error("no answer: {0}")]
    MaybeExecuted(String),
}

impl ClientError {
    /// Splits a server's error line into code and message.
    ///
    /// ```
    /// use locktopus_protocol::ClientError;
    /// let error = ClientError::rejected("READONLY You can't write against a read only replica.");
    /// assert!(matches!(error, ClientError::Rejected { code, .. } if code == "READONLY"));
    /// ```
    #[must_use]
    pub fn rejected(line: &str) -> Self {
        let line = line.trim();
        let (code, message) = line.split_once(' ').unwrap_or((line, ""));
        Self::Rejected {
            code: code.to_owned(),
            message: message.to_owned(),
        }
    }
}
