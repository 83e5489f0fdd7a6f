//! A guard under observation.

use std::time::Duration;

use locktopus::{FencingToken, LockGuard, Locktopus, LostCause};
use tokio::sync::watch;
use tokio::time::Instant;

/// How late the report of a lost lock may be on a busy machine, because of the scheduler. The
/// network must not add to it.
pub(crate) const TOLERANCE: Duration = Duration::from_millis(500);

/// A held lock that is renewed.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) name: String,
    pub(crate) token: FencingToken,
    pub(crate) guard: LockGuard,
    /// The loss, and when a task of its own was told.
    lost: watch::Receiver<Option<(LostCause, Instant)>>,
}

impl Holder {
    pub(crate) async fn of(locks: &Locktopus, name: String, lease: Duration) -> Self {
        let request = locks.lock(&name).renewed_lease(lease);
        let guard = request.acquire().await.unwrap();
        let (tell, lost) = watch::channel(None);
        let lease = guard.lease();
        tokio::spawn(async move { tell.send(Some((lease.lost().await, Instant::now()))) });
        Self {
            token: guard.token().unwrap(),
            name,
            guard,
            lost,
        }
    }

    /// Waits for the loss and checks that the report was in time.
    pub(crate) async fn loses(&self, within: Duration) -> LostCause {
        let mut lost = self.lost.clone();
        let lost = tokio::time::timeout(within, lost.wait_for(Option::is_some)).await;
        let lost = lost.unwrap_or_else(|_| panic!("{} is not lost within {within:?}", self.name));
        let (cause, told) = lost.unwrap().clone().unwrap();
        let late = told.saturating_duration_since(self.guard.valid_until());
        assert!(late < TOLERANCE, "{} told {late:?} late", self.name);
        assert!(self.guard.ensure_valid().is_err());
        cause
    }
}
