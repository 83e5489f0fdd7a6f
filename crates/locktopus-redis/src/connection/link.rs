//! A connection that is made on demand and replaced when dead, shared by its callers.

use std::fmt;
use std::sync::{Arc, Mutex};

use locktopus_protocol::backoff::Redial;
use locktopus_protocol::sentinels::Target;
use locktopus_protocol::{ClientError, HostPort, lock};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection::dial::Dialer;
use crate::connection::health::Listener;
use crate::connection::keepalive;
use crate::connection::send::Live;
use crate::connection::sentinel;

/// Holds one connection.
pub(crate) struct Link {
    target: Target,
    dialer: Arc<Dialer>,
    listener: Option<Arc<dyn Listener>>,
    current: Mutex<Current>,
}

/// The current connection, and when the next attempt to connect may start.
struct Current {
    state: State,
    redial: Redial,
    /// Why there is no connection: the error of the last attempt.
    why: String,
}

impl Current {
    /// Discards a dead connection.
    fn note_loss(&mut self) {
        let State::Ready(live) = &self.state else {
            return;
        };
        let health = live.health();
        if health.is_dead() {
            self.why = format!("{}: {}", health.server(), health.reason());
            self.redial.lost(Instant::now());
            self.state = State::Idle;
        }
    }
}

type Attempt = watch::Receiver<Option<Result<Live, ClientError>>>;

enum State {
    Idle,
    /// One attempt, shared by all callers. It continues if they give up, for the next caller.
    Dialing(Attempt),
    Ready(Live),
    Closed,
}

impl Link {
    /// Creates a link that is not connected yet. With a `listener`, the connection is for
    /// subscriptions and is checked periodically.
    pub(crate) fn new(
        target: Target,
        dialer: Arc<Dialer>,
        listener: Option<Arc<dyn Listener>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            target,
            dialer,
            listener,
            current: Mutex::new(Current {
                state: State::Idle,
                redial: Redial::new(crate::connection::NAME),
                why: "the connection was lost".to_owned(),
            }),
        })
    }

    /// Returns the connection, after connecting if needed. During the back-off pause it fails with
    /// the error of the last attempt.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<Live, ClientError> {
        let mut attempt = {
            let current = &mut *lock(&self.current);
            match &current.state {
                State::Ready(live) if !live.health().is_dead() => return Ok(live.clone()),
                State::Closed => return Err(closed()),
                // A dropped sender means that the attempt died with its runtime.
                State::Dialing(attempt) if attempt.has_changed().is_ok() => attempt.clone(),
                State::Idle | State::Dialing(_) | State::Ready(_) => {
                    self.dial_unless_paused(current)?
                }
            }
        };
        match attempt.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            Ok(None) | Err(_) => Err(ClientError::NotSent(
                "the attempt to connect was given up; its runtime has ended, or was built without `enable_all`".to_owned(),
            )),
        }
    }

    /// The connection, if there is one.
    pub(crate) fn peek(&self) -> Option<Live> {
        match &lock(&self.current).state {
            State::Ready(live) if !live.health().is_dead() => Some(live.clone()),
            State::Idle | State::Dialing(_) | State::Ready(_) | State::Closed => None,
        }
    }

    /// A caller timed out: checks the connection in the background. The check has the time limit of
    /// one answer, which is longer than any command may block the connection.
    pub(crate) fn suspect(&self) {
        let limit = self.dialer.budget().answer();
        let Some(live) = self.peek() else { return };
        if !live.health().begin_check() {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(keepalive::check(live, limit))),
            Err(_) => live.health().kill("a caller waited in vain"),
        }
    }

    /// Closes the connection for good.
    pub(crate) fn close(&self) {
        let before = std::mem::replace(&mut lock(&self.current).state, State::Closed);
        if let State::Ready(live) = before {
            live.health().retire();
        }
    }

    fn start(self: &Arc<Self>) -> Attempt {
        let (sender, attempt) = watch::channel(None);
        let link = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = link.dial().await;
            let outcome = link.settle(outcome);
            sender.send_replace(Some(outcome));
        });
        attempt
    }

    fn dial_unless_paused(self: &Arc<Self>, current: &mut Current) -> Result<Attempt, ClientError> {
        current.note_loss();
        if let Some(wait) = current.redial.wait(Instant::now()) {
            return Err(ClientError::NotSent(format!(
                "{}; the next attempt is made in {} ms",
                current.why,
                wait.as_millis()
            )));
        }
        let attempt = self.start();
        current.state = State::Dialing(attempt.clone());
        Ok(attempt)
    }

    fn settle(self: &Arc<Self>, outcome: Result<Live, ClientError>) -> Result<Live, ClientError> {
        let mut current = lock(&self.current);
        if matches!(current.state, State::Closed) {
            if let Ok(live) = &outcome {
                live.health().retire();
            }
            return Err(closed());
        }
        match &outcome {
            Ok(live) => {
                current.redial.connected(Instant::now());
                current.state = State::Ready(live.clone());
            }
            Err(error) => {
                current.redial.failed(Instant::now());
                current.why = match error {
                    ClientError::NotSent(why) => why.clone(),
                    other => other.to_string(),
                };
                current.state = State::Idle;
            }
        }
        drop(current);
        if let Ok(live) = &outcome {
            let link = Arc::downgrade(self);
            live.health().when_killed(move || {
                if let Some(link) = link.upgrade() {
                    link.let_go();
                }
            });
        }
        outcome
    }

    /// Closes a dead connection. Otherwise the server would keep sending to it until a caller needs
    /// a new one.
    fn let_go(&self) {
        lock(&self.current).note_loss();
        self.dialer.note_change();
    }

    async fn dial(&self) -> Result<Live, ClientError> {
        let live = match &self.target {
            Target::Server(server) => self.dial_server(server).await?,
            Target::Primary(sentinels) => {
                let named = sentinels.primary().await?;
                let live = self.dial_server(named.server()).await?;
                sentinel::follow(sentinels, named, live, self.dialer.budget().answer()).await?
            }
        };
        if live.health().is_dead() {
            let server = live.health().server();
            return Err(ClientError::NotSent(format!(
                "{server} closed the connection at once"
            )));
        }
        if let Some(listener) = &self.listener {
            let (limit, disturbances) = (self.dialer.budget().answer(), listener.disturbances());
            let task = tokio::spawn(keepalive::watch(live.clone(), limit, disturbances));
            live.health().accompany(task.abort_handle());
        }
        Ok(live)
    }

    async fn dial_server(&self, server: &HostPort) -> Result<Live, ClientError> {
        self.dialer.dial(server, self.listener.as_ref()).await
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

fn closed() -> ClientError {
    ClientError::NotSent("the client was closed".to_owned())
}
