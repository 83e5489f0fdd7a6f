//! The types users work with: requests, guards, leases, and what is built from them.
//!
//! | module | what is in it |
//! |---|---|
//! | `locktopus`, `builder` | the entry point: requests for each kind, shutdown; its settings |
//! | `lock_request` | a request: its options and their checks, acquiring; inspection, eviction |
//! | `guard`, `any_guard`, `lease` | a held lock; the guard of each kind; its view of the lease |
//! | `while_held` | work that is dropped when its lease ends |
//! | `owner_handle` | owners, who may enter a reentrant lock again |
//! | `rw_lock`, `semaphore`, `rate_limiter`, `latch` | the kinds that are more than one request |
//! | `multi` | several locks at once, all or none |
//! | `ticket` | a live lease on its way to another process |
//! | `held_lock`, `listing` | the locks this process holds; the locks the backend has |
//! | `who` | the instances behind owner ids |

pub(crate) mod any_guard;
pub(crate) mod builder;
pub(crate) mod guard;
pub(crate) mod held_lock;
pub(crate) mod latch;
pub(crate) mod lease;
pub(crate) mod listing;
pub(crate) mod lock_request;
pub(crate) mod locktopus;
pub(crate) mod multi;
pub(crate) mod owner_handle;
pub(crate) mod rate_limiter;
pub(crate) mod rw_lock;
pub(crate) mod semaphore;
pub(crate) mod ticket;
mod while_held;
pub(crate) mod who;
