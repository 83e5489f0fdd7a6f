//! Ways of locking to compare on the same servers: kinds, clients, and other libraries.
//!
//! Locktopus itself is not here, because each program asks more of it than any other library
//! offers.

#[cfg(feature = "peers")]
mod bare;
mod client;
mod kind;
#[cfg(feature = "peers")]
mod r1;
#[cfg(feature = "peers")]
mod rslock;
#[cfg(feature = "peers")]
mod script;
mod subject;

#[cfg(feature = "peers")]
use std::time::Duration;

#[cfg(feature = "peers")]
pub(crate) use bare::connect as bare;
pub use client::Client;
pub use kind::Kind;
#[cfg(feature = "peers")]
pub(crate) use r1::connect as r1;
#[cfg(feature = "peers")]
pub(crate) use rslock::connect as rslock;
pub(crate) use subject::{Held, Subject};

/// The lease of other libraries' locks, as long as a renewed lease of this library.
#[cfg(feature = "peers")]
pub(crate) const LEASE: Duration = Duration::from_secs(30);
