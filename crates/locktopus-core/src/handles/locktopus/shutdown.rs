//! Shutdown: gives back everything a `Locktopus` holds, within a time limit.

use std::future::Future;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::oneshot;

use super::Locktopus;
use crate::engine::error::LostCause;
use crate::engine::holding::services::Services;

impl Locktopus {
    /// Ends this `Locktopus` and all its clones.
    ///
    /// New and waiting acquisitions fail with [`LockError::ShutDown`](crate::LockError::ShutDown).
    /// Locks still held are declared lost ([`LostCause::ShutDown`]) and released. Then this waits
    /// up to `grace` for every release under way, and closes the backend. A lock that could not be
    /// released expires with its lease.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// let report = locks.shutdown(Duration::from_secs(5)).await;
    /// assert_eq!(report.abandoned, 0);
    /// assert!(guard.ensure_valid().is_err());
    /// assert!(locks.lock("invoice:42").acquire().await.is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: if the future is dropped, the backend stays open. Calling it again is fine.
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        let services = &self.services;
        let here = services.here();
        services.closing.cancel();
        services.cohorts.close(services);
        for lease in services.watchdog.close() {
            if lease.begin_release() {
                lease.end(LostCause::ShutDown);
                services.reap(services.pending_release_of(&lease));
            }
        }
        let drain = drain(Arc::clone(services), grace);
        match (here, services.home()) {
            (Ok(here), _) => {
                services.come_to(&here);
                drain.await
            }
            (Err(_), Some(home)) => {
                let drained = home.runtime().spawn(drain);
                match select(
                    drained,
                    over_after(grace.saturating_add(services.call_timeout())),
                )
                .await
                {
                    Either::Left((Ok(report), _)) => report,
                    _ => {
                        services.closed.cancel();
                        ShutdownReport::of(services)
                    }
                }
            }
            (Err(_), None) => {
                services.closed.cancel();
                ShutdownReport::of(services)
            }
        }
    }
}

/// Completes after a time without tokio's timers: the runtime that has them may not be running.
fn over_after(time: Duration) -> impl Future<Output = ()> {
    let (says, said) = oneshot::channel::<()>();
    let (waits, waited) = mpsc::channel::<()>();
    let sleeper = thread::Builder::new().spawn(move || {
        let _sooner = waited.recv_timeout(time);
        drop(says);
    });
    Box::pin(async move {
        let (_sleeper, _waits) = (sleeper, waits);
        let _over = said.await;
    })
}

async fn drain(services: Arc<Services>, grace: Duration) -> ShutdownReport {
    services.attempts.close();
    services.tasks.close();
    services.announcing.close();
    let drained = async {
        // First the attempts under way: they see `closing` and leave any lock they took to the
        // reaper.
        services.attempts.wait().await;
        services.tasks.wait().await;
        // Not counted as abandoned: a record that stays expires and blocks no one.
        services.announcing.wait().await;
    };
    let report = match tokio::time::timeout(grace, drained).await {
        Ok(()) => ShutdownReport { abandoned: 0 },
        Err(_) => ShutdownReport::of(&services),
    };
    services.closed.cancel();
    // A backend that hangs must not keep the process from ending.
    let _ = tokio::time::timeout(services.call_timeout(), services.backend.close()).await;
    report
}

/// How a shutdown ended.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use std::time::Duration;
/// use locktopus::ShutdownReport;
/// let ShutdownReport { abandoned, .. } = locks.shutdown(Duration::from_secs(5)).await;
/// assert_eq!(abandoned, 0);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "locks that were not released block others until their leases end"]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Releases that were not confirmed in time; those locks become free when their leases end.
    pub abandoned: usize,
}

impl ShutdownReport {
    fn of(services: &Services) -> Self {
        Self {
            abandoned: services.attempts.len() + services.tasks.len(),
        }
    }
}
