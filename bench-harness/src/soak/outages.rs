//! Times when the server was down on purpose.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use locktopus::{BackendErrorKind, LockError};

/// How long clients may take to find a server that is back: the longest pause, and an answer.
const FOUND_AGAIN: Duration = Duration::from_secs(10);

/// Start and end of each outage. One that lasts has no end yet.
#[derive(Debug, Default)]
pub(super) struct Outages(Mutex<Vec<(Instant, Option<Instant>)>>);

impl Outages {
    pub(super) fn begin(&self) {
        self.all().push((Instant::now(), None));
    }

    pub(super) fn end(&self) {
        if let Some((_, end)) = self.all().last_mut() {
            *end = Some(Instant::now());
        }
    }

    /// Whether one of the outages explains this error of an attempt from `since` until now.
    pub(super) fn explain(&self, error: &LockError, since: Instant) -> bool {
        is_of_an_outage(error) && self.touch(since)
    }

    fn touch(&self, since: Instant) -> bool {
        let mut all = self.all().clone().into_iter();
        all.any(|(_, end)| end.is_none_or(|end| end + FOUND_AGAIN >= since))
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<(Instant, Option<Instant>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Errors that an absent server can cause. It keeps its data, so a lost lock is not one of them.
fn is_of_an_outage(error: &LockError) -> bool {
    match error {
        LockError::Backend { source, .. } => matches!(
            source.kind(),
            BackendErrorKind::Unavailable | BackendErrorKind::Timeout
        ),
        LockError::WaitTimeout { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_under_way_is_explained() {
        let outages = Outages::default();
        assert!(!outages.touch(Instant::now()));
        outages.begin();
        assert!(outages.touch(Instant::now()));
        outages.end();
        assert!(outages.touch(Instant::now()));
        assert!(!outages.touch(Instant::now() + FOUND_AGAIN + Duration::from_secs(1)));
    }
}
