//! A writer's owner id, lent to the same owner's reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;

/// A writer's owner id while a reader uses it too.
///
/// The backend knows one reader per id. While a release of that reader may still be under way, the
/// id must not be used for reading again: the release would end the new hold too.
#[derive(Debug)]
pub(crate) struct SharedOwner {
    writer: Weak<BackendLease>,
    returned: AtomicBool,
}

impl SharedOwner {
    pub(crate) fn of(writer: &Arc<BackendLease>) -> Arc<Self> {
        Arc::new(Self {
            writer: Arc::downgrade(writer),
            returned: AtomicBool::new(false),
        })
    }

    /// Notes that the backend certainly has no reader of this id.
    pub(crate) fn give_back(&self) {
        self.returned.store(true, Ordering::Release);
    }

    pub(crate) fn is_returned(&self) -> bool {
        self.returned.load(Ordering::Acquire)
    }

    /// Notes that a lease is certainly released, which matters if its id is lent or borrowed.
    /// `last` is as in its release.
    pub(crate) fn returned_by(services: &Arc<Services>, lease: &Arc<BackendLease>, last: bool) {
        let Some(loan) = lease.shared_owner() else {
            return;
        };
        let of_reader = !loan.writer.ptr_eq(&Arc::downgrade(lease));
        if of_reader {
            loan.give_back();
        }
        if !(of_reader && last) {
            loan.end_reading(services, lease);
        }
    }

    /// Releases the reader once more if neither half is held any longer. More attempts could have
    /// followed the reader's own release, so a backend could not repeat that one after a failover.
    pub(crate) fn end_reading(&self, services: &Arc<Services>, lease: &BackendLease) {
        if self.is_returned() && self.writer_is_gone() {
            services.reap(services.last_release_of_reader(lease));
        }
    }

    /// Whether no guard holds the writer any longer, so that it will not read again.
    pub(crate) fn writer_is_gone(&self) -> bool {
        self.writer.upgrade().is_none_or(|writer| !writer.is_held())
    }

    /// Whether only one lease still uses the id, so that the lease may leave this process.
    pub(crate) fn is_over(&self) -> bool {
        self.is_returned() || self.writer_is_gone()
    }
}
