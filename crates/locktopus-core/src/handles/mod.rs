//! What users have in hand: requests, guards, leases, and the objects made of them.

pub(crate) mod any_guard;
pub(crate) mod fence;
pub(crate) mod guard;
pub(crate) mod held_lock;
pub(crate) mod latch;
pub(crate) mod lease;
pub(crate) mod listing;
pub(crate) mod lock_request;
pub(crate) mod locktopus;
pub(crate) mod multi;
pub(crate) mod owner_handle;
pub(crate) mod rw_lock;
pub(crate) mod semaphore;
pub(crate) mod ticket;
