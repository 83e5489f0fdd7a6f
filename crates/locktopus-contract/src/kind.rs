//! Lock kinds: a row for each says what the engine and backends need to know of it.
//! docs/new-kind.md lists the other places that a new one is added to.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::mode::Mode;
use crate::mutex_profile::MutexProfile;
use crate::name::{self, LockName, NameError};
use crate::owner::{OwnerId, OwnerIds};

/// What kind of lock a name is used as.
///
/// A name is in use as one kind at a time: asking for it as another is an error
/// ([`BackendErrorKind::OtherKind`](crate::BackendErrorKind::OtherKind)), and changes nothing. The
/// halves of a read-write lock are one kind, and so are mutexes, whatever their profiles. Where a
/// store cannot tell what another library wrote, the name is taken for what was asked for.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{LockKind, Mode};
/// let (lock, mutex, read) = (LockKind::Reentrant, LockKind::Mutex(Default::default()), LockKind::Read);
/// assert_eq!((lock.as_str(), mutex.as_str(), read.as_str()), ("lock", "mutex", "read_lock"));
/// assert!(lock.is_reentrant() && !mutex.is_reentrant() && mutex.profile().is_some());
/// assert!(lock.has_tokens() && !read.has_tokens());
/// assert!(lock.hands_off() && lock.can_be_kept() && lock.can_linger() && mutex.announces());
/// assert_eq!((lock.mode(), read.mode()), (Mode::Exclusive, Mode::Read));
/// assert_eq!(lock.stored_lease(Duration::from_secs(30)), Duration::from_secs(30));
/// assert!(lock.new_owner() != lock.new_owner());
/// assert_eq!((read.family(), LockKind::from_word("read_lock")), ("rw_lock", Some(read)));
/// assert!(LockKind::all().iter().filter(|kind| kind.has_strict_queue()).eq([&LockKind::Fair]));
/// assert!(LockKind::all().iter().filter(|kind| !kind.is_held()).eq([&LockKind::RateLimiter, &LockKind::Latch]));
/// assert_eq!(LockKind::Fair.about(), "exclusive, in strict order of arrival");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockKind {
    /// Exclusive and reentrant by owner handle. On Redis: Redisson's `RLock` layout.
    Reentrant,
    /// Exclusive, not reentrant. On Redis: one plain string, as most other libraries keep it.
    Mutex(Arc<MutexProfile>),
    /// Exclusive, reentrant, in strict order of arrival. On Redis: Redisson's `RFairLock` layout.
    Fair,
    /// The shared half of a read-write lock, reentrant. On Redis: Redisson's `RReadWriteLock`
    /// layout.
    Read,
    /// The exclusive half of a read-write lock, reentrant.
    Write,
    /// Counted permits. On Redis: Redisson's `RSemaphore` layout, with the holders beside it.
    Semaphore,
    /// Counted permits, each with an id and an expiry. On Redis: Redisson's
    /// `RPermitExpirableSemaphore` layout.
    Permits,
    /// A number of permits in each period. On Redis: a layout of our own.
    RateLimiter,
    /// A count-down latch, which is waited for and never held. On Redis: Redisson's
    /// `RCountDownLatch` layout.
    Latch,
}

/// In which form a kind stores its owners.
#[derive(Debug, Clone, Copy)]
enum OwnerForm {
    /// Any number.
    Any,
    /// An even or an odd number, so that a release of one kind never fits a lock of the other.
    Parity { odd: bool },
    /// The id of a permit.
    Permit,
}

/// What the engine and backends need to know of a kind. Its profile may say otherwise of a mutex.
#[derive(Debug, Clone, Copy)]
struct KindSpec {
    word: &'static str,
    about: &'static str,
    family: &'static str,
    mode: Mode,
    held: bool,
    tokens: bool,
    reentrant: bool,
    hands_off: bool,
    keepable: bool,
    lingers: bool,
    strict_queue: bool,
    in_cohort: bool,
    owner: OwnerForm,
}

const LOCK: KindSpec = KindSpec {
    word: "lock",
    about: "exclusive, reentrant in programs",
    family: "lock",
    mode: Mode::Exclusive,
    held: true,
    tokens: true,
    reentrant: true,
    hands_off: true,
    keepable: true,
    lingers: true,
    strict_queue: false,
    in_cohort: true,
    owner: OwnerForm::Parity { odd: false },
};
const MUTEX: KindSpec = KindSpec {
    word: "mutex",
    about: "exclusive, one plain string; also as another library keeps it",
    family: "mutex",
    reentrant: false,
    ..LOCK
};
const FAIR: KindSpec = KindSpec {
    word: "fair_lock",
    about: "exclusive, in strict order of arrival",
    family: "fair_lock",
    keepable: false,
    strict_queue: true,
    in_cohort: false,
    owner: OwnerForm::Parity { odd: true },
    ..LOCK
};
const WRITE: KindSpec = KindSpec {
    word: "write_lock",
    about: "the half of a read-write lock that one holds",
    family: "rw_lock",
    keepable: false,
    lingers: false,
    in_cohort: false,
    owner: OwnerForm::Any,
    ..LOCK
};
const READ: KindSpec = KindSpec {
    word: "read_lock",
    about: "the half of a read-write lock that many hold",
    mode: Mode::Read,
    tokens: false,
    ..WRITE
};
const SEMAPHORE: KindSpec = KindSpec {
    word: "semaphore",
    about: "permits of a semaphore",
    family: "semaphore",
    mode: Mode::Permits,
    reentrant: false,
    ..READ
};
const PERMITS: KindSpec = KindSpec {
    word: "permit_semaphore",
    about: "permits with ids and expiries",
    family: "permit_semaphore",
    owner: OwnerForm::Permit,
    ..SEMAPHORE
};
const RATE_LIMITER: KindSpec = KindSpec {
    word: "rate_limiter",
    about: "a number of permits in a period, for all processes together",
    family: "rate_limiter",
    held: false,
    ..SEMAPHORE
};
const LATCH: KindSpec = KindSpec {
    word: "latch",
    about: "a count that opens at zero",
    family: "latch",
    mode: Mode::Exclusive,
    held: false,
    hands_off: false,
    ..SEMAPHORE
};

impl LockKind {
    /// Every kind, the mutex with its usual profile.
    #[must_use]
    pub fn all() -> [Self; 9] {
        [
            Self::Reentrant,
            Self::Mutex(Arc::default()),
            Self::Fair,
            Self::Read,
            Self::Write,
            Self::Semaphore,
            Self::Permits,
            Self::RateLimiter,
            Self::Latch,
        ]
    }

    /// The kind of this [word](Self::as_str).
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::all().into_iter().find(|kind| kind.as_str() == word)
    }

    const fn spec(&self) -> &'static KindSpec {
        match self {
            Self::Reentrant => &LOCK,
            Self::Mutex(_) => &MUTEX,
            Self::Fair => &FAIR,
            Self::Read => &READ,
            Self::Write => &WRITE,
            Self::Semaphore => &SEMAPHORE,
            Self::Permits => &PERMITS,
            Self::RateLimiter => &RATE_LIMITER,
            Self::Latch => &LATCH,
        }
    }

    /// How a mutex is kept; `None` for other kinds.
    #[must_use]
    pub const fn profile(&self) -> Option<&Arc<MutexProfile>> {
        match self {
            Self::Mutex(profile) => Some(profile),
            _ => None,
        }
    }

    /// The word used in errors, metrics, reports and tickets.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.spec().word
    }

    /// What it is, in a few words: for the help of commands and for tables.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.spec().about
    }

    /// Whether holders release it: not a latch, nor the permits of a rate limiter.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.spec().held
    }

    /// What a name is in use as: `rw_lock` for both halves of a read-write lock, the
    /// [word](Self::as_str) for all others.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.spec().family
    }

    /// A fresh owner id in the form this kind stores.
    #[must_use]
    pub fn new_owner(&self) -> OwnerId {
        self.owner_from(&OwnerIds::of_process())
    }

    /// As [`new_owner`](Self::new_owner), for one instance.
    #[doc(hidden)]
    pub fn owner_from(&self, ids: &OwnerIds) -> OwnerId {
        match (self.profile(), self.spec().owner) {
            (Some(profile), _) => profile.owner_from(ids),
            (None, OwnerForm::Any) => ids.any(),
            (None, OwnerForm::Parity { odd }) => ids.of_parity(odd),
            (None, OwnerForm::Permit) => ids.permit(),
        }
    }

    /// Whether its grants carry fencing tokens: every exclusive kind, except a single-key mutex.
    /// Readers and permits have none, because several hold at once and a token could not order
    /// them.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.spec().tokens && self.profile().is_none_or(|profile| profile.has_side_keys())
    }

    /// Whether the same owner may enter again.
    #[must_use]
    pub fn is_reentrant(&self) -> bool {
        self.spec().reentrant
    }

    /// Whether waiters stand in a queue and are handed the lock. A mutex shared with other
    /// libraries is released openly, because theirs could not queue.
    #[must_use]
    pub fn hands_off(&self) -> bool {
        self.spec().hands_off && self.is_native()
    }

    /// Whether all waiters stand in the queue, in strict order of arrival, however they wait.
    #[must_use]
    pub fn has_strict_queue(&self) -> bool {
        self.spec().strict_queue
    }

    /// Whether waiters of one process stand in a queue of their own, and one of them in that of the
    /// backend.
    #[doc(hidden)]
    pub fn waits_in_cohort(&self) -> bool {
        self.spec().in_cohort && self.is_native()
    }

    /// Whether a holder that keeps its lease after its release can be told that others want it.
    #[must_use]
    pub fn can_be_kept(&self) -> bool {
        self.spec().keepable && self.is_native()
    }

    /// Whether releases are announced at all.
    #[must_use]
    pub fn announces(&self) -> bool {
        self.profile().is_none_or(|profile| profile.announces())
    }

    /// A lease as servers write it: a mutex shared with a library that counts in seconds rounds it
    /// up. A backend may keep a lock for longer than it was asked to, never for less.
    #[must_use]
    pub fn stored_lease(&self, lease: Duration) -> Duration {
        self.profile()
            .map_or(lease, |profile| profile.stored_lease(lease))
    }

    /// Whether a release can leave it held for a time: a hold that one owner has alone, and that is
    /// one thing with one end.
    #[must_use]
    pub fn can_linger(&self) -> bool {
        self.spec().lingers
    }

    /// How it is held.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.spec().mode
    }

    fn is_native(&self) -> bool {
        self.profile().is_none_or(|profile| profile.is_native())
    }
}

/// One lock: a name and the kind it is used as.
///
/// ```
/// use locktopus_contract::{LockKind, LockName, LockTarget};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// assert_eq!((target.name().as_str(), target.kind()), ("invoice:42", &LockKind::Reentrant));
/// assert_eq!((target.to_string(), target.key().as_ref()), ("lock \"invoice:42\"".to_owned(), "invoice:42"));
/// assert!(target.check_name().is_ok());
/// let braces = LockTarget::new(LockName::new("{invoice}")?, LockKind::Reentrant);
/// assert!(braces.check_name().is_err()); // it cannot be told from `invoice`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LockTarget {
    name: LockName,
    kind: LockKind,
}

impl LockTarget {
    /// Pairs a name with a kind.
    #[must_use]
    pub fn new(name: LockName, kind: LockKind) -> Self {
        Self { name, kind }
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The lock's kind.
    #[must_use]
    pub fn kind(&self) -> &LockKind {
        &self.kind
    }

    /// What the lock itself is stored under: its name, or for a mutex the key that its profile
    /// makes of it. Targets of one key are one lock, whatever their names.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        match self.kind.profile() {
            Some(profile) => profile.key(&self.name).into(),
            None => self.name.as_str().into(),
        }
    }

    /// Whether the name can be told from every other, and from what is kept beside other names.
    /// Every backend that keeps locks under their names refuses those that cannot, so that a
    /// program meets the same rules on each.
    ///
    /// # Errors
    ///
    /// [`NameError::Ambiguous`] with the rule and what to use instead.
    pub fn check_name(&self) -> Result<(), NameError> {
        match self.kind.profile() {
            Some(profile) if !profile.is_native() => {
                name::check_apart(&self.key(), profile.has_side_keys())
            }
            _ => name::check_apart(self.name.as_str(), true),
        }
    }
}

/// `lock "name"` or `mutex "name"`.
impl fmt::Display for LockTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.kind.as_str(), self.name)
    }
}

impl fmt::Debug for LockTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
