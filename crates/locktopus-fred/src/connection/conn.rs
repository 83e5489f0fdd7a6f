//! A fred client with exactly one TCP connection, which dies with it.
//!
//! fred's own router reconnects. While disconnected it queues commands and writes them later, even
//! after their callers have given up: a late acquire would take a lock with no owner. While it
//! reconnects to one cluster node, it serves no other. So here fred runs without a reconnect
//! policy. When the connection fails, its queue dies with it, and
//! [`Link`](crate::connection::link::Link) dials a new one.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::Resp3Frame;
use futures_util::future::join_all;
use locktopus_protocol::sentinels::NamedPrimary;
use locktopus_protocol::{ClientError, Pipelined, ROLE_QUESTION, Reply, says_replica};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::connection::error;
use crate::connection::reply;
use crate::connection::request::Request;

/// Limit for commands that are queued in fred or in flight. fred has no limit, and a caller that
/// gives up leaves its command there. This is enough for 13,000 commands a second at 150 ms.
const UNDER_WAY: usize = 2048;

/// A live connection.
pub(crate) struct Conn {
    client: Client,
    router: AbortHandle,
    dead: CancellationToken,
    /// The server to connect to, as configured.
    target: String,
    /// The sentinels' answer that led to this server.
    named: Option<NamedPrimary>,
    /// Why it was given up, if it was.
    verdict: OnceLock<String>,
    entered: AtomicU64,
    answered: AtomicU64,
    /// Permits for commands in flight.
    room: Arc<Semaphore>,
    /// Set when a subscription is confirmed: from then on a loss of this connection matters.
    pub(crate) subscribed: AtomicBool,
}

impl Conn {
    /// Takes over a connected client and the task that drives it.
    pub(crate) fn new<T: Send + 'static>(
        client: Client,
        router: JoinHandle<T>,
        target: String,
    ) -> Self {
        let dead = CancellationToken::new();
        let conn = Self {
            client,
            router: router.abort_handle(),
            dead: dead.clone(),
            target,
            named: None,
            verdict: OnceLock::new(),
            entered: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            room: Arc::new(Semaphore::new(UNDER_WAY)),
            subscribed: AtomicBool::new(false),
        };
        // Also if this task ends with its runtime.
        let dead = dead.drop_guard();
        tokio::spawn(async move {
            let _ended = router.await;
            drop(dead);
        });
        conn
    }

    /// Records that sentinels named this server as the primary.
    pub(crate) fn named(mut self, named: NamedPrimary) -> Self {
        self.named = Some(named);
        self
    }

    /// The sentinels' answer that led to this server.
    pub(crate) fn as_named(&self) -> Option<&NamedPrimary> {
        self.named.as_ref()
    }

    /// The fred client, for calls that only it offers.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// `host:port` of the server at the other end, or else a description.
    pub(crate) fn server(&self) -> String {
        let servers = self.client.active_connections();
        // fred lists only connections whose id it can read (CLIENT ID), which not every user is
        // permitted to.
        servers
            .first()
            .map_or_else(|| self.target.clone(), ToString::to_string)
    }

    /// Sends one command and waits for its answer. Never sends it twice.
    pub(crate) async fn send(&self, request: Request) -> Result<Reply, ClientError> {
        let room = self.room(1).await?;
        self.send_in(Some(room), request).await
    }

    /// Sends several commands in a row. Returns the answer to each.
    pub(crate) async fn send_each(&self, requests: Vec<Request>) -> Result<Pipelined, ClientError> {
        let node = self.server();
        let mut room = self.room(requests.len()).await?;
        // In this order: the first poll of each queues it.
        let requests = requests.into_iter();
        let answers = join_all(requests.map(|request| self.send_in(room.split(1), request)));
        let replies = answers.await.into_iter().map(|answer| match answer {
            Ok(reply) => Ok(Ok(reply)),
            Err(refused @ ClientError::Rejected { .. }) => Ok(Err(refused)),
            Err(failed) => Err(failed),
        });
        Ok(Pipelined {
            node,
            replies: replies.collect::<Result<_, _>>()?,
        })
    }

    /// Waits until there is room for these commands. A caller dropped meanwhile has sent nothing.
    pub(crate) async fn room(&self, commands: usize) -> Result<OwnedSemaphorePermit, ClientError> {
        let commands = u32::try_from(commands.min(UNDER_WAY)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(commands);
        let lost = || ClientError::NotSent(self.verdict().to_owned());
        tokio::select! {
            biased;
            room = room => room.map_err(|_closed| lost()),
            () = self.dead.cancelled() => Err(lost()),
        }
    }

    /// Sends one command in the given room. The first poll queues it.
    pub(crate) async fn send_in(
        &self,
        room: Option<OwnedSemaphorePermit>,
        request: Request,
    ) -> Result<Reply, ClientError> {
        let ticket = self.entered.fetch_add(1, Ordering::SeqCst) + 1;
        let first_in_line = self.answered.load(Ordering::SeqCst) == ticket - 1;
        let client = self.client.clone();
        // Boxed, because fred's future takes kilobytes, which every future around it would copy.
        let call = Box::pin(async move { client.custom_raw(request.name, request.args).await });
        let call = Call {
            work: Some(call),
            begun: false,
            room,
            dead: self.dead.clone(),
        };
        let outcome = self.while_alive(call).await?;
        let alone = first_in_line && self.entered.load(Ordering::SeqCst) == ticket;
        self.answered.fetch_add(1, Ordering::SeqCst);
        reply::from_frame(outcome.map_err(|error| translate(&error, alone))?)
    }

    /// Waits for work in fred, but only while the connection lives.
    ///
    /// fred never answers a command that arrives after its router has ended.
    pub(crate) async fn while_alive<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, ClientError> {
        tokio::select! {
            biased;
            outcome = work => Ok(outcome),
            () = self.dead.cancelled() => {
                Err(ClientError::MaybeExecuted("the connection was lost".to_owned()))
            }
        }
    }

    /// Whether the server reports that it is a replica, where subscriptions do not count.
    pub(crate) async fn is_replica(&self) -> Result<bool, ClientError> {
        match self.send(Request::of(ROLE_QUESTION, Vec::new())).await {
            Ok(role) => Ok(says_replica(&role)),
            Err(ClientError::Rejected { .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Whether the server answers within `limit` and is not a replica.
    pub(crate) async fn serves(&self, limit: Duration) -> bool {
        let role = tokio::time::timeout(limit, self.is_replica()).await;
        matches!(role, Ok(Ok(false)))
    }

    /// Whether the server answers anything within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        let ping = self.send(Request::of("PING", Vec::new()));
        matches!(
            tokio::time::timeout(limit, ping).await,
            Ok(Ok(_) | Err(ClientError::Rejected { .. }))
        )
    }

    /// Drops the connection and everything queued on it, at once.
    pub(crate) fn kill(&self) {
        self.dead.cancel();
        self.router.abort();
    }

    /// Like [`Self::kill`]. Callers of the link get this reason until there is a lasting
    /// connection.
    pub(crate) fn give_up(&self, why: impl Into<String>) {
        let _first = self.verdict.set(why.into());
        self.kill();
    }

    /// Why it ended.
    pub(crate) fn verdict(&self) -> &str {
        self.verdict
            .get()
            .map_or("the connection was lost", |why| why)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.is_cancelled()
    }

    /// Cancelled when the connection dies.
    pub(crate) fn death(&self) -> CancellationToken {
        self.dead.clone()
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn")
            .field("dead", &self.is_dead())
            .finish_non_exhaustive()
    }
}

type Answer = Result<Resp3Frame, fred::error::Error>;

/// A command handed to fred. It keeps its permit until fred has an answer, even if its caller has
/// given up.
struct Call {
    work: Option<Pin<Box<dyn Future<Output = Answer> + Send>>>,
    begun: bool,
    room: Option<OwnedSemaphorePermit>,
    dead: CancellationToken,
}

impl Future for Call {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        self.begun = true;
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let (Some(work), true) = (self.work.take(), self.begun) else {
            return;
        };
        let (room, dead) = (self.room.take(), self.dead.clone());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let _answered = dead.run_until_cancelled(work).await;
                drop(room);
            });
        }
    }
}

/// Converts an error. fred takes CLUSTERDOWN for the end of a connection, and fails every command
/// in flight with that one server error. It is this command's own answer only if no other command
/// was on the connection.
fn translate(failure: &fred::error::Error, alone: bool) -> ClientError {
    if alone && failure.details().starts_with("CLUSTERDOWN") {
        ClientError::rejected(failure.details())
    } else {
        error::maybe_executed(failure)
    }
}
