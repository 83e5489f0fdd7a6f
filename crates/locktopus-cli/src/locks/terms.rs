//! How a lock is taken: for how long, and how long to wait.

use std::time::Duration;

use locktopus::{LockGuard, LockKind, LockRequest, Locktopus, Mode, UnlessBusy};

use super::kind::LockArgs;
use crate::failure::Failure;

/// How long a lock is held.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lasting {
    /// Until it is released. The lease is renewed; its length is this, or that of the URL.
    Renewed(Option<Duration>),
    /// For this long, without renewal.
    Fixed(Duration),
}

/// How to take a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) lasting: Lasting,
    pub(crate) max_hold: Option<Duration>,
    /// Zero: free as soon as it is released.
    pub(crate) at_least: Duration,
    /// `None`: wait without limit. Zero: do not wait.
    pub(crate) wait: Option<Duration>,
}

impl Terms {
    /// Sets these terms on a request.
    pub(crate) fn apply(self, mut request: LockRequest) -> LockRequest {
        request = match self.lasting {
            Lasting::Renewed(Some(lease)) => request.renewed_lease(lease),
            Lasting::Renewed(None) => request,
            Lasting::Fixed(lease) => request.fixed_lease(lease),
        };
        if let Some(hold) = self.max_hold {
            request = request.max_hold(hold);
        }
        if !self.at_least.is_zero() {
            request = request.hold_at_least(self.at_least);
        }
        if let Some(wait) = self.wait {
            request = request.wait_at_most(wait);
        }
        request
    }
}

/// Takes the lock. `None` if it stays busy for as long as the terms allow to wait.
pub(crate) async fn acquire(
    request: LockRequest,
    terms: Terms,
) -> Result<Option<LockGuard>, Failure> {
    let request = terms.apply(request);
    if terms.wait.is_some_and(|wait| wait.is_zero()) {
        return Ok(request.try_acquire().await?);
    }
    Ok(request.acquire().await.unless_busy()?)
}

/// A request for this lock, of the kind the user gave, or `lock`.
pub(crate) fn request(
    locks: &Locktopus,
    name: &str,
    args: &LockArgs,
    permits: u32,
) -> Result<LockRequest, Failure> {
    let kind = args.kind()?.unwrap_or(LockKind::Reentrant);
    if permits != 1 && kind.mode() != Mode::Permits {
        return Err(Failure::usage(format!(
            "--permits is for semaphores, not for --kind {}",
            kind.as_str()
        )));
    }
    Ok(locks.of_kind(name, kind).permits(permits))
}
