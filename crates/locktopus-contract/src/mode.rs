//! How a lock is held: alone, with other readers, or in part.

/// How a holder holds a lock, or how a waiter wants to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum Mode {
    /// Alone: every kind except read locks and semaphores.
    Exclusive,
    /// Together with other readers.
    Read,
    /// Some permits of a semaphore.
    Permits,
}
