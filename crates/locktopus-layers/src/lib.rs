#![cfg_attr(docsrs, feature(doc_cfg))]
//! Layers for any backend of Locktopus. Each wraps a
//! [`LockBackend`](locktopus_contract::LockBackend), is one itself, and changes one thing.
//!
//! | layer | what it changes | for |
//! |---|---|---|
//! | [`Prefix`] | adds a prefix to lock names | tenants that share one connection |
//! | [`Timeout`] | limits the time of each call | backends whose own timeout is too generous |
//! | [`Retry`] | repeats calls that certainly did not run | backends with brief failures |
//! | [`Chaos`] | loses leases, answers and messages; refuses and delays calls | your own tests |
//! | `Recorded` (feature `history`) | only records grants | checkers in `locktopus-history` |
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//! use locktopus_core::Locktopus;
//! use locktopus_layers::{Prefix, Retry, Timeout};
//! use locktopus_memory::MemoryBackend;
//!
//! let backend = Arc::new(MemoryBackend::new()); // or the result of `locktopus::connect_backend`
//! let backend = Arc::new(Timeout::new(backend, Duration::from_millis(80)));
//! let backend = Arc::new(Retry::new(backend));
//! let locks = Locktopus::builder(Prefix::new(backend, "tenant-7:")).build()?;
//! locks.lock("invoice:42").acquire().await?.release().await?;
//! # Ok(()) }
//! ```
//!
//! The outermost layer sees calls first. Put [`Retry`] outside [`Timeout`], so that each repetition
//! has a timeout of its own. Put [`Chaos`] inside both, so that a test sees how they handle its
//! faults.
//!
//! To write a layer of your own, implement [`Layer`](locktopus_contract::Layer) with the methods
//! that it changes.
//!
//! Layers, lowest first: call, around, prefix, timeout, retry, chaos, recorded.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod around;
mod call;
mod chaos;
mod prefix;
#[cfg(all(feature = "history", unix))]
mod recorded;
mod retry;
mod timeout;

pub use call::Call;
pub use chaos::{Chaos, Fault};
pub use prefix::Prefix;
#[cfg(all(feature = "history", unix))]
pub use recorded::Recorded;
pub use retry::Retry;
pub use timeout::Timeout;
