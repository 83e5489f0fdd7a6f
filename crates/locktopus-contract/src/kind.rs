//! Lock kinds: one row for each tells what the engine and backends need to know about it.
//! docs/new-kind.md lists the other places to change for a new kind.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::mode::Mode;
use crate::mutex_profile::MutexProfile;
use crate::name::{self, LockName, NameError};
use crate::owner::{OwnerId, OwnerIds};

/// The kind of lock that a name is used as.
///
/// A name is in use as one kind at a time: a request for it as another fails with
/// [`OtherKind`](crate::BackendErrorKind::OtherKind) and changes nothing. The halves of a
/// read-write lock are one kind, and so are all mutexes. A store that cannot tell what another
/// library wrote assumes the requested kind.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{LockKind, Mode};
/// let [lock, mutex, _, read, ..] = LockKind::all();
/// assert_eq!((lock.as_str(), mutex.as_str(), read.as_str()), ("lock", "mutex", "read_lock"));
/// assert!(lock.is_reentrant() && !mutex.is_reentrant() && mutex.profile().is_some());
/// assert!(lock.has_tokens() && !read.has_tokens());
/// assert!(lock.hands_off() && lock.can_be_kept() && lock.can_linger() && mutex.announces());
/// assert_eq!((lock.mode(), read.mode()), (Mode::Exclusive, Mode::Read));
/// assert_eq!(lock.stored_lease(Duration::from_secs(30)), Duration::from_secs(30));
/// assert!(lock.new_owner() != lock.new_owner());
/// assert_eq!((read.family(), LockKind::from_word("read_lock")), ("rw_lock", Some(read)));
/// assert!(LockKind::all().iter().filter(|kind| kind.has_strict_queue()).eq([&LockKind::Fair]));
/// let never_held = LockKind::all().into_iter().filter(|kind| !kind.is_held());
/// assert!(never_held.eq([LockKind::RateLimiter, LockKind::Latch]));
/// assert_eq!(LockKind::Fair.about(), "exclusive, in strict order of arrival");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockKind {
    /// Exclusive and reentrant by owner handle. On Redis: Redisson's `RLock` layout.
    Reentrant,
    /// Exclusive, not reentrant. On Redis: one plain string, as in most other libraries.
    Mutex(Arc<MutexProfile>),
    /// Exclusive, reentrant, in strict order of arrival. On Redis: Redisson's `RFairLock` layout.
    Fair,
    /// The shared, reentrant half of a read-write lock. On Redis: Redisson's `RReadWriteLock`.
    Read,
    /// The exclusive half of a read-write lock, reentrant.
    Write,
    /// Counted permits. On Redis: Redisson's `RSemaphore` layout, plus a key for the holders.
    Semaphore,
    /// Counted permits with ids and expiries. On Redis: Redisson's `RPermitExpirableSemaphore`.
    PermitSemaphore,
    /// A number of permits for each period. On Redis: a layout of our own.
    RateLimiter,
    /// A count-down latch, awaited and never held. On Redis: Redisson's `RCountDownLatch`.
    Latch,
}

/// A kind's form of owner ids.
#[derive(Debug, Clone, Copy)]
enum OwnerForm {
    /// Any number.
    Any,
    /// An even or an odd number, so a release of one kind never fits a lock of the other.
    Parity { odd: bool },
    /// The id of a permit.
    Permit,
}

/// Facts about a kind for the engine and backends. A mutex's profile can override them.
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
const PERMIT_SEMAPHORE: KindSpec = KindSpec {
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
    /// Every kind, the mutex with its default profile.
    #[must_use]
    pub fn all() -> [Self; 9] {
        [
            Self::Reentrant,
            Self::Mutex(Arc::default()),
            Self::Fair,
            Self::Read,
            Self::Write,
            Self::Semaphore,
            Self::PermitSemaphore,
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
            Self::PermitSemaphore => &PERMIT_SEMAPHORE,
            Self::RateLimiter => &RATE_LIMITER,
            Self::Latch => &LATCH,
        }
    }

    /// The layout of a mutex; `None` for other kinds.
    #[must_use]
    pub const fn profile(&self) -> Option<&Arc<MutexProfile>> {
        match self {
            Self::Mutex(profile) => Some(profile),
            _ => None,
        }
    }

    /// The word for it in errors, metrics, reports and tickets.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.spec().word
    }

    /// A description in a few words, for command help and tables.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.spec().about
    }

    /// Whether holders release it. False for a latch and for the permits of a rate limiter.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.spec().held
    }

    /// `rw_lock` for both halves of a read-write lock, otherwise the [word](Self::as_str).
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.spec().family
    }

    /// A fresh owner id in the form this kind stores.
    #[must_use]
    pub fn new_owner(&self) -> OwnerId {
        self.owner_from(&OwnerIds::of_process())
    }

    /// Like [`new_owner`](Self::new_owner), for one instance.
    #[doc(hidden)]
    pub fn owner_from(&self, ids: &OwnerIds) -> OwnerId {
        match (self.profile(), self.spec().owner) {
            (Some(profile), _) => profile.owner_from(ids),
            (None, OwnerForm::Any) => ids.any(),
            (None, OwnerForm::Parity { odd }) => ids.of_parity(odd),
            (None, OwnerForm::Permit) => ids.permit(),
        }
    }

    /// Whether its grants carry fencing tokens: every exclusive kind except a single-key mutex.
    /// Several readers or permits are held at once, so a token could not order them.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.spec().tokens && self.profile().is_none_or(|profile| profile.has_side_keys())
    }

    /// Whether the same owner may take it again.
    #[must_use]
    pub fn is_reentrant(&self) -> bool {
        self.spec().reentrant
    }

    /// Whether waiters queue and a release passes the lock on. A mutex shared with other libraries
    /// is simply freed, because their waiters cannot queue.
    #[must_use]
    pub fn hands_off(&self) -> bool {
        self.spec().hands_off && self.is_native()
    }

    /// Whether all waiters queue in strict order of arrival, no matter how they wait.
    #[must_use]
    pub fn has_strict_queue(&self) -> bool {
        self.spec().strict_queue
    }

    /// Whether waiters of one process share a local queue, with one of them in the backend's queue.
    #[doc(hidden)]
    pub fn waits_in_cohort(&self) -> bool {
        self.spec().in_cohort && self.is_native()
    }

    /// Whether a holder that caches its lease can learn that another owner wants the lock.
    #[must_use]
    pub fn can_be_kept(&self) -> bool {
        self.spec().keepable && self.is_native()
    }

    /// Whether releases notify waiters at all.
    #[must_use]
    pub fn announces(&self) -> bool {
        self.profile().is_none_or(|profile| profile.announces())
    }

    /// The lease as stored, never shorter: rounded up for libraries that count in seconds.
    #[must_use]
    pub fn stored_lease(&self, lease: Duration) -> Duration {
        self.profile()
            .map_or(lease, |profile| profile.stored_lease(lease))
    }

    /// Whether a release can leave it held for a time: one owner alone, with a single expiry.
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
/// assert_eq!(target.to_string(), "lock \"invoice:42\"");
/// assert_eq!(target.key(), "invoice:42");
/// assert!(target.check_name().is_ok());
/// let braces = LockTarget::new(LockName::new("{invoice}")?, LockKind::Reentrant);
/// assert!(braces.check_name().is_err()); // it would be confused with `invoice`
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

    /// The key of the lock itself: its name, or for a mutex the key that its profile makes from the
    /// name. Targets with the same key are one lock, even if their names differ.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        match self.kind.profile() {
            Some(profile) => profile.key(&self.name).into(),
            None => self.name.as_str().into(),
        }
    }

    /// Checks that the name is not confused with another name, or with a side key of another lock.
    /// Every backend that stores locks by name calls this.
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
