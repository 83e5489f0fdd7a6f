//! Locking of the small mutexes that guard this crate's own tables.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after another thread panicked: the guarded values are replaced as a whole, so a
/// panic cannot leave one half written.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
