//! Errors of the lock API.

use std::fmt;
use std::time::Duration;

use locktopus_contract::{
    BackendError, BackendErrorKind, Executed, LockKind, LockTarget, NameError, NotReplicated,
    OptionError, OtherKind, spelled,
};

/// Why an operation on a lock failed.
///
/// A timeout, a lost lock, a cancelled wait and a failing backend are different variants, because
/// they call for different reactions. After a timeout, [`is_busy`](Self::is_busy) says whether
/// another owner was the only reason.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::LockError;
/// let short = Duration::from_secs(2);
/// let said = match locks.lock("invoice:42").wait_at_most(short).acquire().await {
///     Ok(guard) => guard.release().await.map_or("it was lost meanwhile", |()| "done"),
///     Err(error) if error.is_busy() => "somebody else is at it",
///     Err(LockError::Name(_) | LockError::Option(_)) => "asked for in a way that is impossible",
///     Err(_) => "the locks cannot be reached",
/// };
/// assert_eq!(said, "done");
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The name cannot be used. Nothing was sent.
    #[error(transparent)]
    Name(#[from] NameError),

    /// An option has an impossible value. Nothing was sent.
    #[error(transparent)]
    Option(#[from] OptionError),

    /// The lock did not become free in time. You do not hold it.
    ///
    /// The source, if any, is the backend error of the last attempt.
    #[error("{target} {}", not_in_time(target, *waited, source.is_some()))]
    WaitTimeout {
        /// Which lock.
        target: LockTarget,
        /// How long the call waited.
        waited: Duration,
        /// What is left of the current holder's lease, if the last answer said so.
        holder_remaining: Option<Duration>,
        /// The error of the last attempt. `None` if it only found the lock held.
        #[source]
        source: Option<BackendError>,
    },

    /// The caller's cancellation token was triggered. You do not hold the lock.
    #[error("waiting for {target} was cancelled{}", not_held(target))]
    Cancelled {
        /// Which lock.
        target: LockTarget,
    },

    /// You held the lock and no longer do. Other owners may be changing the resource: stop.
    #[error("{target} is lost: {cause}")]
    Lost {
        /// Which lock.
        target: LockTarget,
        /// Why it was lost.
        cause: LostCause,
    },

    /// The backend failed.
    #[error("{phase} {target} failed{}; {}", source.mistake(), phase.consequence(target, source.executed()))]
    Backend {
        /// Which lock.
        target: LockTarget,
        /// The operation that failed.
        phase: Phase,
        /// The backend's error.
        source: BackendError,
    },

    /// The same owner requested a lock that it already holds and cannot enter again: a mutex, or
    /// any lock as one of several taken together. Waiting would never end.
    #[error(
        "{target}: this owner holds it already and cannot enter it again (a mutex never, other locks not as one of several \
         taken together); release it first"
    )]
    NotReentrant {
        /// Which lock.
        target: LockTarget,
    },

    /// The ticket does not belong to this lock, or its text is damaged.
    #[error("the ticket cannot be used: {reason}")]
    Ticket {
        /// Why it cannot be used.
        reason: String,
    },

    /// [`Locktopus::shutdown`](crate::Locktopus::shutdown) was called.
    #[error("this Locktopus was shut down; build a new one")]
    ShutDown,

    /// The same owner holds the lock for reading and wants to write. Waiting would never end.
    #[error(
        "{target}: this owner holds the lock for reading, and reading cannot become writing; release the read lock first, \
         or begin with the write lock and downgrade it"
    )]
    UpgradeRefused {
        /// Which lock.
        target: LockTarget,
    },
}

/// If the backend failed, the error must not claim that the lock was held.
fn not_in_time(target: &LockTarget, waited: Duration, failed: bool) -> String {
    let what = match (target.kind(), failed) {
        (LockKind::Latch, false) => "did not open",
        (LockKind::Latch, true) => "could not be asked",
        (LockKind::RateLimiter, false) => "had too few permits",
        (_, false) => "was not free",
        (_, true) => "could not be taken",
    };
    let waited = Duration::from_millis(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX));
    format!("{what} within {}{}", spelled(waited), not_held(target))
}

/// The consequence for the caller, for kinds that have holders.
fn not_held(target: &LockTarget) -> &'static str {
    match target.kind().is_held() {
        true => "; you do not hold it",
        false => "",
    }
}

impl LockError {
    /// Whether the only problem is that another owner has the lock, or that a latch did not open.
    /// Retrying later may succeed.
    ///
    /// [`acquire`](crate::LockRequest::acquire) and [`run`](crate::LockRequest::run) return this
    /// error once [`wait_at_most`](crate::LockRequest::wait_at_most) is over. If the wait ended
    /// while the backend was failing, it is not busy, because the lock may be free.
    /// [`try_acquire`](crate::LockRequest::try_acquire) and
    /// [`try_run`](crate::LockRequest::try_run) return `None` instead;
    /// [`UnlessBusy`](crate::UnlessBusy) converts the error to that form.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// # let elsewhere = locks.lock("invoice:42").acquire().await?;
    /// let status = match locks.lock("invoice:42").wait_at_most(Duration::from_millis(20)).acquire().await {
    ///     Ok(guard) => {
    ///         guard.release().await?;
    ///         200
    ///     }
    ///     Err(error) if error.is_busy() => 423, // locked: come back later
    ///     Err(_) => 503,                        // the locks cannot be reached
    /// };
    /// assert_eq!(status, 423);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::WaitTimeout { source: None, .. })
    }

    /// Whether you held the lock and lost it. Another holder may already be active, so stop.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let guard = locks.lock("import").acquire().await?;
    /// locks.lock("import").force_release("it hangs").await?;
    /// let error = guard.release().await.expect_err("an operator took it away");
    /// assert!(error.is_lost() && !error.is_busy());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether too few nodes of a quorum agreed. The [source](std::error::Error::source) lists what
    /// each node did.
    ///
    /// ```
    /// use locktopus::{BackendError, BackendErrorKind, Executed, LockError, LockKind, LockName, LockTarget, Phase};
    /// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
    /// let source = BackendError::new("quorum", BackendErrorKind::NoQuorum, Executed::Maybe, "1 of 3 agreed");
    /// assert!(LockError::Backend { target, phase: Phase::Acquire, source }.is_no_quorum());
    /// # Ok::<(), locktopus::NameError>(())
    /// ```
    #[must_use]
    pub fn is_no_quorum(&self) -> bool {
        self.is_of(BackendErrorKind::NoQuorum)
    }

    /// Whether you called outside a tokio runtime ([`NoRuntime`](crate::NoRuntime)). Nothing was
    /// sent.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = locktopus::connect("memory:").await?;
    /// let foreign = std::thread::spawn(move || {
    ///     use std::task::{Context, Poll, Waker};
    ///     let acquiring = std::pin::pin!(locks.lock("invoice:42").acquire());
    ///     match acquiring.poll(&mut Context::from_waker(Waker::noop())) {
    ///         Poll::Ready(Err(error)) => assert!(error.is_no_runtime()),
    ///         other => panic!("{other:?}"),
    ///     }
    /// });
    /// foreign.join().unwrap();
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_no_runtime(&self) -> bool {
        self.is_of(BackendErrorKind::NoRuntime)
    }

    fn is_of(&self, kind: BackendErrorKind) -> bool {
        let source = self.backend_error();
        source.is_some_and(|source| source.kind() == kind)
    }

    /// How many replicas confirmed and how many had to, if too few did.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// match locks.lock("invoice:42").acquire().await {
    ///     Ok(guard) => guard.release().await?,
    ///     Err(error) => if let Some(too_few) = error.not_replicated() {
    ///         println!("held by the primary alone: {too_few}"); // with `safety=replicated`
    ///     },
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn not_replicated(&self) -> Option<&NotReplicated> {
        std::error::Error::source(self.backend_error()?)?.downcast_ref()
    }

    /// The kind that the name is in use as, if it is not the requested kind.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let _held = locks.lock("invoice:42").acquire().await?;
    /// let error = locks.mutex("invoice:42").try_acquire().await.unwrap_err();
    /// assert_eq!(error.other_kind().map(|other| other.found.as_str()), Some("lock"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn other_kind(&self) -> Option<&OtherKind> {
        std::error::Error::source(self.backend_error()?)?.downcast_ref()
    }

    pub(crate) fn backend_error(&self) -> Option<&BackendError> {
        match self {
            Self::Backend { source, .. } => Some(source),
            Self::WaitTimeout { source, .. } => source.as_ref(),
            _ => None,
        }
    }
}

/// The operation that a backend error belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Taking a lock.
    Acquire,
    /// Extending its lease.
    Extend,
    /// Giving it back.
    Release,
    /// Reading its state.
    Inspect,
    /// Changing the counter of a semaphore or a latch.
    Count,
    /// Taking it from its holder.
    Evict,
}

impl Phase {
    fn consequence(self, target: &LockTarget, executed: Executed) -> &'static str {
        match (self, executed) {
            (Self::Acquire, Executed::No) if !target.kind().is_held() => "nothing was taken",
            (Self::Acquire, Executed::Maybe) if !target.kind().is_held() => {
                "what the attempt may have taken is being given back in the background"
            }
            (Self::Acquire, Executed::No) => "you do not hold it",
            (Self::Acquire, Executed::Maybe) => {
                "you do not hold it, and what the attempt may have left is being released in the background"
            }
            (Self::Extend, _) => "it is held until the deadline it had before",
            (Self::Release, _) => {
                "releasing goes on in the background, and at the latest its lease ends"
            }
            (Self::Inspect, _) => "its state is unknown",
            (Self::Count | Self::Evict, Executed::No) => "nothing was changed",
            (Self::Count, Executed::Maybe) => {
                "it may have been changed; look before doing it again"
            }
            (Self::Evict, Executed::Maybe) => {
                "its holder may have lost it; look before doing it again"
            }
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acquire => "acquiring",
            Self::Extend => "extending",
            Self::Release => "releasing",
            Self::Inspect => "inspecting",
            Self::Count => "counting",
            Self::Evict => "releasing by force",
        })
    }
}

/// Why a lease ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostCause {
    /// The lease expired. It was not a renewed one.
    Expired,
    /// The lease expired because it could not be renewed in time.
    Unreachable {
        /// The error of the last renewal.
        detail: String,
    },
    /// The backend no longer knows the lock: its lease expired, or it was deleted, evicted, or lost
    /// with a server.
    Missing,
    /// Another owner holds the lock.
    TakenOver,
    /// The maximum hold time is over.
    MaxHold,
    /// The `Locktopus` was shut down and gave its locks back.
    ShutDown,
    /// You released it.
    Released,
    /// You turned the guard into a ticket.
    Transferred,
    /// It was released by force. If another process did that, the holder asks the backend for the
    /// reason. It waits at most a quarter of a second for it, or half a second when it releases the
    /// lock or adopts a ticket. Without an answer the cause is `Missing` or `TakenOver`.
    Evicted {
        /// The operator's reason.
        reason: String,
    },
    /// It was taken together with others. One of those was lost, so this one was given back.
    MemberLost {
        /// The lock that was lost first.
        lock: String,
    },
}

impl fmt::Display for LostCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("its lease ran out"),
            Self::Unreachable { detail } => write!(
                f,
                "its lease ran out because it could not be renewed ({detail})"
            ),
            Self::Missing => f.write_str(
                "the backend does not know it any more (its lease ended, or it was deleted, evicted or lost with a server)",
            ),
            Self::TakenOver => f.write_str("somebody else holds it"),
            Self::MaxHold => f.write_str("its maximum hold time is over"),
            Self::ShutDown => f.write_str("its Locktopus was shut down"),
            Self::Released => f.write_str("it was released"),
            Self::Transferred => f.write_str("it was turned into a ticket"),
            Self::Evicted { reason } => write!(f, "it was released by force ({reason})"),
            Self::MemberLost { lock } => {
                write!(
                    f,
                    "it was given back because {lock}, taken together with it, is lost"
                )
            }
        }
    }
}
