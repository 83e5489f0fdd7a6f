//! What leases import of the core's contract.

pub(crate) mod clock {
    use std::sync::OnceLock;
    use std::time::Duration;

    use tokio::time::Instant;

    pub(crate) use locktopus_core::clock::BootInstant;

    use crate::time;

    /// When all schedules begin.
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

pub(crate) mod sync {
    pub(crate) use crate::sync::lock;
}

pub(crate) mod backend_error {
    pub(crate) use locktopus_core::{BackendError, Executed};
}

pub(crate) mod kind {
    pub(crate) use locktopus_core::LockTarget;
}

pub(crate) mod owner {
    pub(crate) use locktopus_core::OwnerId;
}

pub(crate) mod request {
    pub(crate) use locktopus_core::{ExtendOutcome, ExtendRequest, ReleaseOutcome};
}

pub(crate) mod safety_mode {
    pub(crate) use locktopus_core::SafetyMode;
}

pub(crate) mod token {
    pub(crate) use locktopus_core::FencingToken;
}

pub(crate) mod token_retention {
    pub(crate) use locktopus_core::TokenRetention;
}
