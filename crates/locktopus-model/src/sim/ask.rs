//! What clients ask servers, and what comes back, before it is bytes.

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

/// One request.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    /// Take the lock, or a place in its queue.
    Acquire {
        owner: Owner,
        mode: Mode,
        permits: i64,
        lease_ms: i64,
        /// Latest server time in microseconds; 0 for any.
        not_after: i64,
        tokens: i64,
        floor: i64,
        /// How long to keep the place; `None` to take none.
        place_ms: Option<i64>,
        /// To be told when others want it.
        recall: bool,
        /// Nothing was asked for under this owner before.
        first: bool,
    },
    /// Give it back, or the place.
    Release {
        owner: Owner,
        mode: Mode,
        permits: i64,
        /// What attempts asked for that may have left a place.
        sought: Option<Sought>,
    },
    /// Move the expiry away.
    Extend {
        owner: Owner,
        mode: Mode,
        permits: i64,
        lease_ms: i64,
    },
    /// Listen.
    Subscribe,
    /// Stop listening.
    Unsubscribe,
}

impl Ask {
    pub(super) fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Acquire { owner, .. }
            | Self::Release { owner, .. }
            | Self::Extend { owner, .. } => Some(owner),
            Self::Subscribe | Self::Unsubscribe => None,
        }
    }
}

/// What every attempt of one owner asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sought {
    pub(super) place_ms: i64,
    pub(super) lease_ms: i64,
    pub(super) tokens: i64,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Granted {
        token: i64,
    },
    Held {
        remaining_ms: Option<i64>,
    },
    Queued {
        remaining_ms: Option<i64>,
        ahead: i64,
        fence: i64,
    },
    /// It came too late and nothing was done.
    Late,
    /// Whether the owner held it.
    Released(bool),
    Extended(Extension),
    /// Subscribed, or not any more.
    Done,
    /// The server refused.
    Error(String),
    /// No client could read it.
    Nonsense,
}

/// What an extension found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extension {
    Extended,
    Missing,
    TakenOver,
}

/// What a message on a channel says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    Released,
    Granted {
        owner: Owner,
        token: i64,
    },
    Look {
        owner: Owner,
    },
    Wanted {
        owner: Owner,
    },
    /// Passed over, because nobody listened where the script ran.
    PassedOver {
        owner: Owner,
    },
    Nonsense,
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
