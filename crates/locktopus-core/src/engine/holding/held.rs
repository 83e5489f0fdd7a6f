//! A hold on a lease.

use std::fmt;
use std::sync::Arc;

use crate::engine::error::{LockError, LostCause};
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::lease::LeaseState;
use crate::engine::holding::services::Services;
use crate::engine::holding::watchdog;
use crate::engine::observe::Holding;

/// One hold of a lease. Dropping it ends the hold, and with the last one the lease: whatever happens to whoever took
/// the lock, it is given back.
#[must_use = "dropping it gives the lock back"]
pub(crate) struct Held {
    /// `None` only while the hold is taken apart.
    parts: Option<Parts>,
}

struct Parts {
    services: Arc<Services>,
    state: Arc<LeaseState>,
    watch: watchdog::Ticket,
}

impl Held {
    /// A hold that just began.
    pub(crate) fn new(
        services: Arc<Services>,
        state: Arc<LeaseState>,
        watch: watchdog::Ticket,
    ) -> Self {
        let parts = Parts {
            services,
            state,
            watch,
        };
        Self { parts: Some(parts) }
    }

    fn parts(&self) -> &Parts {
        self.parts
            .as_ref()
            .expect("a hold has its lease until it is consumed")
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.parts().services
    }

    pub(crate) fn state(&self) -> &Arc<LeaseState> {
        &self.parts().state
    }

    pub(crate) fn watch(&self) -> watchdog::Ticket {
        self.parts().watch
    }

    /// Lets those who watch know of the first hold of a lease: `holding` is told of its end.
    pub(crate) fn observed(&self, holding: Holding) {
        self.state().observed(holding);
    }

    /// Another hold of the same lease, unless the last one is gone.
    pub(crate) fn again(&self) -> Option<Self> {
        let Parts {
            services,
            state,
            watch,
        } = self.parts();
        Self::join(services, state, *watch)
    }

    /// A hold of a lease that is held already, unless the last hold is gone.
    pub(crate) fn join(
        services: &Arc<Services>,
        state: &Arc<LeaseState>,
        watch: watchdog::Ticket,
    ) -> Option<Self> {
        state
            .try_add_hold()
            .then(|| Self::new(Arc::clone(services), Arc::clone(state), watch))
    }

    /// Ends this hold and, if it is the last one and nobody else of this process goes on with the lease, gives the lease
    /// back to the backend and waits for the answer. If the future is dropped, the reaper goes on.
    pub(crate) async fn release(mut self) -> Result<(), LockError> {
        let Some(parts) = self.parts.take() else {
            return Ok(());
        };
        let state = Arc::clone(&parts.state);
        let lost_before = state.lost().cloned();
        let Some(owed) = parts.close(LostCause::Released) else {
            return lost_before.map_or(Ok(()), |cause| {
                let target = state.target.clone();
                Err(LockError::Lost { target, cause })
            });
        };
        owed.give_back(lost_before).await
    }

    /// Ends the lease for this process and leaves it to another one, if this is the only hold of it.
    pub(crate) fn transfer(mut self) -> Result<Arc<LeaseState>, Self> {
        // From here on nobody can enter the lease again.
        let alone = self.state().remove_only_hold();
        let Some(parts) = self.parts.take_if(|_| alone) else {
            return Err(self);
        };
        let state = Arc::clone(&parts.state);
        if let Some(owed) = parts.end(LostCause::Transferred) {
            owed.left_to_others();
        }
        Ok(state)
    }
}

impl Parts {
    /// Ends this hold. What comes back, if it was the last one and nobody else of this process goes on with the
    /// lease, is what the backend must be given back.
    fn close(self, cause: LostCause) -> Option<Owed> {
        self.state.remove_hold().then(|| self.end(cause)).flatten()
    }

    /// Ends the lease for all who share it.
    fn end(self, cause: LostCause) -> Option<Owed> {
        // From before anybody finds that it is being given back: a shutdown waits for what follows.
        let _under_way = self.services.attempts.token();
        if !self.state.begin_release() {
            return None;
        }
        let Some(lease_in_turns) = self.state.lease_in_turns() else {
            self.services.watchdog.forget(self.watch, &self.state);
            self.state.end(cause);
            return Some(Owed::new(self.services, self.state));
        };
        self.state.end(cause.clone());
        if cause == LostCause::Transferred || self.state.lingers() {
            // If it lingers, nobody of this process may have it before the others.
            Arc::clone(lease_in_turns).leave();
        } else if Arc::clone(lease_in_turns).pass(&self.services) {
            return None;
        }
        Arc::clone(lease_in_turns).close(&self.services, cause)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // What is owed then goes to the reaper.
        if let Some(parts) = self.parts.take() {
            drop(parts.close(LostCause::Released));
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.as_ref().map(|parts| &parts.state).fmt(f)
    }
}
