//! The state of a lock as its backend sees it, and lists of locks.

use std::time::Duration;

use crate::kind::LockKind;
use crate::mode::Mode;
use crate::owner::OwnerId;
use crate::token::FencingToken;

/// The state of a lock as its backend sees it.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{FencingToken, HolderState, LockState, Mode, OwnerId, WaiterState};
/// // What a backend answers of a lock that one holds and another waits for.
/// let (holder, waiter) = (OwnerId::generate(), OwnerId::generate());
/// let left = Some(Duration::from_secs(20));
/// let mut state = LockState::default();
/// state.holders = vec![HolderState::new(holder.clone(), Mode::Exclusive, 1, left).held_for(Some(Duration::from_secs(10)))];
/// state.last_token = FencingToken::new(17);
/// state.waiters = vec![WaiterState::new(waiter.clone(), Mode::Exclusive, 1, None)];
/// assert_eq!(state.holder().map(|holder| &holder.owner), Some(&holder));
/// assert_eq!(state.owners().count(), 2);
/// assert_eq!((state.position(&waiter), state.position(&holder)), (Some(0), None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockState {
    /// Who holds it: at most one for exclusive kinds, several for readers and semaphores. Holders
    /// whose lease has ended are left out.
    pub holders: Vec<HolderState>,
    /// The last token handed out, if the backend keeps one for this kind.
    pub last_token: Option<FencingToken>,
    /// Who waits in the queue, in order. Those who poll or wait for a message without a place are
    /// not known.
    pub waiters: Vec<WaiterState>,
    /// How many permits a semaphore has left. `None` for other kinds, and for a semaphore that was
    /// never given any.
    pub available: Option<i64>,
}

impl LockState {
    /// The only holder, or the first one.
    #[must_use]
    pub fn holder(&self) -> Option<&HolderState> {
        self.holders.first()
    }

    /// Everybody who holds it or stands in its queue. `Locktopus::who` says who they are.
    pub fn owners(&self) -> impl Iterator<Item = &OwnerId> {
        let holders = self.holders.iter().map(|holder| &holder.owner);
        holders.chain(self.waiters.iter().map(|waiter| &waiter.owner))
    }

    /// Where an owner stands in the queue: 0 is next.
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
/// let holder = HolderState::new(OwnerId::generate(), Mode::Exclusive, 1, left).held_for(Some(Duration::from_secs(10)));
/// assert_eq!(holder.remaining, left);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderState {
    /// Its id. Show it to nobody who may not release the lock.
    pub owner: OwnerId,
    /// How it holds.
    pub mode: Mode,
    /// How many times it is held, or how many permits. Always 1 for native holders of a lock, which
    /// count re-entry in the process.
    pub holds: u64,
    /// What is left of the lease; `None` if it never expires.
    pub remaining: Option<Duration>,
    /// For how long it has held it, at least, by the backend's clock; `None` if the backend does
    /// not know. A quorum may say up to a second less than it is. Tasks that pass a lock on inside
    /// one process are one holder.
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

    /// Adds for how long it has held it at least.
    #[must_use]
    pub fn held_for(mut self, time: Option<Duration>) -> Self {
        self.held_for = time;
        self
    }
}

/// Somebody in the queue.
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
    /// What it wants.
    pub mode: Mode,
    /// How many permits it wants; 1 for locks.
    pub permits: u32,
    /// How long its place is kept if nothing more is heard of it. `None` if unknown (a waiter of
    /// another library).
    pub remaining: Option<Duration>,
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
        }
    }
}

/// What a forced release found.
///
/// ```
/// use locktopus_contract::{Eviction, FencingToken, OwnerId};
/// let eviction = Eviction::new(vec![OwnerId::generate()], FencingToken::new(17));
/// assert_eq!(eviction.evicted.len(), 1); // later grants have tokens greater than 17
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Eviction {
    /// Who held the lock and does not any more.
    pub evicted: Vec<OwnerId>,
    /// Tokens up to this one are fenced: every later grant has a greater one. `None` if the kind
    /// has none.
    pub fence: Option<FencingToken>,
}

impl Eviction {
    /// What a forced release found.
    #[must_use]
    pub fn new(evicted: Vec<OwnerId>, fence: Option<FencingToken>) -> Self {
        Self { evicted, fence }
    }
}

/// One page of a list of locks.
///
/// ```
/// use locktopus_contract::{FoundLock, LockKind, LockPage, ScanCursor};
/// let more = Some(ScanCursor("17".to_owned())); // whatever the backend needs to go on
/// let page = LockPage::new(vec![FoundLock::new("invoice:42", LockKind::Reentrant)], more);
/// assert_eq!((page.locks[0].name.as_str(), page.next.is_some()), ("invoice:42", true));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockPage {
    /// The locks found. A lock may come twice; one that is taken or released meanwhile may or may
    /// not come.
    pub locks: Vec<FoundLock>,
    /// Where to go on, unless this was the last page.
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
    /// The lock's name, namespace included.
    pub name: String,
    /// What its bytes look like. Kinds that share a layout cannot be told apart.
    pub kind: LockKind,
}

impl FoundLock {
    /// A lock that was found.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: LockKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// Where a list of locks goes on. Opaque to all but the backend that made it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "another case or field would make another type of it"
)]
pub struct ScanCursor(pub String);
