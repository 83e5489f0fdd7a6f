//! Tells when a slow machine may have let the leases of a case expire.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    /// When the first lease of the case may expire, while the case relies on its leases. A case is
    /// one task.
    pub(crate) static LASTS: Cell<Option<Instant>>;
}

/// From now on the case relies on leases of this length.
pub(crate) fn relies_on(lease: Duration) {
    let end = Instant::now() + lease;
    let _ =
        LASTS.try_with(|lasts| lasts.set(Some(lasts.get().map_or(end, |other| other.min(end)))));
}

/// From now on the findings of the case hold even if its leases have expired.
pub(crate) fn relies_on_no_lease() {
    let _ = LASTS.try_with(|lasts| lasts.set(None));
}

/// Whether a lease that the case relies on may have expired, which makes its findings meaningless.
pub(crate) fn is_too_late() -> bool {
    let lasts = LASTS.try_with(Cell::get).ok().flatten();
    lasts.is_some_and(|lasts| Instant::now() >= lasts)
}

/// The panic of a case that finds a broken rule when its leases may have expired.
#[derive(Debug)]
pub(crate) struct TooLate(pub(crate) String);
