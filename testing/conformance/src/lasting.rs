//! Whether the leases that a case relies on may be over already, because the machine is too busy.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    /// When the first lease that the case may have taken is over, if it relies on its leases still.
    /// A case is one task.
    pub(crate) static LASTS: Cell<Option<Instant>>;
}

/// From now on the case relies on leases that are this long.
pub(crate) fn relies_on(lease: Duration) {
    let end = Instant::now() + lease;
    let _ =
        LASTS.try_with(|lasts| lasts.set(Some(lasts.get().map_or(end, |other| other.min(end)))));
}

/// From now on what the case finds is true, although its leases may be over.
pub(crate) fn relies_on_no_lease() {
    let _ = LASTS.try_with(|lasts| lasts.set(None));
}

/// Whether a lease may be over on which the case relies: then what it finds says nothing.
pub(crate) fn is_too_late() -> bool {
    let lasts = LASTS.try_with(Cell::get).ok().flatten();
    lasts.is_some_and(|lasts| Instant::now() >= lasts)
}

/// What a case ends with that finds a rule broken when its leases may be over.
#[derive(Debug)]
pub(crate) struct TooLate(pub(crate) String);
