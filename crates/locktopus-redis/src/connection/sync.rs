//! Locks the small mutexes of this crate.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, ignoring poison: guarded values are replaced as a whole, so a panic cannot leave one
/// half-written.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
