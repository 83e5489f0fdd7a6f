//! Fencing tokens.

use std::fmt;
use std::num::NonZeroU64;

/// A number that grows with every grant of a lock.
///
/// Send it with every write that the lock protects. Let the resource refuse a token smaller than
/// the largest it has seen. Then a holder that was paused past its lease cannot overwrite its
/// successor's work. Source: Kleppmann, "How to do distributed locking" (2016).
///
/// On Redis tokens are hybrid: `max(previous + 1, server time in microseconds)`. They keep growing
/// even if a failover loses the counter, as long as the new primary's clock is not behind by more
/// than the time since the lost grant. A backend may [count](crate::TokenSource::Count) instead.
/// `memory:` counts up from the time at which the store was made. On all backends tokens stay below
/// 2^53, so Lua, JavaScript and JSON represent them exactly.
///
/// ```
/// use locktopus_contract::FencingToken;
/// let (older, newer) =
///     (FencingToken::new(17).expect("in range"), FencingToken::new(18).expect("in range"));
/// assert!(newer > older && newer.get() == 18);
/// assert_eq!(FencingToken::new(0), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(NonZeroU64);

/// 2^53: from here on, IEEE doubles (and so Lua 5.1) cannot count exactly.
pub const TOKEN_LIMIT: u64 = 1 << 53;

impl FencingToken {
    /// Wraps a number. `None` unless it is between 1 and 2^53 - 1.
    #[must_use]
    pub fn new(value: u64) -> Option<Self> {
        NonZeroU64::new(value)
            .filter(|v| v.get() < TOKEN_LIMIT)
            .map(Self)
    }

    /// The number to compare and to store.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({})", self.0)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.get()
    }
}
