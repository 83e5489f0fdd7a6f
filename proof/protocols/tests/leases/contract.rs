//! The imports of leases from the contract.

pub(crate) use locktopus_core::{
    BackendError, Executed, ExtendOutcome, ExtendRequest, FencingToken, LockTarget, OwnerId,
    ReleaseOutcome, SafetyMode, TokenRetention,
};

pub(crate) use crate::sync::lock;

pub(crate) mod clock {
    use std::sync::OnceLock;
    use std::time::Duration;

    use tokio::time::Instant;

    pub(crate) use locktopus_core::clock::BootInstant;

    use crate::time;

    /// The start of all schedules.
    pub(crate) fn begun() -> BootInstant {
        static BEGUN: OnceLock<BootInstant> = OnceLock::new();
        *BEGUN.get_or_init(locktopus_core::clock::now)
    }

    pub(crate) fn now() -> BootInstant {
        begun() + time::passed()
    }

    pub(crate) fn timer_in(time: Duration) -> Instant {
        (now() + time).timer()
    }
}
