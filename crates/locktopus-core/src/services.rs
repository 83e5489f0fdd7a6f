//! What runs in the background of one `Locktopus`: its watchdog and its reaper.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::DynBackend;
use crate::settings::Settings;
use crate::watchdog::Watchdog;

/// Shared by a `Locktopus`, its requests and its guards.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) backend: DynBackend,
    pub(crate) settings: Settings,
    pub(crate) watchdog: Arc<Watchdog>,
    /// Background tasks run here even if a guard is dropped on a thread that knows no runtime.
    pub(crate) runtime: Handle,
    pub(crate) tasks: TaskTracker,
    /// Cancelled by `shutdown`: no new acquisitions.
    pub(crate) closing: CancellationToken,
    /// Cancelled when the grace time is over: everything ends now.
    pub(crate) closed: CancellationToken,
    /// Bounds how many releases are under way at once, so that a burst of drops is no flood.
    pub(crate) releases: Semaphore,
}

impl Services {
    pub(crate) fn start(backend: DynBackend, settings: Settings, runtime: Handle) -> Arc<Self> {
        let services = Arc::new(Self {
            watchdog: Arc::default(),
            backend,
            settings,
            runtime,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
            releases: Semaphore::new(128),
        });
        // Not tracked: it ends when the last handle, guard and request are gone, or on `closed`.
        let (watchdog, closed) = (Arc::clone(&services.watchdog), services.closed.clone());
        services
            .runtime
            .spawn(watchdog.run(Arc::downgrade(&services), closed));
        services
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        self.backend.info().call_timeout
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
