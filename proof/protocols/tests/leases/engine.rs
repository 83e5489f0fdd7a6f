//! The shipped sources of the core under test, and their imports from the rest of the engine.

pub(crate) mod error {
    pub(crate) use locktopus_core::{LockError, LostCause, Phase};
}

/// There are no observers, but the end of a hold is a step of its own.
pub(crate) mod observe {
    use std::time::Duration;

    use locktopus_core::{LockTarget, LostCause};

    use crate::sync::{Mutex, lock};

    #[derive(Debug)]
    pub(crate) struct HoldObservation;

    #[derive(Debug, Default)]
    pub(crate) struct ObservedHold(Mutex<Option<HoldObservation>>);

    impl ObservedHold {
        pub(crate) fn begin<'a>(
            &self,
            holding: HoldObservation,
            over: impl FnOnce() -> Option<&'a LostCause>,
        ) {
            *lock(&self.0) = Some(holding);
            if let Some(cause) = over() {
                self.end(cause);
            }
        }

        pub(crate) fn end(&self, _: &LostCause) {
            *lock(&self.0) = None;
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct ExtensionMeter;

    impl ExtensionMeter {
        pub(crate) fn note(&mut self, _: &LockTarget, _: Duration) {}
    }
}

/// A local queue without waiters.
pub(crate) mod acquisition {
    pub(crate) mod passing {
        use locktopus_core::LostCause;

        use crate::engine::holding::lease::BackendLease;
        use crate::engine::holding::services::Services;
        use crate::sync::Arc;

        pub(crate) struct Passing;

        impl Passing {
            pub(crate) fn count_turn(&self) -> u32 {
                0
            }

            pub(crate) fn end(&self, _: &Arc<BackendLease>, _: &LostCause) {}
        }

        impl BackendLease {
            pub(crate) fn pass(self: &Arc<Self>, _: &Arc<Services>) -> bool {
                false
            }

            pub(crate) fn leave(self: &Arc<Self>) {}
        }
    }
}

/// Includes the text of the core, as shipped.
macro_rules! shipped {
    ($($name:ident)*) => {
        $(pub(crate) mod $name {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
        })*
    };
}

pub(crate) mod holding {
    shipped!(give_back hold lease shared_owner term turn watchdog);

    /// No lock is held for longer than its holder wants.
    mod linger {
        use super::lease::BackendLease;

        impl BackendLease {
            pub(crate) fn lingers(&self) -> bool {
                false
            }
        }
    }

    pub(crate) mod services;
}
