#![cfg_attr(docsrs, feature(doc_cfg))]
//! Layers on any backend of Locktopus: each wraps a
//! [`LockBackend`](locktopus_contract::LockBackend), is one itself, and changes one thing.
//!
//! | layer | what it changes | for |
//! |---|---|---|
//! | [`Prefix`] | lock names get a prefix on their way to the backend | tenants that share one connection |
//! | [`Timeout`] | no call takes longer | backends whose own timeout is too generous |
//! | [`Retry`] | what was surely not executed is asked again | backends that fail for moments |
//! | [`Chaos`] | what a test says: lost leases, refused calls, lost answers, delays, no notifications | your own tests |
//! | `Recorded` (feature `history`) | nothing; it writes down what the backend granted | the checker of `locktopus-history` |
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//! use locktopus_core::Locktopus;
//! use locktopus_layers::{Prefix, Retry, Timeout};
//! use locktopus_memory::MemoryBackend;
//!
//! let backend = Arc::new(MemoryBackend::new()); // or what `locktopus::connect_backend` gives
//! let backend = Arc::new(Timeout::new(backend, Duration::from_millis(80)));
//! let backend = Arc::new(Retry::new(backend));
//! let locks = Locktopus::builder(Prefix::new(backend, "tenant-7:")).build()?;
//! locks.lock("invoice:42").acquire().await?.release().await?;
//! # Ok(()) }
//! ```
//!
//! The outermost layer sees calls first. Put [`Retry`] outside [`Timeout`], so that each repetition
//! has a timeout of its own, and [`Chaos`] inside both, so that a test sees what they make of its
//! faults.
//!
//! To write a layer of your own, implement [`Layer`](locktopus_contract::Layer) and write the
//! methods that it changes.
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
