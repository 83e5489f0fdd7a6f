//! Who holds a lock on a server, and who waits for it.

use std::rc::Rc;

/// Whom a hold belongs to. Fresh for each acquisition.
pub type Owner = Rc<str>;

/// How a lock is wanted or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// With other readers.
    Read,
    /// Alone, where others read.
    Write,
    /// So many permits.
    Permits,
}

impl Mode {
    /// Whether two holders may hold at once. Permits are counted elsewhere.
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

/// Who holds a lock on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Whom it is of.
    pub owner: Owner,
    /// How it is held or wanted.
    pub mode: Mode,
    /// How many permits.
    pub permits: i64,
    /// Server time in microseconds; `None` for never.
    pub expires_at: Option<i64>,
    /// Its time is over, but it is still written down, which may keep others out for a moment.
    pub over: bool,
}

/// Who waits in a queue on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Whom it is of.
    pub owner: Owner,
    /// Server time in microseconds.
    pub alive_until: i64,
    /// For how long it is wanted.
    pub lease_ms: i64,
    /// How many tokens are to be reserved.
    pub tokens: i64,
    /// How many permits.
    pub permits: i64,
    /// How it is held or wanted.
    pub mode: Mode,
    /// Where its process listens.
    pub inbox: Vec<u8>,
    /// It did not listen when its turn came. It keeps its place; others are served until it asks
    /// again.
    pub aside: bool,
}
