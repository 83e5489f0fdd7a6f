//! Keeps one connection to one target alive, by dialling again whenever it dies.
//!
//! A link never queues: a caller either gets a connection that is up, or waits for the outcome of
//! the dialling in progress with nothing sent, or hears in the pause after a failure what that was.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use locktopus_protocol::backoff::Redial;
use locktopus_protocol::{ClientError, PushEvent};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::conn::Conn;
use crate::connection::dial::{Dialer, Purpose, Target};
use crate::connection::error;
use crate::connection::messages;

/// An idle subscription connection is pinged this often; nothing else would notice its death.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A connection that is replaced when it dies.
pub(crate) struct Link {
    state: watch::Receiver<State>,
    suspicion: Arc<Notify>,
    closed: CancellationToken,
}

#[derive(Default)]
struct State {
    conn: Option<Arc<Conn>>,
    failures: usize,
    why: String,
    /// In the pause after a failure.
    paused: bool,
    closed: bool,
}

impl Link {
    /// A link for commands.
    pub(crate) fn for_commands(dialer: Arc<Dialer>, target: Target) -> Self {
        Self::spawn(dialer, target, Purpose::Commands, None)
    }

    /// A link for commands that may block for almost as long as a command may take.
    pub(crate) fn for_blocking(dialer: Arc<Dialer>, target: Target) -> Self {
        Self::spawn(dialer, target, Purpose::Blocking, None)
    }

    /// A link for subscriptions, whose messages and mishaps go to `events`.
    pub(crate) fn for_messages(
        dialer: Arc<Dialer>,
        target: Target,
        events: UnboundedSender<PushEvent>,
    ) -> Self {
        Self::spawn(dialer, target, Purpose::Messages, Some(events))
    }

    fn spawn(
        dialer: Arc<Dialer>,
        target: Target,
        purpose: Purpose,
        events: Option<UnboundedSender<PushEvent>>,
    ) -> Self {
        let (publish, state) = watch::channel(State::default());
        let suspicion = Arc::new(Notify::new());
        let closed = CancellationToken::new();
        let keeper = Keeper {
            dialer,
            target,
            purpose,
            events,
            publish,
            suspicion: Arc::clone(&suspicion),
        };
        let stop = closed.clone();
        tokio::spawn(async move {
            // Boxed once per link: the handshake's future is large.
            stop.run_until_cancelled(Box::pin(keeper.keep())).await;
            keeper.farewell();
        });
        Self {
            state,
            suspicion,
            closed,
        }
    }

    /// The connection that is up, or the outcome of the dialling in progress. In the pause after a
    /// failed attempt, what that one said.
    pub(crate) async fn conn(&self) -> Result<Arc<Conn>, ClientError> {
        if let Some(conn) = self.current() {
            return Ok(conn);
        }
        let seen = self.state.borrow().failures;
        self.conn_unless(|state| state.paused || state.failures > seen)
            .await
    }

    /// The connection, or the outcome of the first attempt to make one.
    pub(crate) async fn first_conn(&self) -> Result<Arc<Conn>, ClientError> {
        self.conn_unless(|state| state.failures > 0).await
    }

    async fn conn_unless(
        &self,
        given_up: impl Fn(&State) -> bool + Send + Sync,
    ) -> Result<Arc<Conn>, ClientError> {
        let mut state = self.state.clone();
        loop {
            {
                let now = state.borrow_and_update();
                if now.closed {
                    return Err(error::closed());
                }
                if let Some(conn) = now.conn.as_ref().filter(|conn| !conn.is_dead()) {
                    return Ok(Arc::clone(conn));
                }
                if given_up(&now) {
                    return Err(ClientError::NotSent(now.why.clone()));
                }
            }
            if state.changed().await.is_err() {
                return Err(error::closed());
            }
        }
    }

    /// The connection, if it is up right now.
    pub(crate) fn current(&self) -> Option<Arc<Conn>> {
        self.state
            .borrow()
            .conn
            .as_ref()
            .filter(|conn| !conn.is_dead())
            .map(Arc::clone)
    }

    /// Drops the connection, which is replaced.
    pub(crate) fn drop_current(&self) {
        if let Some(conn) = self.current() {
            conn.give_up("its subscriptions were in the wrong place");
        }
    }

    /// Has the connection checked, and replaced if it does not answer.
    pub(crate) fn suspect(&self) {
        self.suspicion.notify_one();
    }

    /// Ends the connection and the dialling.
    pub(crate) fn close(&self) {
        self.closed.cancel();
        if let Some(conn) = self.current() {
            conn.kill();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("up", &self.current().is_some())
            .finish_non_exhaustive()
    }
}

struct Keeper {
    dialer: Arc<Dialer>,
    target: Target,
    purpose: Purpose,
    events: Option<UnboundedSender<PushEvent>>,
    publish: watch::Sender<State>,
    suspicion: Arc<Notify>,
}

impl Keeper {
    async fn keep(&self) {
        let mut redial = Redial::new(crate::connection::NAME);
        let mut lost_subscriptions = false;
        loop {
            match self.dialer.dial(&self.target, self.purpose).await {
                Ok(conn) => {
                    redial.connected(Instant::now());
                    lost_subscriptions = self.live(Arc::new(conn), lost_subscriptions).await;
                    redial.lost(Instant::now());
                }
                Err(why) => {
                    tracing::debug!(target = %self.target, %why, "cannot connect");
                    redial.failed(Instant::now());
                    self.publish.send_modify(|state| {
                        state.failures += 1;
                        state.why = format!("cannot connect to {}: {why}", self.target);
                        state.paused = true;
                    });
                }
            }
            if let Some(pause) = redial.wait(Instant::now()) {
                self.publish.send_modify(|state| state.paused = true);
                tokio::time::sleep(pause).await;
            }
            self.publish.send_modify(|state| state.paused = false);
        }
    }

    /// Looks after one connection until it dies; says whether subscriptions died with it.
    async fn live(&self, conn: Arc<Conn>, subscriptions_were_lost: bool) -> bool {
        if let Some(events) = &self.events {
            messages::forward(&conn, events.clone());
        }
        self.publish
            .send_modify(|state| state.conn = Some(Arc::clone(&conn)));
        if subscriptions_were_lost {
            self.disrupted("subscription connection rebuilt");
        }
        self.watch_over(&conn).await;
        conn.kill();
        self.publish.send_modify(|state| {
            state.conn = None;
            state.why = format!("{}: {}", self.target, conn.verdict());
        });
        self.dialer.note_change();
        let lost = conn.subscribed.load(Ordering::SeqCst);
        if lost {
            self.disrupted("subscription connection lost");
        }
        lost || subscriptions_were_lost
    }

    async fn watch_over(&self, conn: &Conn) {
        let death = conn.death();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                () = death.cancelled() => return,
                () = self.replaced(conn) => {
                    conn.give_up("the sentinels name another primary");
                    return;
                }
                () = self.suspicion.notified() => {}
                _tick = heartbeat.tick(), if self.purpose == Purpose::Messages => {}
            }
            let patience = self.dialer.budget().answer();
            let good = match self.purpose {
                Purpose::Commands | Purpose::Blocking => conn.answers(patience).await,
                // A demoted primary goes on answering, and subscriptions on it go on for ever.
                Purpose::Messages => conn.serves(patience).await,
            };
            if !good {
                tracing::debug!(target = %self.target, "the connection does not serve any more, replacing it");
                conn.give_up("the server does not serve any more");
                return;
            }
        }
    }

    /// Resolves when the sentinels name a newer primary than the one that this connection leads to.
    async fn replaced(&self, conn: &Conn) {
        match (&self.target, conn.as_named()) {
            (Target::Primary(sentinels), Some(named)) => sentinels.replaced(named).await,
            _ => std::future::pending().await,
        }
    }

    fn farewell(&self) {
        let last = self.publish.send_replace(State {
            closed: true,
            ..State::default()
        });
        if let Some(conn) = last.conn {
            conn.kill();
            if conn.subscribed.load(Ordering::SeqCst) {
                self.disrupted("subscription connection closed");
            }
        }
    }

    fn disrupted(&self, reason: &'static str) {
        if let Some(events) = &self.events {
            // Nobody listens any more when the receiver is gone.
            let _gone = events.send(PushEvent::Disrupted { reason });
        }
    }
}
