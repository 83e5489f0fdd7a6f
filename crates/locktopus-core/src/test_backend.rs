//! What unit tests of this crate need: a machine that sleeps, leases, and a backend.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{Layer, Simulated};
use locktopus_memory::MemoryBackend;

use crate::clock::{self, BootInstant};
use crate::engine::holding::lease::BackendLease;
use crate::{
    BackendError, BackendErrorKind, BackendInfo, CounterOutcome, CounterRequest, Counters,
    Executed, FencingToken, LockBackend, LockKind, LockName, LockTarget, OwnerId,
};

/// Lets this thread see that the machine has just been asleep for this long.
pub(crate) fn sleep_machine(time: Duration) {
    let mut process = Simulated::swap(None).unwrap_or_else(|| Simulated::new(1));
    process.sleep_machine(time);
    Simulated::swap(Some(process));
}

/// A renewed lease of this length, granted now.
pub(crate) fn granted(lease: Duration) -> BackendLease {
    granted_until(lease, clock::now() + lease)
}

/// The same, valid until then.
pub(crate) fn granted_until(lease: Duration, valid_until: BootInstant) -> BackendLease {
    let target = LockTarget::new(LockName::new("n").unwrap(), LockKind::Reentrant);
    let (owner, token) = (OwnerId::generate(), FencingToken::new(1));
    let mut lease = BackendLease::granted(target, owner, token, lease, valid_until);
    lease.renewed = true;
    lease
}

/// The error of a call that did not run because the server is away.
pub(crate) fn away() -> BackendError {
    BackendError::new("test", BackendErrorKind::Unavailable, Executed::No, "away")
}

/// Locks in memory, from a backend that says this of itself and has lost its counters.
#[derive(Debug)]
pub(crate) struct Says(pub(crate) BackendInfo, MemoryBackend);

impl Says {
    pub(crate) fn that(info: BackendInfo) -> Arc<Self> {
        Arc::new(Self(info, MemoryBackend::new()))
    }
}

impl Layer for Says {
    fn inner(&self) -> &dyn LockBackend {
        &self.1
    }

    fn info(&self) -> &BackendInfo {
        &self.0
    }

    fn counters(&self) -> Option<&dyn Counters> {
        Some(self)
    }
}

#[async_trait]
impl Counters for Says {
    async fn counter(&self, _request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        Err(away())
    }
}
