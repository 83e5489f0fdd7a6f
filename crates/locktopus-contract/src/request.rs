//! Requests of the core about holds, and a backend's answers.

use std::time::Duration;

use tokio::time::Instant;

use crate::kind::LockTarget;
use crate::owner::OwnerId;
use crate::token::FencingToken;
use crate::token_retention::TokenRetention;

/// The shortest lease that you can ask for: 20 ms. The round trip to the server would use up a
/// shorter one.
pub const MIN_LEASE: Duration = Duration::from_millis(20);

/// The most permits that one acquisition can ask for.
pub const MAX_PERMITS: u32 = 65_535;

/// One attempt to take a lock. Executing it more than once has the effect of executing it once.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{AcquireAttempt, LockKind, LockName, LockTarget, clock};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner();
/// let deadline = clock::timer_in(Duration::from_secs(1));
/// let attempt = AcquireAttempt::new(target, owner, Duration::from_secs(30), deadline);
/// assert_eq!((attempt.permits, attempt.place), (1, None)); // one, and no place in the queue
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct AcquireAttempt {
    /// Which lock.
    pub target: LockTarget,
    /// The owner that wants it, the same for all repetitions of one acquisition.
    pub owner: OwnerId,
    /// How long the backend keeps the lock after it executes the attempt. Whole milliseconds.
    pub lease: Duration,
    /// When the caller stops waiting for the answer. The backend must refuse an attempt that
    /// arrives more than a quarter of a second later, because no release follows then.
    pub deadline: Instant,
    /// How many permits of a semaphore. 1 for every other kind.
    pub permits: u32,
    /// How many consecutive fencing tokens the grant reserves, starting with the one in the answer.
    /// At least 1. All repetitions use the same number.
    pub tokens: u32,
    /// The grant's token must be at least this one, and later tokens greater. If the holder repeats
    /// its attempt with a floor, the token of its grant becomes exactly this one.
    pub floor: Option<FencingToken>,
    /// Asks for a place in the queue. The place lasts this long unless the attempt is repeated.
    /// `None`: do not queue. Whole milliseconds.
    pub place: Option<Duration>,
    /// If the answer is a grant, send the owner a [`Wake::Wanted`](crate::Wake::Wanted) when
    /// another owner wants the lock. Optional for a grant from the queue, and for a backend without
    /// [`supports_recall`](crate::BackendInfo::supports_recall).
    pub recall: bool,
    /// The first attempt under this owner id: no earlier one was granted or queued, or still can
    /// be, and the caller does not need its position in the queue. A backend may then answer
    /// [`Queued`](AttemptOutcome::Queued) sooner, with less detail. If any waiter is ahead, `ahead`
    /// is 1 and `remaining` is `None`. `last_token` is 0, because no grant to this owner can be
    /// older. `false` is always right.
    pub first: bool,
    /// How long to remember the grant's token. `None`: the backend's default. Ignored by kinds and
    /// backends without tokens, and by backends that remember tokens for ever.
    pub token_retention: Option<TokenRetention>,
}

impl AcquireAttempt {
    /// An attempt for one permit and one token, without a place in the queue.
    #[must_use]
    pub fn new(target: LockTarget, owner: OwnerId, lease: Duration, deadline: Instant) -> Self {
        Self {
            target,
            owner,
            lease,
            deadline,
            permits: 1,
            tokens: 1,
            floor: None,
            place: None,
            recall: false,
            first: false,
            token_retention: None,
        }
    }
}

/// The result of an attempt. "Another owner holds it" is an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum AttemptOutcome {
    /// The owner holds the lock for the lease, which began at some moment after the attempt was
    /// sent.
    Granted {
        /// The fencing token of this grant, the first of those reserved. A repeated attempt gets
        /// the same one. `None` if this kind of lock or this backend has no tokens.
        token: Option<FencingToken>,
    },
    /// The lock is not available now, or other waiters are ahead. The attempt left nothing behind.
    Busy {
        /// What is left of the lease that blocks it. `None` if that has no expiry.
        remaining: Option<Duration>,
    },
    /// The lock is not available now, and the owner has a place in the queue. Only if the attempt
    /// asked for one.
    Queued {
        /// What is left of the lease that blocks it. `None` if that has no expiry. A
        /// [first](AcquireAttempt::first) attempt may also get `None` if other waiters are ahead,
        /// because they are the ones that retry when the lease ends.
        remaining: Option<Duration>,
        /// How many waiters are ahead. After a [first](AcquireAttempt::first) attempt, perhaps only
        /// 0 or 1: whether anyone is ahead.
        ahead: u64,
        /// The last token given to any owner when the attempt was executed. A pushed grant to this
        /// owner is newer than this answer only if its token is greater.
        last_token: u64,
    },
}

/// Gives a lock back. Also makes sure that an attempt left nothing behind: no hold and no place in
/// the queue.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{LockKind, LockName, LockTarget, ReleaseRequest, clock};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner();
/// let release = ReleaseRequest::new(target, owner, clock::timer_in(Duration::from_secs(1)));
/// assert!(release.linger.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct ReleaseRequest {
    /// Which lock.
    pub target: LockTarget,
    /// Whose hold ends.
    pub owner: OwnerId,
    /// The number of permits of the attempt.
    pub permits: u32,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
    /// How long to remember the token of a grant that this release hands on. See
    /// [`AcquireAttempt::token_retention`].
    pub token_retention: Option<TokenRetention>,
    /// Leaves the lock held for a time instead of freeing it. No longer than the backend's
    /// [`longest_linger`](crate::BackendInfo::longest_linger), and only for kinds that [can
    /// linger](crate::LockKind::can_linger).
    pub linger: Option<Linger>,
    /// What this owner's attempts asked for, if they asked for a place in the queue. It helps a
    /// backend to find the place. `None` is always right. A value that no attempt asked for is not.
    pub place_hint: Option<PlaceHint>,
    /// No attempt follows under this owner id, so the backend may repeat the release on its own
    /// after a failover that may have lost it. `false` is always right.
    pub last: bool,
}

/// The options of attempts that may have left a place in the queue. All attempts of one owner use
/// the same options.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{LockKind, LockName, LockTarget, PlaceHint, ReleaseRequest, clock};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner();
/// let mut release = ReleaseRequest::new(target, owner, clock::timer_in(Duration::from_secs(1)));
/// // The same values as the attempts that this release undoes.
/// release.place_hint =
///     Some(PlaceHint { place: Duration::from_secs(5), lease: Duration::from_secs(30), tokens: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct PlaceHint {
    /// How long the place is kept; see [`AcquireAttempt::place`].
    pub place: Duration,
    /// See [`AcquireAttempt::lease`].
    pub lease: Duration,
    /// See [`AcquireAttempt::tokens`].
    pub tokens: u32,
}

/// Keeps a lock held after its release, under an id that no process uses.
///
/// In one step the owner's hold becomes the hold of `heir`. It ends `time` after the execution,
/// whether that is earlier or later than the owner's hold would have ended. The owner then holds
/// nothing: requests that it sends later, or that arrive late, find another owner. No waiter gets
/// the lock or a notification. The lock becomes free by expiry, like that of a holder that died.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{Linger, LockKind, LockName, LockTarget, ReleaseRequest, clock};
/// let target = LockTarget::new(LockName::new("nightly")?, LockKind::Reentrant);
/// let (owner, heir) = (target.kind().new_owner(), target.kind().new_owner());
/// let mut release = ReleaseRequest::new(target, owner, clock::timer_in(Duration::from_secs(1)));
/// // held for a minute, by no process
/// release.linger = Some(Linger { heir, time: Duration::from_secs(60) });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Linger {
    /// A fresh id. No request is ever made under it.
    pub heir: OwnerId,
    /// For how long. Whole milliseconds, at least one.
    pub time: Duration,
}

impl ReleaseRequest {
    /// Gives back one permit of one owner.
    #[must_use]
    pub fn new(target: LockTarget, owner: OwnerId, deadline: Instant) -> Self {
        Self {
            target,
            owner,
            permits: 1,
            deadline,
            token_retention: None,
            linger: None,
            place_hint: None,
            last: false,
        }
    }
}

/// The result of a release. Either way the owner then holds nothing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use locktopus::{
///     LockBackend, LockKind, LockName, LockTarget, MemoryBackend, ReleaseOutcome, ReleaseRequest,
///     clock,
/// };
/// let backend = MemoryBackend::new();
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner(); // it never took the lock
/// let release = ReleaseRequest::new(target, owner, clock::timer_in(Duration::from_secs(1)));
/// assert_eq!(backend.release(&release).await?, ReleaseOutcome::NotHeld);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum ReleaseOutcome {
    /// The owner held the lock. Now the lock is free, or the first waiters have it, or it
    /// [lingers](ReleaseRequest::linger).
    Released,
    /// The owner did not hold it: the lease expired, another owner took the lock over, or it was
    /// already released.
    NotHeld,
}

/// Moves the expiry of one lock further into the future.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{ExtendRequest, LockKind, LockName, LockTarget};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner();
/// // 30 s from when it runs
/// let extend = ExtendRequest::new(target, owner, Duration::from_secs(30));
/// assert_eq!(extend.permits, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct ExtendRequest {
    /// Which lock.
    pub target: LockTarget,
    /// The owner that claims to hold it.
    pub owner: OwnerId,
    /// How long the lock must last from the moment of execution. Whole milliseconds. Never shortens
    /// a hold that already lasts longer.
    pub lease: Duration,
    /// The number of permits of the attempt.
    pub permits: u32,
    /// Remember the last token of the name for at least this long from now. `None`: do not change
    /// how long it is remembered. Never shortens that time, and never creates a token. Whole
    /// milliseconds. Kinds and backends without tokens ignore it, as do backends that remember
    /// tokens for ever. The answer is [`Extended`](ExtendOutcome::Extended) only if the backend did
    /// both.
    pub keep_token: Option<Duration>,
}

impl ExtendRequest {
    /// Extends one permit of one owner.
    #[must_use]
    pub fn new(target: LockTarget, owner: OwnerId, lease: Duration) -> Self {
        Self {
            target,
            owner,
            lease,
            permits: 1,
            keep_token: None,
        }
    }
}

/// The result of an extension.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use locktopus::{
///     ExtendOutcome, ExtendRequest, LockBackend, LockKind, LockName, LockTarget, MemoryBackend,
///     clock,
/// };
/// let backend = MemoryBackend::new();
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner(); // it never took the lock
/// let extend = ExtendRequest::new(target, owner, Duration::from_secs(30));
/// let answers = backend.extend(&[extend], clock::timer_in(Duration::from_secs(1))).await;
/// assert!(matches!(answers[..], [Ok(ExtendOutcome::Missing)]));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum ExtendOutcome {
    /// The owner still holds the lock. It expires one lease after execution, or at its previous
    /// expiry time if that is later.
    Extended,
    /// The lock is gone: expired, deleted, evicted, or the server lost it.
    Missing,
    /// Another owner holds the lock.
    TakenOver,
}

/// Takes several locks of one [group](crate::Groups::group), all or nothing. Never queues.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use locktopus::{
///     AcquireAttempt, GroupOutcome, Groups, LockKind, LockName, LockTarget, MemoryBackend, clock,
/// };
/// let backend = MemoryBackend::new();
/// let attempt = |name: &str| -> Result<AcquireAttempt, Box<dyn std::error::Error>> {
///     let target = LockTarget::new(LockName::new(name)?, LockKind::Reentrant);
///     let owner = target.kind().new_owner();
///     let deadline = clock::timer_in(Duration::from_secs(1));
///     Ok(AcquireAttempt::new(target, owner, Duration::from_secs(30), deadline))
/// };
/// let both = [attempt("account:1")?, attempt("account:2")?];
/// match backend.attempt_all(&both).await? {
///     GroupOutcome::Granted { tokens } => assert_eq!(tokens.len(), 2),
///     GroupOutcome::Busy { index, .. } => println!("number {index} is held"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum GroupOutcome {
    /// Every owner holds its lock. The tokens are in the order of the attempts.
    Granted {
        /// One for each attempt.
        tokens: Vec<Option<FencingToken>>,
    },
    /// One of the locks is not available, so the backend took none.
    Busy {
        /// The first unavailable one, counted from 0.
        index: usize,
        /// What is left of the lease that blocks it. `None` if that has no expiry.
        remaining: Option<Duration>,
    },
}
