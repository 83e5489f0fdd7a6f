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
pub(crate) struct Hold {
    /// `None` only while the hold is taken apart.
    parts: Option<Parts>,
}

struct Parts {
    services: Arc<Services>,
    turn: Arc<Turn>,
}

impl Hold {
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
        let Some(owed) = parts.close() else {
            return lost_before.map_or(Ok(()), |cause| {
                let target = turn.lease.target.clone();
                Err(LockError::Lost { target, cause })
            });
        };
        owed.give_back(lost_before).await
    }

    /// Leaves the lease to another process. Gives the hold back if there are others, or if a loss
    /// or a shutdown came first.
    pub(crate) fn transfer(mut self) -> Result<Arc<Turn>, Self> {
        let turn = Arc::clone(self.turn());
        // From here on no owner can enter the lease again.
        if !turn.remove_only_hold() {
            return Err(self);
        }
        if turn.lease.transfer(self.services()) {
            self.parts = None;
            return Ok(turn);
        }
        turn.restore_hold();
        Err(self)
    }
}

impl Parts {
    /// Ends this hold. The last one ends the turn, and passes the lease on or returns the debt to
    /// the backend.
    fn close(self) -> Option<Owed> {
        if !self.turn.remove_hold() {
            return None;
        }
        // Taken before the turn ends, so that a shutdown waits for the release.
        let _under_way = self.services.attempts.token();
        let lease = &self.turn.lease;
        self.turn.end(LostCause::Released);
        if lease.lingers() {
            // A lock that lingers may go to no task of this process before the others.
            lease.leave();
        } else if lease.pass(&self.services) {
            return None;
        }
        lease.close(&self.services, LostCause::Released)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // What is owed then goes to the reaper.
        if let Some(parts) = self.parts.take() {
            drop(parts.close());
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.as_ref().map(|parts| &parts.turn).fmt(f)
    }
}
