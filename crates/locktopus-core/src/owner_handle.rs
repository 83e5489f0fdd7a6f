//! Owner handles: who may enter a reentrant lock again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use crate::kind::LockTarget;
use crate::lease::LeaseState;
use crate::wake::lock;
use crate::watchdog;

/// An owner of locks that may enter its reentrant locks again.
///
/// Re-entry belongs to this handle, not to a thread or a task: pass the handle (it is cheap to clone) to
/// whatever works on the owner's behalf. Acquiring a lock that the same owner holds gives another guard on
/// the same lease, at once and without asking the backend.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus_core::{Locktopus, MemoryBackend, Owner};
/// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let me = Owner::new();
/// let outer = locks.lock("job").owner(&me).acquire().await?;
/// let inner = locks.lock("job").owner(&me).acquire().await?;
/// assert_eq!(inner.hold_count(), 2);
/// inner.release().await?;
/// outer.release().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Owner {
    held: Arc<Mutex<HashMap<(usize, LockTarget), Gate>>>,
}

/// One lock of one owner. Locked for the whole of an acquisition, so that two tasks of one owner do not
/// race each other for the same lock.
pub(crate) type Gate = Arc<tokio::sync::Mutex<Option<Entered>>>;

/// The lease behind a gate, if the owner entered.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) state: Weak<LeaseState>,
    pub(crate) watch: watchdog::Ticket,
}

impl Owner {
    /// A new owner that holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn gate(&self, locktopus: usize, target: &LockTarget) -> Gate {
        let mut held = lock(&self.held);
        // Forget locks that are over and that no acquisition is looking at.
        held.retain(|_, gate| {
            Arc::strong_count(gate) > 1
                || gate.try_lock().is_ok_and(|entered| {
                    entered
                        .as_ref()
                        .is_some_and(|entered| entered.state.strong_count() > 0)
                })
        });
        Arc::clone(held.entry((locktopus, target.clone())).or_default())
    }
}
