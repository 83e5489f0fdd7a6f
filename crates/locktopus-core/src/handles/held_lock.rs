//! The leases of this process, as `held_locks` reports them.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{FencingToken, LockTarget, SafetyMode};
use tokio::time::Instant;

use crate::engine::holding::services::Services;
use crate::handles::lease::Lease;

/// A lock held by this process. From [`Locktopus::held_locks`](crate::Locktopus::held_locks).
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use locktopus_core::Locktopus;
/// # use locktopus_memory::MemoryBackend;
/// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let guard = locks.lock("job").acquire().await?;
/// let [held] = locks.held_locks().try_into().expect("one lock");
/// assert_eq!(held.target.to_string(), "lock \"job\"");
/// assert_eq!((held.token, held.renewed, held.holds), (guard.token(), true, 1));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HeldLock {
    /// The lock's kind, and its name with the namespace.
    pub target: LockTarget,
    /// How long it has been held.
    pub held_for: Duration,
    /// The local deadline. Renewal moves it.
    pub valid_until: Instant,
    /// Its fencing token, if it has one.
    pub token: Option<FencingToken>,
    /// Whether the watchdog renews it.
    pub renewed: bool,
    /// How many guards share it. 0 if this process [keeps](crate::LockRequest::lease_cache) it at
    /// the backend without a holder, or is passing it on.
    pub holds: usize,
    /// How many permits of a semaphore; 1 for locks.
    pub permits: u32,
    /// The safety mode of the grant.
    pub safety: SafetyMode,
    /// The lease. Use it to wait for the loss of the lock.
    pub lease: Lease,
}

impl HeldLock {
    pub(crate) fn all(services: &Arc<Services>) -> Vec<Self> {
        let leases = services.watchdog.leases();
        let mut held: Vec<Self> = leases
            .into_iter()
            .filter(|lease| lease.is_active())
            .map(|held| {
                let turn = held.shown(services);
                let (holds, lease) = (turn.holds(), Lease::new(turn, services));
                Self {
                    target: held.target.clone(),
                    held_for: lease.held_for(),
                    valid_until: lease.valid_until(),
                    token: lease.token(),
                    renewed: held.renewed,
                    holds,
                    permits: held.permits,
                    safety: held.safety(),
                    lease,
                }
            })
            .collect();
        held.sort_by_key(|lock| Reverse(lock.held_for));
        held
    }
}
