//! What the core asks of a backend about holds, and what a backend answers.

use std::time::Duration;

use tokio::time::Instant;

use crate::contract::kind::LockTarget;
use crate::contract::owner::OwnerId;
use crate::contract::token::FencingToken;
use crate::contract::token_retention::TokenRetention;

/// The most permits that one acquisition can ask for.
pub const MAX_PERMITS: u32 = 65_535;

/// One attempt to take a lock. May be executed more than once with the effect of once.
#[derive(Debug, Clone)]
pub struct AcquireAttempt {
    /// Which lock.
    pub target: LockTarget,
    /// Who wants it. The same for every repetition of one acquisition.
    pub owner: OwnerId,
    /// How long the backend keeps the lock after it executed the attempt. Whole milliseconds.
    pub lease: Duration,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
    /// How many permits of a semaphore. 1 for every other kind.
    pub permits: u32,
    /// How many fencing tokens in a row the grant reserves, from the one in the answer on. At least 1. The
    /// same for every repetition.
    pub tokens: u32,
    /// The grant's token must be at least this one, and later ones greater. Given by a repetition of a holder's
    /// attempt, it raises the token of that grant to just this.
    pub floor: Option<FencingToken>,
    /// Ask for a place in the queue, kept for this long unless the attempt is repeated. `None`: do not queue.
    /// Whole milliseconds.
    pub place: Option<Duration>,
    /// If this attempt is answered with a grant, tell its owner when somebody else wants the lock, with
    /// [`Wake::Wanted`](crate::Wake::Wanted). A grant out of the queue need not; nor a backend that does not
    /// say [`supports_recall`](crate::BackendInfo::supports_recall).
    pub recall: bool,
    /// No earlier attempt under this owner id was granted or queued, or may still be, and nobody wants to know where it stands in the queue. A backend may
    /// then answer [`Queued`](AttemptOutcome::Queued) sooner, with less: `ahead` 1 if anybody is ahead, and `fence` 0, as no
    /// grant to this owner can be older. `false` is always right.
    pub first: bool,
    /// How long to remember the grant's token; `None`: as long as the backend does by default. Not for kinds and
    /// backends without tokens, nor for backends that remember them anyway.
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
pub enum AttemptOutcome {
    /// The owner holds the lock for the lease, counted from some moment after the attempt was sent.
    Granted {
        /// The fencing token of this grant, the first of those reserved; the same when an attempt is
        /// repeated. `None` if this kind of lock or this backend has none.
        token: Option<FencingToken>,
    },
    /// It is not to be had now, and nothing of this attempt remains. Also while others are ahead in the queue.
    Held {
        /// What is left of the lease in the way. `None` if it has no expiry.
        remaining: Option<Duration>,
    },
    /// It is not to be had now, and the owner has a place in the queue. Only if the attempt asked for one.
    Queued {
        /// What is left of the lease in the way. `None` if it has no expiry.
        remaining: Option<Duration>,
        /// How many are ahead in the queue. Perhaps only whether anybody is, after a [first](AcquireAttempt::first) attempt.
        ahead: u64,
        /// The last token given to anybody when the attempt was executed. A pushed grant to this owner with a token
        /// that is not greater is older than this answer.
        fence: u64,
    },
}

/// Gives a lock back, or makes sure that an attempt left nothing behind, neither a hold nor a place in the queue.
#[derive(Debug, Clone)]
pub struct ReleaseRequest {
    /// Which lock.
    pub target: LockTarget,
    /// Whose hold ends.
    pub owner: OwnerId,
    /// The number of permits of the attempt.
    pub permits: u32,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
    /// How long to remember the token of a grant that this release hands on; see [`AcquireAttempt::token_retention`].
    pub token_retention: Option<TokenRetention>,
    /// Leave the lock held by nobody for a time instead of making it free. Not longer than the backend's
    /// [`longest_linger`](crate::BackendInfo::longest_linger), and only for kinds that
    /// [can linger](crate::LockKind::can_linger).
    pub linger: Option<Linger>,
}

/// How a lock stays held after its release, by an owner that nobody is.
///
/// In one step the owner's hold becomes one of `heir`, which ends `time` after the execution, earlier or later than the
/// owner's would have. The owner holds nothing then: what it sends later, or sent before and comes late, finds somebody
/// else. Nobody is handed the lock and nobody is woken: it becomes free as that of a holder who died.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        }
    }
}

/// What a release found. Either way the owner holds nothing afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ReleaseOutcome {
    /// The owner held the lock and does not any more; it went to those first in the queue, or is free, or
    /// [lingers](ReleaseRequest::linger).
    Released,
    /// The owner did not hold it: lease run out, taken over, or released before.
    NotHeld,
}

/// Pushes the expiry of one lock out.
#[derive(Debug, Clone)]
pub struct ExtendRequest {
    /// Which lock.
    pub target: LockTarget,
    /// Who claims to hold it.
    pub owner: OwnerId,
    /// How long the lock must last from the moment of execution. Whole milliseconds. What lasts longer already
    /// is not shortened.
    pub lease: Duration,
    /// The number of permits of the attempt.
    pub permits: u32,
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
        }
    }
}

/// What an extension found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ExtendOutcome {
    /// The owner still holds the lock; it expires one lease after execution, or when it would have before if
    /// that is later.
    Extended,
    /// The lock is gone: expired, deleted, evicted, or the server lost it.
    Missing,
    /// Somebody else holds the lock.
    TakenOver,
}

/// Takes several locks of one [group](crate::LockBackend::group), all or nothing. Never queues.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
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
