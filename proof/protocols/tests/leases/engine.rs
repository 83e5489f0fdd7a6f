//! The sources of the core that are under test, as they are shipped, and what they import of the rest of its engine.

pub(crate) mod error {
    pub(crate) use locktopus_core::{LockError, LostCause, Phase};
}

/// Nobody watches, but that a hold ends is a step of its own.
pub(crate) mod observe {
    use std::time::Duration;

    use locktopus_core::{LockTarget, LostCause};

    use crate::sync::{Mutex, lock};

    #[derive(Debug)]
    pub(crate) struct Holding;

    #[derive(Debug, Default)]
    pub(crate) struct Hold(Mutex<Option<Holding>>);

    impl Hold {
        pub(crate) fn begin<'a>(
            &self,
            holding: Holding,
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
    pub(crate) struct Extensions;

    impl Extensions {
        pub(crate) fn note(&mut self, _: &LockTarget, _: Duration) {}
    }
}

pub(crate) mod holding {
    pub(crate) mod give_back {
        include!(concat!(env!("OUT_DIR"), "/give_back.rs"));
    }
    pub(crate) mod grant {
        include!(concat!(env!("OUT_DIR"), "/grant.rs"));
    }
    pub(crate) mod held {
        include!(concat!(env!("OUT_DIR"), "/held.rs"));
    }
    pub(crate) mod lease {
        include!(concat!(env!("OUT_DIR"), "/lease.rs"));
    }
    pub(crate) mod lease_in_turns {
        include!(concat!(env!("OUT_DIR"), "/lease_in_turns.rs"));
    }
    pub(crate) mod role {
        include!(concat!(env!("OUT_DIR"), "/role.rs"));
    }
    pub(crate) mod shared_owner {
        include!(concat!(env!("OUT_DIR"), "/shared_owner.rs"));
    }
    mod term {
        include!(concat!(env!("OUT_DIR"), "/term.rs"));
    }
    pub(crate) mod watchdog {
        include!(concat!(env!("OUT_DIR"), "/watchdog.rs"));
    }

    /// No lock is held for longer than its holder wants.
    mod linger {
        use super::lease::State;
        use super::role::Role;

        impl<R: Role + ?Sized> State<R> {
            pub(crate) fn lingers(&self) -> bool {
                false
            }
        }
    }

    pub(crate) mod services;
}
