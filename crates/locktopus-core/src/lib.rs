#![cfg_attr(docsrs, feature(doc_cfg))]
//! The core of Locktopus: the engine that acquires and keeps locks, and the types that users hold.
//! This crate knows no client library and no backend.
//!
//! To use locks, start at [`Locktopus`]. Most programs depend on the facade crate `locktopus`
//! instead, which connects by URL. Backends implement the traits of the crate `locktopus-contract`,
//! which is re-exported here in full.
//!
//! | layer | what it is | where to begin |
//! |---|---|---|
//! | `engine` | acquiring, renewing, passing on, losing, releasing | `engine/acquisition/mod.rs` |
//! | `handles` | requests, guards, and the kinds of locks | `handles/locktopus.rs` |
//!
//! A layer imports only from layers below it. `scripts/check-layers` reads the next line.
//!
//! Layers, lowest first: engine, handles.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod engine;
mod handles;
#[cfg(test)]
mod test_backend;

pub use engine::break_reason::BreakReason;
pub use engine::cohort_settings::CohortSettings;
pub use engine::error::{LockError, LostCause, Phase};
pub use engine::settings::WaitStrategy;
pub use engine::unless_busy::UnlessBusy;
pub use engine::wait_progress::{WaitEstimate, WaitPosition, WaitProgress};
pub use handles::any_guard::AnyGuard;
pub use handles::builder::LocktopusBuilder;
pub use handles::guard::LockGuard;
pub use handles::held_lock::HeldLock;
pub use handles::latch::{Latch, LatchWait};
pub use handles::lease::Lease;
pub use handles::listing::{ListedLock, LockList};
pub use handles::lock_request::LockRequest;
pub use handles::locktopus::{Locktopus, ShutdownReport};
pub use handles::multi::{MemberName, MultiGuard, MultiLock, MultiReleaseError};
pub use handles::owner_handle::Owner;
pub use handles::rate_limiter::RateLimiter;
pub use handles::rw_lock::{DowngradeError, RwLock, WriteGuard};
pub use handles::semaphore::{MAX_SEMAPHORE_PERMITS, Semaphore};
pub use handles::ticket::LeaseTicket;
pub use handles::who::KnownInstances;
pub use locktopus_contract::*;
pub use locktopus_fence::Fence;
pub use tokio_util::sync::CancellationToken;
