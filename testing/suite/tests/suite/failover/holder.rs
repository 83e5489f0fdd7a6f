//! A guard under observation.

use std::time::Duration;

use locktopus::{FencingToken, LockGuard, Locktopus, LostCause};
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
}

impl Holder {
    pub(crate) async fn of(locks: &Locktopus, name: String, lease: Duration) -> Self {
        let guard = locks
            .lock(&name)
            .renewed_lease(lease)
            .acquire()
            .await
            .unwrap();
        Self {
            token: guard.token().unwrap(),
            name,
            guard,
        }
    }

    /// Waits for the loss and checks that the report was in time.
    pub(crate) async fn loses(&self, within: Duration) -> LostCause {
        let cause = tokio::time::timeout(within, self.guard.lost())
            .await
            .unwrap_or_else(|_| panic!("{} is not lost within {within:?}", self.name));
        let late = Instant::now().saturating_duration_since(self.guard.valid_until());
        assert!(late < TOLERANCE, "{} told {late:?} late", self.name);
        assert!(self.guard.ensure_valid().is_err());
        cause
    }
}
