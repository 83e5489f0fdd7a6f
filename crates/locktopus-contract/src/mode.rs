//! How a lock is held: alone, with other readers, or in parts.

/// How a holder holds, or how a waiter wants to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever gets it must look at each case"
)]
pub enum Mode {
    /// Alone: every lock that is neither a read lock nor a semaphore.
    Exclusive,
    /// Together with other readers.
    Read,
    /// A part of a semaphore.
    Permits,
}
