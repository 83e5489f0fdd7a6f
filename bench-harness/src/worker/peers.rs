//! Other ways of locking, measured beside this library on the same servers in the same rounds.

mod r1;
mod rslock;

use std::time::Duration;

/// The lease of each, as long as the renewed lease of the others.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) use r1::connect as r1;
pub(crate) use rslock::connect as rslock;
