//! The kinds of lock.

/// Which kind of lock a schedule is about.
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
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Lock,
        Self::Mutex,
        Self::Fair,
        Self::ReadWrite,
        Self::Semaphore,
        Self::Permits,
    ];

    /// The word that says of which kind a number is.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Mutex => "mutex",
            Self::Fair => "fair_lock",
            Self::ReadWrite => "rw_lock",
            Self::Semaphore => "semaphore",
            Self::Permits => "permit_semaphore",
        }
    }

    /// What the number of an acquisition becomes in its owner's id: even for a lock, odd for a fair lock.
    pub(super) fn number(self, serial: u64) -> u64 {
        serial * 2 + u64::from(self == Self::Fair)
    }

    /// Whether it is counted in permits.
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Self::Semaphore | Self::Permits)
    }
}
