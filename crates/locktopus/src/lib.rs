#![doc = include_str!("../../../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # The manual
//!
//! | to | see |
//! |---|---|
//! | connect | [`connect`], [`connect_with`] and the table of [URL options](mod@url) |
//! | take a lock | [`Locktopus::lock`], [`Locktopus::mutex`], [`LockRequest`] |
//! | hold it | [`LockGuard`], [`Lease`], [`FencingToken`] |
//! | know what went wrong | [`LockError`], [`LostCause`], [`ConnectError`] |
//! | enter a lock again | [`Owner`], [`LockGuard::reenter`] |
//! | pass a lock to another process | [`LockGuard::into_ticket`], [`LockRequest::adopt`] |
//! | share locks with another library | [`MutexProfile`], [`Locktopus::mutex_as`] |
//! | write a backend | [`LockBackend`] |

mod connect;
mod connect_error;
pub mod url;

#[cfg(any(feature = "redis", feature = "fred"))]
pub use connect::connect_client;
pub use connect::{connect, connect_backend, connect_with};
pub use connect_error::ConnectError;
#[cfg(feature = "memory")]
pub use locktopus_core::MemoryBackend;
pub use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, CancellationToken,
    Diagnosis, DynBackend, Executed, ExtendOutcome, ExtendRequest, FencingToken, Finding,
    HolderState, Lease, LeaseTicket, LockBackend, LockError, LockGuard, LockKind, LockName,
    LockRequest, LockState, LockTarget, Locktopus, LocktopusBuilder, LostCause, MutexProfile,
    NameError, OptionError, Owner, OwnerId, Phase, ReleaseOutcome, ReleaseRequest, Severity,
    ShutdownReport, ValidityMargin, ValueEncoding, WaitStrategy, Wake, WakeGroup, WakeStream,
};

/// What most programs need: `use locktopus::prelude::*;`
pub mod prelude {
    pub use crate::{Lease, LockError, LockGuard, Locktopus, LostCause, connect};
}
