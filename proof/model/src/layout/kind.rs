//! The kinds of lock.

/// The kind of lock that the keys belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The reentrant lock.
    Lock,
    /// The mutex of the default profile.
    Mutex,
    /// The fair lock.
    Fair,
    /// The read-write lock; each acquisition takes one half.
    ReadWrite,
    /// The semaphore without ids; each acquisition takes some permits.
    Semaphore,
    /// The semaphore whose permits have ids.
    Permits,
}

impl Kind {
    /// Whether it counts permits.
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Self::Semaphore | Self::Permits)
    }
}
