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
//! | keep late writers out | [`Fence`], [`FenceGate`], [`StaleFence`] |
//! | use any bytes as names | [`NameEncoding`], [`LockName::encode`] |
//! | tell a busy lock from a failure | [`LockError::is_busy`], [`UnlessBusy`] |
//! | know what went wrong | [`LockError`], [`LostCause`], [`ConnectError`] |
//! | enter a lock again | [`Owner`], [`LockGuard::reenter`] |
//! | pass a lock to another process | [`LockGuard::into_ticket`], [`LockRequest::adopt`] |
//! | share locks with another library | [`MutexProfile`], [`Locktopus::mutex_as`] |
//! | write a backend | [`LockBackend`], [`Connectors`] for a URL scheme of its own |

mod connect;
mod connect_error;
mod connectors;
pub mod url;

#[cfg(any(feature = "redis", feature = "fred"))]
pub use connect::connect_client;
#[cfg(any(feature = "redis", feature = "fred"))]
pub use connect::quorum::{connect_quorum, quorum_of};
pub use connect::{connect, connect_backend, connect_with};
pub use connect_error::ConnectError;
pub use connectors::{Connector, ConnectorError, Connectors};
#[cfg(any(feature = "redis", feature = "fred"))]
pub use locktopus_protocol::{GuardedOutcome, GuardedWriter};
// All of the core and of the backends without a client is public here: this crate only adds the ways to connect.
pub use locktopus_core::*;
#[cfg(feature = "memory")]
pub use locktopus_memory::*;
pub use locktopus_quorum::*;

/// What most programs need: `use locktopus::prelude::*;`
pub mod prelude {
    pub use crate::{Lease, LockError, LockGuard, Locktopus, LostCause, UnlessBusy, connect};
}

/// Compiles the examples of the fencing guide.
#[cfg(all(doctest, feature = "memory", feature = "redis"))]
#[doc = include_str!("../../../docs/fencing.md")]
struct FencingGuide;
