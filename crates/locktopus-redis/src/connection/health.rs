//! The health of one connection, shared by all its users.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use locktopus_protocol::{HostPort, lock};
use redis::{PushInfo, PushKind};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Receives events of a connection, other than answers to commands.
pub(crate) trait Listener: Send + Sync {
    /// The server pushed something, or confirmed a subscription. Called by the task that drives the
    /// connection: must not block.
    fn pushed(&self, health: &Arc<Health>, push: PushInfo);

    /// The connection is no longer used. Called once.
    fn lost(&self, server: &HostPort, reason: &'static str);

    /// Whether this is still the right server to connect to. Polled.
    fn still_right(&self, _server: &HostPort) -> bool {
        true
    }

    /// Counts events that require polling `still_right` at once.
    fn disturbances(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }
}

/// The state of one connection.
pub(crate) struct Health {
    server: HostPort,
    dead: AtomicBool,
    /// Why the connection died.
    reason: OnceLock<&'static str>,
    checking: AtomicBool,
    listener: Option<Arc<dyn Listener>>,
    /// Tasks that end with the connection.
    company: Mutex<Vec<AbortHandle>>,
    when_killed: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Health {
    pub(crate) fn new(server: HostPort, listener: Option<Arc<dyn Listener>>) -> Arc<Self> {
        Arc::new(Self {
            server,
            dead: AtomicBool::new(false),
            reason: OnceLock::new(),
            checking: AtomicBool::new(false),
            listener,
            company: Mutex::new(Vec::new()),
            when_killed: Mutex::new(None),
        })
    }

    /// The server at the other end.
    pub(crate) fn server(&self) -> &HostPort {
        &self.server
    }

    pub(crate) fn listener(&self) -> Option<&Arc<dyn Listener>> {
        self.listener.as_ref()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Declares the connection dead. The next caller makes a new one.
    pub(crate) fn kill(&self, reason: &'static str) {
        let _first = self.reason.set(reason);
        if self.retire() {
            tracing::debug!(server = %self.server, reason, "connection given up");
            if let Some(listener) = &self.listener {
                listener.lost(&self.server, reason);
            }
            self.bury();
        }
    }

    /// Sets the action for when the connection is killed. If it is dead already, the action runs
    /// now.
    pub(crate) fn when_killed(&self, action: impl FnOnce() + Send + 'static) {
        *lock(&self.when_killed) = Some(Box::new(action));
        if self.is_dead() {
            self.bury();
        }
    }

    fn bury(&self) {
        let action = lock(&self.when_killed).take();
        if let Some(action) = action {
            action();
        }
    }

    /// Why it is no longer used.
    pub(crate) fn reason(&self) -> &'static str {
        self.reason.get().unwrap_or(&"the connection was lost")
    }

    /// Like [`Self::kill`], but intended, so the listener is not notified. False if it was dead
    /// already.
    pub(crate) fn retire(&self) -> bool {
        let first = !self.dead.swap(true, Ordering::AcqRel);
        self.dismiss();
        first
    }

    /// Ties a task to the life of the connection.
    pub(crate) fn accompany(&self, task: AbortHandle) {
        lock(&self.company).push(task);
        // It may have died before the task was registered.
        if self.is_dead() {
            self.dismiss();
        }
    }

    fn dismiss(&self) {
        for task in lock(&self.company).drain(..) {
            task.abort();
        }
    }

    /// True for the one caller that may check the connection now.
    pub(crate) fn begin_check(&self) -> bool {
        !self.is_dead() && !self.checking.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn end_check(&self) {
        self.checking.store(false, Ordering::Release);
    }

    /// Called by redis-rs for every push. Must not fail: redis-rs handles a failing sender badly.
    pub(crate) fn on_push(self: &Arc<Self>, push: PushInfo) {
        if push.kind == PushKind::Disconnection {
            self.kill("the connection was closed");
        } else if let Some(listener) = &self.listener {
            listener.pushed(self, push);
        }
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("server", &self.server)
            .field("dead", &self.is_dead())
            .finish_non_exhaustive()
    }
}
