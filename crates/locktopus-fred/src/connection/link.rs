//! Keeps a connection to one target alive by dialling again when it dies.
//!
//! A link never queues commands. A caller gets a connection that is up. Otherwise it waits, with
//! nothing sent, for the current attempt to connect. In the pause after a failure it gets that
//! error.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use locktopus_protocol::backoff::Redial;
use locktopus_protocol::sentinels::Target;
use locktopus_protocol::{ClientError, PushEvent};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::conn::Conn;
use crate::connection::dial::{Dialer, Purpose};
use crate::connection::error;
use crate::connection::messages;

/// How often to ping an idle subscription connection, to notice its death.
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
    /// A link for commands, or for subscriptions, whose messages and disruptions go to `events`.
    pub(crate) fn new(
        dialer: Arc<Dialer>,
        target: Target,
        events: Option<UnboundedSender<PushEvent>>,
    ) -> Self {
        let (publish, state) = watch::channel(State::default());
        let suspicion = Arc::new(Notify::new());
        let closed = CancellationToken::new();
        let keeper = Keeper {
            dialer,
            target,
            purpose: match events {
                None => Purpose::Commands,
                Some(_) => Purpose::Messages,
            },
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

    /// Returns the connection, after the current attempt to connect if needed. During the back-off
    /// pause it fails with the error of the last attempt.
    pub(crate) async fn conn(&self) -> Result<Arc<Conn>, ClientError> {
        if let Some(conn) = self.current() {
            return Ok(conn);
        }
        let seen = self.state.borrow().failures;
        self.conn_unless(|state| state.paused || state.failures > seen)
            .await
    }

    /// Returns the connection, or the error of the first attempt to connect.
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

    /// The connection, if it is up now.
    pub(crate) fn current(&self) -> Option<Arc<Conn>> {
        self.state
            .borrow()
            .conn
            .as_ref()
            .filter(|conn| !conn.is_dead())
            .map(Arc::clone)
    }

    /// Drops the connection, so that the link makes a new one.
    pub(crate) fn drop_current(&self) {
        if let Some(conn) = self.current() {
            conn.give_up("its subscriptions were in the wrong place");
        }
    }

    /// Triggers a check of the connection, which is replaced if it does not answer.
    pub(crate) fn suspect(&self) {
        self.suspicion.notify_one();
    }

    /// Closes the connection and stops dialling.
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
                        state.why = match &self.target {
                            Target::Server(server) => format!("cannot connect to {server}: {why}"),
                            Target::Primary(_) => why,
                        };
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

    /// Watches one connection until it dies. Returns whether subscriptions were lost.
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
                Purpose::Commands => conn.answers(patience).await,
                // A demoted primary keeps answering, and subscriptions on it would last for ever.
                Purpose::Messages => conn.serves(patience).await,
            };
            if !good {
                tracing::debug!(target = %self.target, "the connection does not serve any more, replacing it");
                conn.give_up("the server does not serve any more");
                return;
            }
        }
    }

    /// Resolves when the sentinels name a newer primary than this connection's.
    async fn replaced(&self, conn: &Conn) {
        match self.target.sentinels().zip(conn.as_named()) {
            Some((sentinels, named)) => sentinels.replaced(named).await,
            None => std::future::pending().await,
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
            // The receiver may be gone.
            let _gone = events.send(PushEvent::Disrupted { reason });
        }
    }
}
