//! The state of a lock in its backend, and lists of locks.

use std::time::Duration;

use crate::kind::LockKind;
use crate::mode::Mode;
use crate::owner::OwnerId;
use crate::token::FencingToken;

/// The state of a lock in its backend.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{FencingToken, HolderState, LockState, Mode, OwnerId, WaiterState};
/// // A backend's answer for a lock with one holder and one waiter.
/// let (holder, waiter) = (OwnerId::generate(), OwnerId::generate());
/// let left = Some(Duration::from_secs(20));
/// let mut state = LockState::default();
/// state.holders = vec![
///     HolderState::new(holder.clone(), Mode::Exclusive, 1, left)
///         .held_for(Some(Duration::from_secs(10))),
/// ];
/// state.last_token = FencingToken::new(17);
/// state.waiters = vec![WaiterState::new(waiter.clone(), Mode::Exclusive, 1, None)];
/// assert_eq!(state.holder().map(|holder| &holder.owner), Some(&holder));
/// assert_eq!(state.owners().count(), 2);
/// assert_eq!((state.position(&waiter), state.position(&holder)), (Some(0), None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockState {
    /// The holders: at most one for exclusive kinds, several for readers and semaphores. Holders
    /// whose lease has ended are left out.
    pub holders: Vec<HolderState>,
    /// The last token reserved, if the backend keeps one for this kind. A grant reserves a block,
    /// so the holder's own token may be lower. Every later grant has a greater one.
    pub last_token: Option<FencingToken>,
    /// The queue, in order. Waiters that poll or listen without a place in it are unknown.
    pub waiters: Vec<WaiterState>,
    /// How many permits a semaphore has left. `None` for other kinds, and for a semaphore whose
    /// number was never set.
    pub available: Option<i64>,
}

impl LockState {
    /// The only holder, or the first one.
    #[must_use]
    pub fn holder(&self) -> Option<&HolderState> {
        self.holders.first()
    }

    /// All holders and all waiters in the queue. `Locktopus::who` says which programs they are.
    pub fn owners(&self) -> impl Iterator<Item = &OwnerId> {
        let holders = self.holders.iter().map(|holder| &holder.owner);
        holders.chain(self.waiters.iter().map(|waiter| &waiter.owner))
    }

    /// An owner's position in the queue: 0 is next.
    #[must_use]
    pub fn position(&self, owner: &OwnerId) -> Option<usize> {
        self.waiters
            .iter()
            .position(|waiter| waiter.owner == *owner)
    }
}

/// A holder as the backend sees it.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{HolderState, Mode, OwnerId};
/// let left = Some(Duration::from_secs(20)); // of its lease
/// let holder = HolderState::new(OwnerId::generate(), Mode::Exclusive, 1, left)
///     .held_for(Some(Duration::from_secs(10)));
/// assert_eq!(holder.remaining, left);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderState {
    /// Its id. A secret: it is enough to release the lock.
    pub owner: OwnerId,
    /// How it holds.
    pub mode: Mode,
    /// How many times it holds the lock, or how many permits. Always 1 for native holders of a
    /// lock, which count re-entry in the process.
    pub holds: u64,
    /// What is left of the lease. `None` if it never expires.
    pub remaining: Option<Duration>,
    /// How long it has held the lock, at least, by the backend's clock. `None` if the backend does
    /// not know. A quorum may answer up to a second less. Tasks that pass a lock on inside one
    /// process count as one holder.
    pub held_for: Option<Duration>,
}

impl HolderState {
    /// A holder.
    #[must_use]
    pub fn new(owner: OwnerId, mode: Mode, holds: u64, remaining: Option<Duration>) -> Self {
        Self {
            owner,
            mode,
            holds,
            remaining,
            held_for: None,
        }
    }

    /// Adds how long it has held the lock, at least.
    #[must_use]
    pub fn held_for(mut self, time: Option<Duration>) -> Self {
        self.held_for = time;
        self
    }
}

/// A waiter in the queue.
///
/// ```
/// use locktopus_contract::{Mode, OwnerId, WaiterState};
/// let waiter = WaiterState::new(OwnerId::generate(), Mode::Permits, 3, None);
/// assert_eq!(waiter.permits, 3);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaiterState {
    /// Its id.
    pub owner: OwnerId,
    /// The kind of hold that it wants.
    pub mode: Mode,
    /// How many permits it wants. 1 for locks.
    pub permits: u32,
    /// How long its place lasts if it sends nothing more. `None` if unknown, as for a waiter of
    /// another library.
    pub remaining: Option<Duration>,
    /// How long it has waited, at least, by the backend's clock. `None` if the backend does not
    /// know. Tasks of one process that wait for a lock count as one waiter.
    pub waited_for: Option<Duration>,
}

impl WaiterState {
    /// A waiter.
    #[must_use]
    pub fn new(owner: OwnerId, mode: Mode, permits: u32, remaining: Option<Duration>) -> Self {
        Self {
            owner,
            mode,
            permits,
            remaining,
            waited_for: None,
        }
    }

    /// Adds how long it has waited, at least.
    ///
    /// ```
    /// use std::time::Duration;
    /// use locktopus_contract::{Mode, OwnerId, WaiterState};
    ///
    /// let waiter = WaiterState::new(OwnerId::generate(), Mode::Exclusive, 1, None);
    /// let waiter = waiter.waited_for(Some(Duration::from_secs(2)));
    /// assert_eq!(waiter.waited_for, Some(Duration::from_secs(2)));
    /// ```
    #[must_use]
    pub fn waited_for(mut self, time: Option<Duration>) -> Self {
        self.waited_for = time;
        self
    }
}

/// The result of a forced release.
///
/// ```
/// use locktopus_contract::{Eviction, FencingToken, OwnerId};
/// let eviction = Eviction::new(vec![OwnerId::generate()], FencingToken::new(17));
/// assert_eq!(eviction.evicted.len(), 1); // later grants have tokens greater than 17
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Eviction {
    /// The former holders.
    pub evicted: Vec<OwnerId>,
    /// Tokens up to this one are fenced: every later grant has a greater one. `None` if the kind
    /// has no tokens.
    pub fence: Option<FencingToken>,
}

impl Eviction {
    /// The result of a forced release.
    #[must_use]
    pub fn new(evicted: Vec<OwnerId>, fence: Option<FencingToken>) -> Self {
        Self { evicted, fence }
    }
}

/// One page of a list of locks.
///
/// ```
/// use locktopus_contract::{FoundLock, LockKind, LockPage, ScanCursor};
/// let more = Some(ScanCursor("17".to_owned())); // the backend's own bookmark
/// let page = LockPage::new(vec![FoundLock::new("invoice:42", LockKind::Reentrant)], more);
/// assert_eq!((page.locks[0].name.as_str(), page.next.is_some()), ("invoice:42", true));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockPage {
    /// The locks found. A lock may appear twice. A lock that is taken or released during the
    /// listing may or may not appear.
    pub locks: Vec<FoundLock>,
    /// Where to continue, unless this was the last page.
    pub next: Option<ScanCursor>,
}

impl LockPage {
    /// A page.
    #[must_use]
    pub fn new(locks: Vec<FoundLock>, next: Option<ScanCursor>) -> Self {
        Self { locks, next }
    }
}

/// A lock that is held, found by its keys.
///
/// ```
/// use locktopus_contract::{FoundLock, LockKind};
/// assert_eq!(FoundLock::new("invoice:42", LockKind::Fair).kind, LockKind::Fair);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundLock {
    /// The lock's name, namespace included. `LockList` leaves out names that `check` refuses.
    pub name: String,
    /// The kind, judged by the stored bytes. Kinds that share a layout look the same.
    pub kind: LockKind,
}

impl FoundLock {
    /// A found lock.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: LockKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// A bookmark in a list of locks. Only the backend that made it can read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "it is complete")]
pub struct ScanCursor(pub String);
