//! Locks for programs without a runtime (feature `blocking`): the same locks, with calls that block
//! the thread.
//!
//! Each [`connect`] starts one background thread, which keeps the connections, renews leases and
//! ends with the last of what was made of it. Guards release when they are dropped, and wait for
//! the answer.
//!
//! ```
//! use std::time::Duration;
//! use locktopus::blocking;
//!
//! # fn main() -> Result<(), blocking::BlockingError> {
//! let locks = blocking::connect("memory:")?; // or redis://, redis-cluster://, ...
//! let guard = locks.lock("invoice:42").wait_at_most(Duration::from_secs(5)).acquire()?;
//! guard.ensure_valid()?; // right before each side effect
//! drop(guard); // released, and free for others
//! assert!(locks.lock("invoice:42").try_acquire()?.is_some());
//! # Ok(()) }
//! ```
//!
//! **Not inside a tokio runtime**: blocking one of its threads could keep everything else from
//! going on, also what is waited for. Every call that would block fails there with
//! [`BlockingError::InsideRuntime`], before anything is sent, and also in `spawn_blocking`, which
//! cannot be told apart; with a runtime at hand, use
//! [`Handle::block_on`](tokio::runtime::Handle::block_on) there and the [asynchronous
//! locks](crate::Locktopus).
//!
//! What is not here is reached through [`Locktopus::asynchronous`] and [`Locktopus::wait_for`].

mod counted;
mod error;
mod guard;
mod locks;
mod request;
mod runtime;

pub use counted::{Latch, RateLimiter, RwLock, Semaphore};
pub use error::BlockingError;
pub use guard::LockGuard;
pub use locks::{Locktopus, build, connect, connect_with};
pub use request::LockRequest;
