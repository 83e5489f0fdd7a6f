//! A token, bound to its lock and its holder.

use std::borrow::Cow;
use std::cmp::Ordering;

use locktopus_contract::{FencingToken, LockName, LockTarget, OwnerId};

use crate::mark::HolderMark;

/// A fencing token with its lock and, if known, its holder.
///
/// It names kind and lock, so one lock's token cannot be used for another. Fences of different
/// locks have no order. Neither have fences of two holders with the same token, which only a server
/// that lost data gives out.
///
/// As text it is one word of printable ASCII, fit for a header, a column or a log line:
/// `locktopus-fence1.<kind>.<name in base64url>.<token>`, followed by another dot and the
/// [mark](HolderMark) of the holder if it is known. It is neither a secret nor a proof: a client
/// that may write to the resource could make one up.
///
/// ```
/// use locktopus::{Fence, FencingToken, LockKind, LockName, LockTarget};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let fence = Fence::new(&target, FencingToken::new(17).expect("in range"));
/// assert_eq!(fence.to_string(), "locktopus-fence1.lock.aW52b2ljZTo0Mg.17");
///
/// let received: Fence = fence.to_string().parse()?;
/// assert!(received.is_for(&target));
/// assert!(received < Fence::new(&target, FencingToken::new(18).expect("in range")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fence {
    pub(crate) lock: FencedLock,
    pub(crate) token: FencingToken,
    pub(crate) holder: Option<HolderMark>,
}

/// The lock of a fence.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FencedLock {
    /// A word instead of a `LockKind`, because the protected side knows nothing about profiles and
    /// may be older than the newest kind.
    pub(crate) kind: Cow<'static, str>,
    pub(crate) name: LockName,
}

impl FencedLock {
    pub(crate) fn of(target: &LockTarget) -> Self {
        Self {
            kind: target.kind().as_str().into(),
            name: target.name().clone(),
        }
    }
}

impl Fence {
    /// Binds a token to its lock.
    #[must_use]
    pub fn new(target: &LockTarget, token: FencingToken) -> Self {
        Self {
            lock: FencedLock::of(target),
            token,
            holder: None,
        }
    }

    /// Adds the holder. The gate can then tell two holders apart even if a server gave both the
    /// same token.
    ///
    /// ```
    /// use locktopus::{Fence, FencingToken, HolderMark, LockKind, LockName, LockTarget, OwnerId};
    /// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
    /// let (token, owner) = (FencingToken::new(17).expect("in range"), OwnerId::generate());
    /// let fence = Fence::new(&target, token).held_by(&owner);
    /// assert_eq!(
    ///     (fence.kind(), fence.name().as_str(), fence.token()),
    ///     ("lock", "invoice:42", token)
    /// );
    /// assert_eq!(fence.holder(), Some(HolderMark::of(&owner)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn held_by(mut self, owner: &OwnerId) -> Self {
        self.holder = Some(HolderMark::of(owner));
        self
    }

    /// The kind of the lock, in the words of
    /// [`LockKind::as_str`](locktopus_contract::LockKind::as_str).
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.lock.kind
    }

    /// The name of the lock, including the namespace.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.lock.name
    }

    /// The number to compare and to store.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// The mark of the holder, if it is known.
    #[must_use]
    pub fn holder(&self) -> Option<HolderMark> {
        self.holder
    }

    /// Whether this fence belongs to this lock. A resource that one lock protects should check
    /// this.
    #[must_use]
    pub fn is_for(&self, target: &LockTarget) -> bool {
        self.lock.kind == target.kind().as_str() && self.lock.name == *target.name()
    }
}

impl PartialOrd for Fence {
    /// Which grant came later. `None` for different locks, and for different holders with the same
    /// token.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self.lock != other.lock {
            return None;
        }
        match self.token.cmp(&other.token) {
            Ordering::Equal => (self.holder == other.holder).then_some(Ordering::Equal),
            order => Some(order),
        }
    }
}
