//! Leases that tasks of this process pass to each other: the interface that renewal and release need.

use std::sync::Arc;

use crate::engine::error::LostCause;
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::lease::LeaseState;
use crate::engine::holding::role::Granted;
use crate::engine::holding::services::Services;

/// What is known here of a lease that tasks of this process pass to each other. Each of them has a [`LeaseState`] of its
/// own for its turn; the backend and the watchdog know only the one at its core.
pub(crate) trait LeaseInTurns: Send + Sync {
    /// The lease that the backend granted.
    fn core(self: Arc<Self>) -> Arc<LeaseState>;

    /// What the backend granted.
    fn granted(&self) -> &Granted;

    /// The lease of the task whose turn it is, if it is anybody's.
    fn turn(&self) -> Option<Arc<LeaseState>>;

    /// The lease at the core has ended: tells the task whose turn it is, and sends the others to the backend.
    fn ended(self: Arc<Self>, cause: &LostCause);

    /// The task whose turn it is is done. True: the next one has the lease, or it is kept for whoever comes next. False:
    /// the caller gives it back to the backend.
    fn pass(self: Arc<Self>, services: &Arc<Services>) -> bool;

    /// The lease stays with whoever has it now, and is passed to nobody else.
    fn leave(self: Arc<Self>);

    /// What gives the lease back to the backend; `None` if somebody else does or did.
    fn close(self: Arc<Self>, services: &Arc<Services>, cause: LostCause) -> Option<Owed>;
}
