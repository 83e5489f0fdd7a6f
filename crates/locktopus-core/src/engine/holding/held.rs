//! A hold on a lease: what a guard has.

use std::fmt;
use std::sync::Arc;

use crate::engine::error::{LockError, LostCause};
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::services::Services;
use crate::engine::holding::turn::Turn;

/// One hold of a turn. Dropping it ends the hold, and the last drop ends the turn: the lease is
/// then passed on or given back.
#[must_use = "dropping it gives the lock back"]
pub(crate) struct Held {
    /// `None` only while the hold is taken apart.
    parts: Option<Parts>,
}

struct Parts {
    services: Arc<Services>,
    turn: Arc<Turn>,
}

impl Held {
    /// A hold that just began.
    pub(crate) fn new(services: Arc<Services>, turn: Arc<Turn>) -> Self {
        let parts = Some(Parts { services, turn });
        Self { parts }
    }

    fn parts(&self) -> &Parts {
        self.parts
            .as_ref()
            .expect("a hold has its turn until it is consumed")
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.parts().services
    }

    pub(crate) fn turn(&self) -> &Arc<Turn> {
        &self.parts().turn
    }

    /// A hold of a turn that is held already, unless the last hold is gone.
    pub(crate) fn join(services: &Arc<Services>, turn: &Arc<Turn>) -> Option<Self> {
        turn.try_add_hold()
            .then(|| Self::new(Arc::clone(services), Arc::clone(turn)))
    }

    /// Ends this hold. The last one passes the lease to another task of this process, or gives it
    /// back to the backend and waits for the answer. If the future is dropped, the reaper takes
    /// over.
    pub(crate) async fn release(mut self) -> Result<(), LockError> {
        let Some(parts) = self.parts.take() else {
            return Ok(());
        };
        let turn = Arc::clone(&parts.turn);
        let lost_before = turn.lost().cloned();
        let Some(owed) = parts.close(LostCause::Released) else {
            return lost_before.map_or(Ok(()), |cause| {
                let target = turn.lease.target.clone();
                Err(LockError::Lost { target, cause })
            });
        };
        owed.give_back(lost_before).await
    }

    /// Ends the lease for this process and leaves it to another one, if this is the only hold of
    /// it.
    pub(crate) fn transfer(mut self) -> Result<Arc<Turn>, Self> {
        // From here on nobody can enter the lease again.
        let alone = self.turn().remove_only_hold();
        let Some(parts) = self.parts.take_if(|_| alone) else {
            return Err(self);
        };
        let turn = Arc::clone(&parts.turn);
        if let Some(owed) = parts.end(LostCause::Transferred) {
            owed.left_to_others();
        }
        Ok(turn)
    }
}

impl Parts {
    /// Ends this hold. Returns the debt to the backend, if this was the last hold and no other task
    /// of this process has the lease now.
    fn close(self, cause: LostCause) -> Option<Owed> {
        self.turn.remove_hold().then(|| self.end(cause)).flatten()
    }

    /// Ends the turn, and passes the lease on or returns the debt to the backend.
    fn end(self, cause: LostCause) -> Option<Owed> {
        // Taken before the turn ends, so that a shutdown waits for the release.
        let _under_way = self.services.attempts.token();
        let lease = &self.turn.lease;
        self.turn.end(cause.clone());
        if cause == LostCause::Transferred || lease.lingers() {
            // A lock that lingers may go to no task of this process before the others.
            lease.leave();
        } else if lease.pass(&self.services) {
            return None;
        }
        lease.close(&self.services, cause)
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
        self.parts.as_ref().map(|parts| &parts.turn).fmt(f)
    }
}
