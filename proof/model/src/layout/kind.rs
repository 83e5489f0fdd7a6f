//! The kinds of lock.

/// Which kind of lock the keys are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The reentrant lock.
    Lock,
    /// The mutex of the default profile.
    Mutex,
    /// The fair lock.
    Fair,
    /// The read-write lock; each acquisition is of one half.
    ReadWrite,
    /// The semaphore without ids; each acquisition is of some permits.
    Semaphore,
    /// The semaphore whose permits have ids.
    Permits,
}

impl Kind {
    /// Whether it is counted in permits.
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Self::Semaphore | Self::Permits)
    }
}
