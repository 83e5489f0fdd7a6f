//! Limits the time of each call.

use std::future::Future;
use std::time::Duration;

use locktopus_contract::{BackendError, BackendErrorKind, BackendInfo, DynBackend, Executed};
use tokio::time::{Instant, timeout_at};

use crate::around::{Around, around_each_call, extend_as_one_call};
use crate::call::Call;

/// Extra time for the error of a backend that respects its deadline: its own error says more than
/// one from here.
const ANSWER_GRACE: Duration = Duration::from_millis(20);

/// Any backend, with a limit on the time of each call.
///
/// The backend gets the earlier deadline, plus 20 ms to answer with an error of its own. A call
/// that is cut off then fails with [`BackendErrorKind::Timeout`] and [`Executed::Maybe`]. It may
/// have run, so the core retries under the same owner, or releases.
/// [`close`](locktopus_contract::LockBackend::close) has no limit here; the core sets one.
///
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # use locktopus_contract::LockBackend;
/// # use locktopus_layers::Timeout;
/// # use locktopus_memory::MemoryBackend;
/// let quick = Timeout::new(Arc::new(MemoryBackend::new()), Duration::from_millis(50));
/// assert_eq!(quick.info().call_timeout, Duration::from_millis(50));
/// ```
#[derive(Debug)]
pub struct Timeout {
    inner: DynBackend,
    info: BackendInfo,
}

impl Timeout {
    /// Limits each call of this backend to `limit`. A backend with a shorter
    /// [`call_timeout`](BackendInfo::call_timeout) keeps its own.
    #[must_use]
    pub fn new(inner: DynBackend, limit: Duration) -> Self {
        let mut info = inner.info().clone();
        info.call_timeout = info.call_timeout.min(limit);
        Self { inner, info }
    }
}

impl Around for Timeout {
    extend_as_one_call!();

    async fn around<T, F, Fut>(
        &self,
        call: Call,
        deadline: Instant,
        run: F,
    ) -> Result<T, BackendError>
    where
        T: Send,
        F: Fn(Instant) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, BackendError>> + Send,
    {
        let mut limit = self.info.call_timeout;
        if call == Call::Diagnose {
            // Several exchanges, one after the other.
            limit = limit.saturating_mul(3);
        }
        let deadline = deadline.min(Instant::now() + limit);
        let answer = timeout_at(deadline + ANSWER_GRACE, run(deadline)).await;
        answer.unwrap_or_else(|_| {
            Err(BackendError::new(
                self.info.name,
                BackendErrorKind::Timeout,
                Executed::Maybe,
                format!("no answer within {limit:?}, the limit of the timeout layer"),
            ))
        })
    }
}

around_each_call!(Timeout, {
    fn info(&self) -> &BackendInfo {
        &self.info
    }
});
