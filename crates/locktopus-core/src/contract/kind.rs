//! Lock kinds, and what backends need to know of each. docs/new-kind.md lists the other places that a
//! new one is added to.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::contract::mode::Mode;
use crate::contract::mutex_profile::MutexProfile;
use crate::contract::name::{self, LockName, NameError};
use crate::contract::owner::{OwnerId, OwnerIds};

/// What kind of lock a name is used as.
///
/// A name is in use as one kind at a time: asking for it as another is an error
/// ([`BackendErrorKind::OtherKind`](crate::BackendErrorKind::OtherKind)), and changes nothing. The halves of a read-write
/// lock are one kind, and so are mutexes, whatever their profiles. Where a store cannot tell what another library wrote,
/// the name is taken for what was asked for.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_core::{LockKind, Mode};
/// let (lock, mutex, read) = (LockKind::Reentrant, LockKind::Mutex(Default::default()), LockKind::Read);
/// assert_eq!((lock.as_str(), mutex.as_str(), read.as_str()), ("lock", "mutex", "read_lock"));
/// assert!(lock.is_reentrant() && !mutex.is_reentrant());
/// assert!(lock.has_tokens() && !read.has_tokens());
/// assert!(lock.hands_off() && lock.can_be_kept() && lock.can_linger() && mutex.announces());
/// assert_eq!((lock.mode(), read.mode()), (Mode::Exclusive, Mode::Read));
/// assert_eq!(lock.stored_lease(Duration::from_secs(30)), Duration::from_secs(30));
/// assert!(lock.new_owner() != lock.new_owner());
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
    /// The shared half of a read-write lock, reentrant. On Redis: Redisson's `RReadWriteLock` layout.
    Read,
    /// The exclusive half of a read-write lock, reentrant.
    Write,
    /// Counted permits. On Redis: Redisson's `RSemaphore` layout, with the holders beside it.
    Semaphore,
    /// Counted permits, each with an id and an expiry. On Redis: Redisson's `RPermitExpirableSemaphore` layout.
    Permits,
    /// A count-down latch, which is waited for and never held. On Redis: Redisson's `RCountDownLatch` layout.
    Latch,
}

// No wildcard arms: a new kind compiles only once each of these is answered for it.
impl LockKind {
    /// The word used in errors, metrics, reports and tickets.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Reentrant => "lock",
            Self::Mutex(_) => "mutex",
            Self::Fair => "fair_lock",
            Self::Read => "read_lock",
            Self::Write => "write_lock",
            Self::Semaphore => "semaphore",
            Self::Permits => "permit_semaphore",
            Self::Latch => "latch",
        }
    }

    /// A fresh owner id in the form this kind stores.
    #[must_use]
    pub fn new_owner(&self) -> OwnerId {
        self.owner_from(&OwnerIds::of_process())
    }

    /// As [`new_owner`](Self::new_owner), for one instance.
    pub(crate) fn owner_from(&self, ids: &OwnerIds) -> OwnerId {
        match self {
            Self::Mutex(profile) => profile.owner_from(ids),
            Self::Permits => ids.permit(),
            Self::Reentrant => ids.of_parity(false),
            Self::Fair => ids.of_parity(true),
            Self::Read | Self::Write | Self::Semaphore | Self::Latch => ids.any(),
        }
    }

    /// Whether its grants carry fencing tokens: every exclusive kind, except a single-key mutex. Readers and
    /// permits have none, because several hold at once and a token could not order them.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        match self {
            Self::Reentrant | Self::Fair | Self::Write => true,
            Self::Mutex(profile) => profile.has_side_keys(),
            Self::Read | Self::Semaphore | Self::Permits | Self::Latch => false,
        }
    }

    /// Whether the same owner may enter again.
    #[must_use]
    pub fn is_reentrant(&self) -> bool {
        match self {
            Self::Reentrant | Self::Fair | Self::Read | Self::Write => true,
            Self::Mutex(_) | Self::Semaphore | Self::Permits | Self::Latch => false,
        }
    }

    /// Whether waiters stand in a queue and are handed the lock. A mutex shared with other libraries is released
    /// openly, because theirs could not queue.
    #[must_use]
    pub fn hands_off(&self) -> bool {
        match self {
            Self::Mutex(profile) => profile.is_native(),
            Self::Reentrant | Self::Fair | Self::Read | Self::Write => true,
            Self::Semaphore | Self::Permits => true,
            Self::Latch => false,
        }
    }

    /// Whether a holder that keeps its lease after its release can be told that others want it.
    #[must_use]
    pub fn can_be_kept(&self) -> bool {
        match self {
            Self::Reentrant | Self::Mutex(_) => self.hands_off(),
            Self::Fair | Self::Read | Self::Write => false,
            Self::Semaphore | Self::Permits | Self::Latch => false,
        }
    }

    /// Whether releases are announced at all.
    #[must_use]
    pub fn announces(&self) -> bool {
        match self {
            Self::Mutex(profile) => profile.announces(),
            Self::Reentrant | Self::Fair | Self::Read | Self::Write => true,
            Self::Semaphore | Self::Permits | Self::Latch => true,
        }
    }

    /// A lease as servers write it: a mutex shared with a library that counts in seconds rounds it up. A backend may
    /// keep a lock for longer than it was asked to, never for less.
    #[must_use]
    pub fn stored_lease(&self, lease: Duration) -> Duration {
        match self {
            Self::Mutex(profile) => profile.stored_lease(lease),
            Self::Reentrant | Self::Fair | Self::Read | Self::Write => lease,
            Self::Semaphore | Self::Permits | Self::Latch => lease,
        }
    }

    /// Whether a release can leave it held for a time: a hold that one owner has alone, and that is one thing with one end.
    #[must_use]
    pub fn can_linger(&self) -> bool {
        match self {
            Self::Reentrant | Self::Fair | Self::Mutex(_) => true,
            Self::Read | Self::Write => false,
            Self::Semaphore | Self::Permits | Self::Latch => false,
        }
    }

    /// How it is held.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self {
            Self::Read => Mode::Read,
            Self::Semaphore | Self::Permits => Mode::Permits,
            Self::Reentrant | Self::Mutex(_) | Self::Fair | Self::Write | Self::Latch => {
                Mode::Exclusive
            }
        }
    }
}

/// One lock: a name and the kind it is used as.
///
/// ```
/// use locktopus_core::{LockKind, LockName, LockTarget};
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

    /// What the lock itself is stored under: its name, or for a mutex the key that its profile makes of it. Targets of
    /// one key are one lock, whatever their names.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        match &self.kind {
            LockKind::Mutex(profile) => profile.key(&self.name).into(),
            _ => self.name.as_str().into(),
        }
    }
}

impl LockTarget {
    /// Whether the name can be told from every other, and from what is kept beside other names. Every backend that keeps
    /// locks under their names refuses those that cannot, so that a program meets the same rules on each.
    ///
    /// # Errors
    ///
    /// [`NameError::Ambiguous`] with the rule and what to use instead.
    pub fn check_name(&self) -> Result<(), NameError> {
        match &self.kind {
            LockKind::Mutex(profile) if !profile.is_native() => {
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
