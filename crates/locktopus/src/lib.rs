#![doc = include_str!("../README.md")]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]
// README's program must compile without a warning.
#![doc(test(attr(deny(unused_must_use))))]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # The manual
//!
//! | to | see |
//! |---|---|
//! | connect | [`connect`], [`connect_with`] and the table of [URL options](mod@url) |
//! | connect like your client | [`redis`](mod@redis) and [`fred`](mod@fred): `from_client`, ... |
//! | send commands of your own | [`connect_client`] and [`client`] |
//! | take a lock | [`Locktopus::lock`], [`Locktopus::mutex`], [`LockRequest`] |
//! | hold it | [`LockGuard`], [`Lease`], [`FencingToken`] |
//! | reject late writes | [`Fence`], [`FenceGate`], [`StaleFence`] |
//! | use any bytes as names | [`NameEncoding`], [`LockName::encode`] |
//! | tell a busy lock from a failure | [`LockError::is_busy`], [`UnlessBusy`] |
//! | show who holds a lock | [`LocktopusBuilder::label`], [`Locktopus::who`] |
//! | know what went wrong | [`LockError`], [`LostCause`], [`ConnectError`] |
//! | enter a lock again | [`Owner`], [`LockGuard::reenter`] |
//! | pass a lock to another process | [`LockGuard::into_ticket`], [`LockRequest::adopt`] |
//! | share locks with another library | [`MutexProfile`], [`Locktopus::mutex_as`] |
//! | have one leader, or run jobs on one instance | [`LeaderElection`], [`Job`] |
//! | use locks without a runtime | `blocking` (feature `blocking`) |
//! | put a function under a lock | `#[locked]` (feature `macros`) |
//! | write a backend | [`LockBackend`], [`Connectors`] for a URL scheme of its own |

#[cfg(feature = "blocking")]
pub mod blocking;
#[cfg(any(feature = "redis", feature = "fred"))]
mod client_settings;
mod connect;
mod connect_error;
mod connectors;
#[cfg(feature = "fred")]
pub mod fred;
#[cfg(feature = "macros")]
pub mod locked;
#[cfg(feature = "redis")]
pub mod redis;
pub mod url;

#[cfg(any(feature = "redis", feature = "fred"))]
pub use client_settings::ClientSettings;
#[cfg(any(feature = "redis", feature = "fred"))]
pub use connect::connect_client;
#[cfg(any(feature = "redis", feature = "fred"))]
pub use connect::quorum::{connect_quorum, connect_quorum_with, quorum_of};
pub use connect::{connect, connect_backend, connect_with};
pub use connect_error::ConnectError;
pub use connectors::{Connector, ConnectorError, Connectors};
#[cfg(feature = "macros")]
pub use locked::{Skipped, locked};
#[cfg(any(feature = "redis", feature = "fred"))]
pub use locktopus_protocol::{GuardedOutcome, GuardedWriter};
// The crates without a client are re-exported in full; this crate only adds the ways to connect.
pub use locktopus_core::*;
pub use locktopus_fence::*;
#[cfg(feature = "memory")]
pub use locktopus_memory::*;
pub use locktopus_quorum::*;
pub use locktopus_recipes::*;

/// The client that [`connect_client`] returns, with the types of its methods.
#[cfg(any(feature = "redis", feature = "fred"))]
pub mod client {
    pub use locktopus_protocol::slot::key_slot;
    pub use locktopus_protocol::{
        Channel, ChannelFlavour, ClientError, Deployment, NodeReply, Pipelined, PushEvent,
        RedisClient, Reply, Route,
    };
}

/// The types that most programs need: `use locktopus::prelude::*;`
pub mod prelude {
    pub use crate::{Lease, LockError, LockGuard, Locktopus, LostCause, UnlessBusy, connect};
}
