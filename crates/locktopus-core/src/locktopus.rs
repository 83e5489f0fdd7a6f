//! The entry point for those who use locks.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::backend::{BackendInfo, DynBackend, LockBackend};
use crate::backend_error::BackendError;
use crate::diagnosis::Diagnosis;
use crate::error::{LockError, LostCause, OptionError};
use crate::kind::{LockKind, MutexProfile};
use crate::lock_request::LockRequest;
use crate::services::Services;
use crate::settings::{LONGEST_LEASE, Settings, WaitStrategy};
use crate::validity::ValidityMargin;

/// Locks of one backend. Cheap to clone; clones share one watchdog and one set of connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use locktopus_core::{Locktopus, MemoryBackend};
///
/// let locks = Locktopus::builder(MemoryBackend::new()).namespace("shop:").build()?;
/// let guard = locks.lock("invoice:42").wait_at_most(Duration::from_secs(5)).acquire().await?;
/// assert!(locks.lock("invoice:42").try_acquire().await?.is_none());
/// guard.release().await?;
/// locks.shutdown(Duration::from_secs(1)).await;
/// # Ok(()) }
/// ```
///
/// When the last clone, request and guard are gone, the background tasks end by themselves. Call
/// [`shutdown`](Self::shutdown) before the process exits: it waits for releases that are still under way.
#[derive(Debug, Clone)]
pub struct Locktopus {
    services: Arc<Services>,
}

impl Locktopus {
    /// Starts building one on top of a backend.
    pub fn builder(backend: impl LockBackend) -> LocktopusBuilder {
        Self::builder_dyn(Arc::new(backend))
    }

    /// Starts building one on top of a shared backend.
    pub fn builder_dyn(backend: DynBackend) -> LocktopusBuilder {
        LocktopusBuilder {
            backend,
            settings: Settings::default(),
        }
    }

    /// The default lock: exclusive, reentrant by [owner handle](crate::Owner). On Redis it is Redisson's
    /// `RLock`.
    pub fn lock(&self, name: impl Into<String>) -> LockRequest {
        LockRequest::new(Arc::clone(&self.services), name.into(), LockKind::Reentrant)
    }

    /// A plain mutex: exclusive, not reentrant, one string on Redis.
    pub fn mutex(&self, name: impl Into<String>) -> LockRequest {
        self.mutex_as(name, MutexProfile::default())
    }

    /// A plain mutex laid out as another library expects it.
    pub fn mutex_as(&self, name: impl Into<String>, profile: MutexProfile) -> LockRequest {
        LockRequest::new(
            Arc::clone(&self.services),
            name.into(),
            LockKind::Mutex(Arc::new(profile)),
        )
    }

    /// What the backend is.
    #[must_use]
    pub fn backend(&self) -> &BackendInfo {
        self.services.backend.info()
    }

    /// Looks for what silently breaks locks on this backend. Backends on servers also take a probe lock and
    /// give it back, which shows missing permissions.
    ///
    /// # Errors
    ///
    /// The backend's error if it could not be asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a probe lock that was taken lapses after a second.
    pub async fn diagnose(&self) -> Result<Diagnosis, BackendError> {
        let deadline = Instant::now() + self.services.call_timeout();
        self.services.backend.diagnose(deadline).await
    }

    /// How many locks this `Locktopus` and its clones hold.
    #[must_use]
    pub fn held(&self) -> usize {
        self.services.watchdog.len()
    }

    /// How many background releases and renewals are under way.
    #[must_use]
    pub fn background_tasks(&self) -> usize {
        self.services.tasks.len()
    }

    /// Ends this `Locktopus` and all its clones.
    ///
    /// New acquisitions and waiting ones fail with [`LockError::ShutDown`]. Locks still held are declared
    /// lost ([`LostCause::ShutDown`]) and released. Then it waits up to `grace` for every release under way,
    /// and closes the backend. What could not be released lapses with its lease.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: if the future is dropped, the backend stays open. Calling it again is fine.
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        let services = &self.services;
        services.closing.cancel();
        for state in services.watchdog.close() {
            if state.begin_release() {
                state.end(LostCause::ShutDown);
                services.reap(services.debt_of(&state));
            }
        }
        services.attempts.close();
        services.tasks.close();
        let drained = async {
            // First the attempts under way: their futures see `closing` and leave what they took to the reaper.
            services.attempts.wait().await;
            services.tasks.wait().await;
        };
        let drained = tokio::time::timeout(grace, drained).await.is_ok();
        let abandoned = if drained {
            0
        } else {
            services.attempts.len() + services.tasks.len()
        };
        services.closed.cancel();
        // A backend that hangs must not keep the process from ending.
        let _ = tokio::time::timeout(services.call_timeout(), services.backend.close()).await;
        ShutdownReport { abandoned }
    }
}

/// How a shutdown ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "locks that were not released block others until their leases end"]
pub struct ShutdownReport {
    /// Releases that were not confirmed in time; those locks are free when their leases have ended.
    pub abandoned: usize,
}

/// Builds a [`Locktopus`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct LocktopusBuilder {
    backend: DynBackend,
    settings: Settings,
}

impl LocktopusBuilder {
    /// Puts this in front of every lock name. Default: nothing.
    pub fn namespace(mut self, prefix: impl Into<String>) -> Self {
        self.settings.namespace = prefix.into();
        self
    }

    /// The lease of locks that are asked for without one; the watchdog renews it. Default 30 s.
    pub fn watchdog_lease(mut self, lease: Duration) -> Self {
        self.settings.watchdog_lease = lease;
        self
    }

    /// The longest lease that may be asked for. Default 24 h.
    pub fn max_lease(mut self, lease: Duration) -> Self {
        self.settings.max_lease = lease;
        self
    }

    /// How much sooner than the server a holder stops believing in its lease.
    pub fn validity_margin(mut self, margin: ValidityMargin) -> Self {
        self.settings.margin = margin;
        self
    }

    /// How to wait for locks held by others. Default: sleep until told, heartbeat one second.
    pub fn strategy(mut self, strategy: WaitStrategy) -> Self {
        self.settings.strategy = strategy;
        self
    }

    /// How long a waiting acquisition puts up with a backend that does not answer before it fails with
    /// [`LockError::Backend`]. Default 10 s.
    pub fn outage(mut self, patience: Duration) -> Self {
        self.settings.outage = patience;
        self
    }

    /// Builds it and starts its watchdog.
    ///
    /// # Errors
    ///
    /// [`LockError::Option`] for impossible settings, or when called outside a tokio runtime. The runtime
    /// it is built on must outlive it.
    pub fn build(self) -> Result<Locktopus, LockError> {
        let Self { backend, settings } = self;
        settings.check_lease("watchdog_lease", settings.watchdog_lease)?;
        if settings.max_lease > LONGEST_LEASE {
            let rule = format!("must be at most {LONGEST_LEASE:?}, or servers could not count it");
            return Err(OptionError::new("max_lease", settings.max_lease, rule).into());
        }
        settings.strategy.check()?;
        if settings.margin.drift_ppm >= 1_000_000 {
            let rule = "must be below 1,000,000 parts per million";
            return Err(OptionError::new("drift_ppm", settings.margin.drift_ppm, rule).into());
        }
        let runtime = Handle::try_current().map_err(|_| {
            OptionError::new("runtime", "none", "build must be called on a tokio runtime")
        })?;
        Ok(Locktopus {
            services: Services::start(backend, settings, runtime),
        })
    }
}
