//! What the core asks of a backend about holds, and what a backend answers.

use std::time::Duration;

use tokio::time::Instant;

use crate::kind::LockTarget;
use crate::owner::OwnerId;
use crate::token::FencingToken;
use crate::token_retention::TokenRetention;

/// Shortest lease that can be asked for: 20 ms. A shorter one is used up by the way to the server.
pub const MIN_LEASE: Duration = Duration::from_millis(20);

/// The most permits that one acquisition can ask for.
pub const MAX_PERMITS: u32 = 65_535;

/// One attempt to take a lock. May be executed more than once with the effect of once.
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
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct AcquireAttempt {
    /// Which lock.
    pub target: LockTarget,
    /// Who wants it. The same for every repetition of one acquisition.
    pub owner: OwnerId,
    /// How long the backend keeps the lock after it executed the attempt. Whole milliseconds.
    pub lease: Duration,
    /// When the caller stops waiting for the answer. The backend must refuse an attempt that
    /// arrives more than a quarter of a second later, because no release follows then.
    pub deadline: Instant,
    /// How many permits of a semaphore. 1 for every other kind.
    pub permits: u32,
    /// How many fencing tokens in a row the grant reserves, from the one in the answer on. At least 1. The
    /// same for every repetition.
    pub tokens: u32,
    /// The grant's token must be at least this one, and later ones greater. Given by a repetition
    /// of a holder's attempt, it raises the token of that grant to just this.
    pub floor: Option<FencingToken>,
    /// Ask for a place in the queue, kept for this long unless the attempt is repeated. `None`: do
    /// not queue. Whole milliseconds.
    pub place: Option<Duration>,
    /// If this attempt is answered with a grant, tell its owner when somebody else wants the lock,
    /// with
    /// [`Wake::Wanted`](crate::Wake::Wanted). A grant out of the queue need not; nor a backend that does not say [`supports_recall`](crate::BackendInfo::supports_recall).
    pub recall: bool,
    /// No earlier attempt under this owner id was granted or queued, or may still be, and nobody
    /// wants to know where it stands in the queue. A backend may then answer
    /// [`Queued`](AttemptOutcome::Queued) sooner, with less: `ahead` 1 and no
    /// `remaining` if anybody is ahead, and `fence` 0, as no grant to this owner can be older.
    /// `false` is always right.
    pub first: bool,
    /// How long to remember the grant's token; `None`: as long as the backend does by default. Not
    /// for kinds and backends without tokens, nor for backends that remember them anyway.
    pub token_retention: Option<TokenRetention>,
}

impl AcquireAttempt {
    /// One attempt for one permit and one token, without a place in the queue.
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

/// What became of an attempt. That somebody else holds the lock is an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever gets it must look at each case"
)]
pub enum AttemptOutcome {
    /// The owner holds the lock for the lease, counted from some moment after the attempt was sent.
    Granted {
        /// The fencing token of this grant, the first of those reserved; the same when an attempt
        /// is repeated. `None` if this kind of lock or this backend has none.
        token: Option<FencingToken>,
    },
    /// It is not to be had now, and nothing of this attempt remains. Also while others are ahead in
    /// the queue.
    Held {
        /// What is left of the lease in the way. `None` if it has no expiry.
        remaining: Option<Duration>,
    },
    /// It is not to be had now, and the owner has a place in the queue. Only if the attempt asked
    /// for one.
    Queued {
        /// What is left of the lease in the way. `None` if it has no expiry; perhaps also after a
        /// [first](AcquireAttempt::first) attempt if others are ahead, who are the ones to look
        /// when it ends.
        remaining: Option<Duration>,
        /// How many are ahead in the queue. Perhaps only whether anybody is, after a
        /// [first](AcquireAttempt::first) attempt.
        ahead: u64,
        /// The last token given to anybody when the attempt was executed. A pushed grant to this
        /// owner with a token that is not greater is older than this answer.
        fence: u64,
    },
}

/// Gives a lock back, or makes sure that an attempt left nothing behind, neither a hold nor a place
/// in the queue.
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
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct ReleaseRequest {
    /// Which lock.
    pub target: LockTarget,
    /// Whose hold ends.
    pub owner: OwnerId,
    /// The number of permits of the attempt.
    pub permits: u32,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
    /// How long to remember the token of a grant that this release hands on; see
    /// [`AcquireAttempt::token_retention`].
    pub token_retention: Option<TokenRetention>,
    /// Leave the lock held by nobody for a time instead of making it free. Not longer than the
    /// backend's [`longest_linger`](crate::BackendInfo::longest_linger), and only for kinds that
    /// [can linger](crate::LockKind::can_linger).
    pub linger: Option<Linger>,
    /// What the attempts of this owner asked for, if they asked for a place in the queue: a backend
    /// may find the place sooner by it. `None` is always right; what no attempt asked for is not.
    pub sought: Option<Sought>,
    /// No attempt follows under this owner id. So the backend may repeat the release by itself,
    /// after a failover that may have lost it. `false` is always right.
    pub last: bool,
}

/// What attempts asked for that may have left a place in the queue. The same for every attempt of
/// one owner.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{LockKind, LockName, LockTarget, ReleaseRequest, Sought, clock};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner();
/// let mut release = ReleaseRequest::new(target, owner, clock::timer_in(Duration::from_secs(1)));
/// // As the attempts that are undone by it.
/// release.sought = Some(Sought { place: Duration::from_secs(5), lease: Duration::from_secs(30), tokens: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Sought {
    /// For how long to keep the place; see [`AcquireAttempt::place`].
    pub place: Duration,
    /// See [`AcquireAttempt::lease`].
    pub lease: Duration,
    /// See [`AcquireAttempt::tokens`].
    pub tokens: u32,
}

/// How a lock stays held after its release, by an owner that nobody is.
///
/// In one step the owner's hold becomes one of `heir`, which ends `time` after the execution,
/// earlier or later than the owner's would have. The owner holds nothing then: what it sends later,
/// or sent before and comes late, finds somebody else. Nobody is handed the lock and nobody is
/// woken: it becomes free as that of a holder who died.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{Linger, LockKind, LockName, LockTarget, ReleaseRequest, clock};
/// let target = LockTarget::new(LockName::new("nightly")?, LockKind::Reentrant);
/// let (owner, heir) = (target.kind().new_owner(), target.kind().new_owner());
/// let mut release = ReleaseRequest::new(target, owner, clock::timer_in(Duration::from_secs(1)));
/// release.linger = Some(Linger { heir, time: Duration::from_secs(60) }); // held by nobody for a minute
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Linger {
    /// A fresh id, under which nothing is ever asked for.
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
            sought: None,
            last: false,
        }
    }
}

/// What a release found. Either way the owner holds nothing afterwards.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use locktopus::{LockBackend, LockKind, LockName, LockTarget, MemoryBackend, ReleaseOutcome, ReleaseRequest, clock};
/// let backend = MemoryBackend::new();
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner(); // which never took it
/// let release = ReleaseRequest::new(target, owner, clock::timer_in(Duration::from_secs(1)));
/// assert_eq!(backend.release(&release).await?, ReleaseOutcome::NotHeld);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever gets it must look at each case"
)]
pub enum ReleaseOutcome {
    /// The owner held the lock and does not any more; it went to those first in the queue, or is
    /// free, or [lingers](ReleaseRequest::linger).
    Released,
    /// The owner did not hold it: lease run out, taken over, or released before.
    NotHeld,
}

/// Pushes the expiry of one lock out.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{ExtendRequest, LockKind, LockName, LockTarget};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner();
/// let extend = ExtendRequest::new(target, owner, Duration::from_secs(30)); // 30 s from when it runs
/// assert_eq!(extend.permits, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct ExtendRequest {
    /// Which lock.
    pub target: LockTarget,
    /// Who claims to hold it.
    pub owner: OwnerId,
    /// How long the lock must last from the moment of execution. Whole milliseconds. What lasts
    /// longer already is not shortened.
    pub lease: Duration,
    /// The number of permits of the attempt.
    pub permits: u32,
    /// Remember the last token of the name for at least this long from now on.
    /// `None`: for as long as before. Never shortens that time, and never creates a token. Whole milliseconds. Kinds and backends without tokens ignore it, and so do backends that remember tokens for ever. The answer is [`Extended`](ExtendOutcome::Extended)
    /// only if both were done.
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

/// What an extension found.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use locktopus::{ExtendOutcome, ExtendRequest, LockBackend, LockKind, LockName, LockTarget, MemoryBackend, clock};
/// let backend = MemoryBackend::new();
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let owner = target.kind().new_owner(); // which never took it
/// let extend = ExtendRequest::new(target, owner, Duration::from_secs(30));
/// let answers = backend.extend(&[extend], clock::timer_in(Duration::from_secs(1))).await;
/// assert!(matches!(answers[..], [Ok(ExtendOutcome::Missing)]));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever gets it must look at each case"
)]
pub enum ExtendOutcome {
    /// The owner still holds the lock; it expires one lease after execution, or when it would have
    /// before if that is later.
    Extended,
    /// The lock is gone: expired, deleted, evicted, or the server lost it.
    Missing,
    /// Somebody else holds the lock.
    TakenOver,
}

/// Takes several locks of one [group](crate::Groups::group), all or nothing. Never queues.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use locktopus::{AcquireAttempt, GroupOutcome, Groups, LockKind, LockName, LockTarget, MemoryBackend, clock};
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
///     GroupOutcome::Held { index, .. } => println!("number {index} is held"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever gets it must look at each case"
)]
pub enum GroupOutcome {
    /// Every owner holds its lock; the tokens are in the order of the attempts.
    Granted {
        /// One for each attempt.
        tokens: Vec<Option<FencingToken>>,
    },
    /// One of them is not to be had, so none was taken.
    Held {
        /// The first one that was in the way, counted from 0.
        index: usize,
        /// What is left of the lease in the way. `None` if it has no expiry.
        remaining: Option<Duration>,
    },
}
