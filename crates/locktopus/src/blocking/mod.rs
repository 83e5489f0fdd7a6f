//! Locks for programs without a runtime (feature `blocking`): the same locks, with calls that block
//! the thread.
//!
//! Each [`connect`] starts one background thread, which keeps the connections and renews leases. It
//! ends once everything made from it is gone. Dropping a guard releases the lock and waits for the
//! answer.
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
//! **Not inside a tokio runtime**: a blocked thread could keep other tasks from running, even the
//! one that it waits for. Every call that would block fails there with
//! [`BlockingError::InsideRuntime`], before anything is sent. It fails in `spawn_blocking` too,
//! which looks the same. If you have a runtime, use
//! [`Handle::block_on`](tokio::runtime::Handle::block_on) there, with the [asynchronous
//! locks](crate::Locktopus).
//!
//! For operations that are not here, use [`Locktopus::asynchronous`] and [`Locktopus::wait_for`].

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
