//! What clients ask servers, and what comes back, before it is bytes.

use std::rc::Rc;

/// Whom a hold belongs to. Fresh for each acquisition.
pub(super) type Owner = Rc<str>;

/// How a lock is wanted or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Exclusive,
    Read,
    Write,
    Permits,
}

impl Mode {
    /// Whether two holders may hold at once. Permits are counted elsewhere.
    pub(super) fn shares_with(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Read, Self::Read) | (Self::Permits, Self::Permits)
        )
    }

    /// Whether its grants have fencing tokens.
    pub(super) fn has_tokens(self) -> bool {
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
pub(super) struct Holder {
    pub(super) owner: Owner,
    pub(super) mode: Mode,
    pub(super) permits: i64,
    /// Server time in microseconds; `None` for never.
    pub(super) expires_at: Option<i64>,
    /// Its time is over, but it is still written down, which may keep others out for a moment.
    pub(super) over: bool,
}

/// Who waits in a queue on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) owner: Owner,
    /// Server time in microseconds.
    pub(super) alive_until: i64,
    pub(super) lease_ms: i64,
    pub(super) tokens: i64,
    pub(super) permits: i64,
    pub(super) mode: Mode,
    pub(super) inbox: Vec<u8>,
}
