//! A writer's owner id, lent to the same owner's reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::engine::holding::lease::LeaseState;

/// A writer's owner id while a reader uses it too.
///
/// The backend knows one reader of an id. As long as a release of that reader may still be on its way, the id must
/// not be used for reading again: the release would end the new hold as well.
#[derive(Debug)]
pub(crate) struct SharedOwner {
    writer: Weak<LeaseState>,
    returned: AtomicBool,
}

impl SharedOwner {
    pub(crate) fn of(writer: &Arc<LeaseState>) -> Arc<Self> {
        Arc::new(Self {
            writer: Arc::downgrade(writer),
            returned: AtomicBool::new(false),
        })
    }

    /// The backend certainly has no reader of this id any more.
    pub(crate) fn give_back(&self) {
        self.returned.store(true, Ordering::Release);
    }

    pub(crate) fn is_returned(&self) -> bool {
        self.returned.load(Ordering::Acquire)
    }

    /// Notes that a lease is certainly released; of interest if it is a reader's with a borrowed id.
    pub(crate) fn returned_by(state: &Arc<LeaseState>) {
        if let Some(loan) = state.shared_owner()
            && !loan.writer.ptr_eq(&Arc::downgrade(state))
        {
            loan.give_back();
        }
    }

    /// Whether only one lease uses the id any more, so that it may leave this process.
    pub(crate) fn is_over(&self) -> bool {
        self.is_returned() || self.writer.upgrade().is_none_or(|w| w.holds() == 0)
    }
}
