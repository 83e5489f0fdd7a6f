//! Error handling of a loop: it waits a little and retries, or gives up.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use locktopus_core::{BackendErrorKind, CancellationToken, LockError};

/// The longest first pause after an error.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest later pause: the same as for reconnections.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Pauses that double, each shortened at random to no less than half.
#[derive(Debug)]
pub(crate) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { next: FIRST_PAUSE }
    }

    /// It went well for a while, so the next pause is short again.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST_PAUSE;
    }

    pub(crate) async fn wait(&mut self) {
        let pause = jitter(self.next / 2, self.next);
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        tokio::time::sleep(pause).await;
    }
}

/// A random duration between the two, to spread out clients that act together.
pub(crate) fn jitter(low: Duration, high: Duration) -> Duration {
    // Each `RandomState` has its own keys: random enough for a pause, and not secret.
    let random = u128::from(RandomState::new().hash_one(()));
    let spread = high.saturating_sub(low).as_nanos();
    low + Duration::from_nanos(u64::try_from((spread * (random >> 32)) >> 32).unwrap_or(u64::MAX))
}

/// Whether the same call may succeed later with the same program and the same permissions.
pub(crate) fn may_pass(error: &LockError) -> bool {
    match error {
        LockError::WaitTimeout { .. } | LockError::Lost { .. } => true,
        // A server that is out of memory refuses, and may have some again later.
        LockError::Backend { source, .. } => {
            source.is_transient() || source.kind() == BackendErrorKind::Refused
        }
        _ => false,
    }
}

/// Runs `work`, unless the token is cancelled first.
pub(crate) async fn unless_cancelled<F: Future>(
    cancel: Option<&CancellationToken>,
    work: F,
) -> Option<F::Output> {
    let Some(token) = cancel else {
        return Some(work.await);
    };
    tokio::select! {
        biased;
        () = token.cancelled() => None,
        output = work => Some(output),
    }
}

#[cfg(test)]
mod tests {
    use locktopus_core::{BackendError, Executed, LockKind, LockName, LockTarget, Phase};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_bound_and_begin_anew() {
        let mut pauses = Pauses::new();
        let mut bound = FIRST_PAUSE;
        for _ in 0..10 {
            let begun = tokio::time::Instant::now();
            pauses.wait().await;
            let took = begun.elapsed();
            // Timers count in whole milliseconds.
            let rounded = bound + Duration::from_millis(1);
            assert!((bound / 2..=rounded).contains(&took), "{took:?}");
            bound = (bound * 2).min(LONGEST_PAUSE);
        }
        pauses.reset();
        assert_eq!(pauses.next, FIRST_PAUSE);
    }

    #[test]
    fn what_time_mends_is_waited_out() {
        let target = LockTarget::new(LockName::new("l").unwrap(), LockKind::Reentrant);
        let failed = |kind| LockError::Backend {
            target: target.clone(),
            phase: Phase::Acquire,
            source: BackendError::new("test", kind, Executed::No, "for a test"),
        };
        for (kind, passes) in [
            (BackendErrorKind::Unavailable, true),
            (BackendErrorKind::Timeout, true),
            (BackendErrorKind::NotReplicated, true),
            (BackendErrorKind::Refused, true),
            (BackendErrorKind::Denied, false),
            (BackendErrorKind::OtherKind, false),
            (BackendErrorKind::TooFewPermits, false),
            (BackendErrorKind::Unsupported, false),
            (BackendErrorKind::Closed, false),
        ] {
            assert_eq!(may_pass(&failed(kind)), passes, "{kind:?}");
        }
        assert!(!may_pass(&LockError::ShutDown));
    }
}
