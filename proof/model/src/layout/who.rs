//! Holders and waiters of a lock on a server.

use std::rc::Rc;

/// The owner of a hold. A new one for each acquisition.
pub type Owner = Rc<str>;

/// How a lock is held or wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// With other readers.
    Read,
    /// Alone, against readers and writers.
    Write,
    /// A number of permits.
    Permits,
}

impl Mode {
    /// Whether two owners may hold at once. Permits are counted elsewhere.
    #[must_use]
    pub fn shares_with(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Read, Self::Read) | (Self::Permits, Self::Permits)
        )
    }

    /// Whether its grants have fencing tokens.
    #[must_use]
    pub fn has_tokens(self) -> bool {
        matches!(self, Self::Exclusive | Self::Write)
    }
}

/// A holder of a lock on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its owner.
    pub owner: Owner,
    /// Its mode.
    pub mode: Mode,
    /// How many permits it has.
    pub permits: i64,
    /// When its lease expires, in server time in microseconds; `None` for never.
    pub expires_at: Option<i64>,
    /// Its lease has expired but is still stored, which may keep others out for a moment.
    pub over: bool,
}

/// A waiter in a queue on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Its owner.
    pub owner: Owner,
    /// Until when it counts as alive, in server time in microseconds.
    pub alive_until: i64,
    /// The lease it wants, in ms.
    pub lease_ms: i64,
    /// How many tokens it wants.
    pub tokens: i64,
    /// How many permits it wants.
    pub permits: i64,
    /// The mode it wants.
    pub mode: Mode,
    /// The channel of its process.
    pub inbox: Vec<u8>,
    /// It did not listen when its turn came. It keeps its place, but others are served until it
    /// asks again.
    pub aside: bool,
}
