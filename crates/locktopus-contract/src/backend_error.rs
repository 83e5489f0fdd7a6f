//! Errors of backends.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::kind::LockTarget;
use crate::runtime::NoRuntime;

/// The reason why a request to a backend failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendErrorKind {
    /// There is no connection, or the server cannot serve right now.
    Unavailable,
    /// No answer came before the deadline.
    Timeout,
    /// The server refused the request and will refuse it again, for example because it is out of
    /// memory.
    Refused,
    /// The login failed, or a permission is missing.
    Denied,
    /// The name is in use as another kind of lock, or for something else. The
    /// [source](Error::source) is an [`OtherKind`] that names the present use.
    OtherKind,
    /// The request asks for more permits than the semaphore has, or the semaphore has no number of
    /// permits yet. The [source](Error::source) is a [`TooFewPermits`].
    TooFewPermits,
    /// The answer makes no sense. Other software may be writing these keys.
    Protocol,
    /// The backend cannot do this at all.
    Unsupported,
    /// The backend was closed.
    Closed,
    /// Too few nodes of a quorum agreed in time. The message lists what each of them answered.
    NoQuorum,
    /// Too few replicas confirmed in time. The [source](Error::source) is a
    /// [`NotReplicated`](crate::NotReplicated) with the numbers, unless the server refused to give
    /// them. An attempt that may have run may still be in effect, and its release may arrive late.
    /// So retry under another owner.
    NotReplicated,
    /// The caller was outside a tokio runtime ([`NoRuntime`](crate::NoRuntime)). Nothing was sent.
    NoRuntime,
}

/// A name that is in use as another kind than the request says. The source of errors of kind
/// [`OtherKind`](BackendErrorKind::OtherKind).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("in use as {found}, asked for as {}", asked.kind().as_str())]
#[non_exhaustive]
pub struct OtherKind {
    /// The current use: a [kind's word](crate::LockKind::as_str), `rw_lock`, or a few words if it
    /// is no lock or if the backend cannot tell.
    pub found: String,
    /// The requested lock.
    pub asked: LockTarget,
}

/// A request for more permits than the semaphore has. The source of errors of kind
/// [`TooFewPermits`](BackendErrorKind::TooFewPermits).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct TooFewPermits {
    /// The semaphore.
    pub target: LockTarget,
    /// The number of permits in the request.
    pub asked: u32,
    /// All permits: free, held and drained. `None` if the number was never set, or the server lost
    /// it.
    pub total: Option<u64>,
}

impl TooFewPermits {
    /// Tells the caller what to do next.
    pub(crate) fn advice(&self) -> &'static str {
        match self.total {
            Some(_) if !self.target.kind().is_held() => {
                "ask for fewer, or raise the rate (`set_rate`)"
            }
            Some(_) => "ask for fewer, or raise the number (`resize`)",
            None => "set it first (`initialise`)",
        }
    }
}

impl fmt::Display for TooFewPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total {
            Some(1) => write!(
                f,
                "there is 1 permit in all, and {} were asked for",
                self.asked
            ),
            Some(total) => write!(
                f,
                "there are {total} permits in all, and {} were asked for",
                self.asked
            ),
            None => f.write_str("its number of permits was never set, or was lost"),
        }
    }
}

/// Whether the request may have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum Executed {
    /// Certainly not: the server refused it before any write, or it was never sent.
    No,
    /// Unknown: the connection failed or no answer came. Repeat the request with the same owner, or
    /// release. After [`NotReplicated`](BackendErrorKind::NotReplicated), repeat an attempt with
    /// another owner.
    Maybe,
}

/// The error of a failed request to a backend.
///
/// [`BackendError::executed`] tells whether the request may have run, and
/// [`BackendError::is_transient`] whether a retry can help.
///
/// ```
/// use locktopus_contract::{BackendError, BackendErrorKind, Executed};
/// let kind = BackendErrorKind::Unavailable;
/// let down = BackendError::new("mine", kind, Executed::No, "no connection")
///     .with_source(std::io::Error::other("connection refused"));
/// assert_eq!((down.backend(), down.message()), ("mine", "no connection"));
/// assert_eq!((down.kind(), down.is_transient()), (BackendErrorKind::Unavailable, true));
/// assert_eq!(down.executed(), Executed::No);
/// assert_eq!(down.after_a_part().executed(), Executed::Maybe);
/// assert!(!BackendError::unsupported("mine", "it has no list").is_transient());
/// ```
#[derive(Debug)]
pub struct BackendError {
    kind: BackendErrorKind,
    executed: Executed,
    backend: &'static str,
    message: Box<str>,
    /// In milliseconds, to keep the error small.
    ready_in: Option<NonZeroU32>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl BackendError {
    /// An error of `backend` (its short name). The message must not contain secrets.
    #[must_use]
    pub fn new(
        backend: &'static str,
        kind: BackendErrorKind,
        executed: Executed,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            executed,
            backend,
            message: message.into().into_boxed_str(),
            ready_in: None,
            source: None,
        }
    }

    /// The requested name is in use as something else, which `found` names. The backend did
    /// nothing.
    ///
    /// ```
    /// use locktopus_contract::{
    ///     BackendError, BackendErrorKind, LockKind, LockName, LockTarget, OtherKind,
    /// };
    /// let asked = LockTarget::new(LockName::new("invoice:42")?, LockKind::Fair);
    /// let error = BackendError::other_kind("mine", &asked, "semaphore");
    /// assert_eq!(error.kind(), BackendErrorKind::OtherKind);
    /// let source =
    ///     std::error::Error::source(&error).and_then(|source| source.downcast_ref::<OtherKind>());
    /// assert_eq!(source.map(|other| other.found.as_str()), Some("semaphore"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn other_kind(backend: &'static str, asked: &LockTarget, found: impl Into<String>) -> Self {
        let (found, asked) = (found.into(), asked.clone());
        let message = format!(
            "{:?} is in use as {found} and cannot be a {} too; nothing was changed. Give one of them another name",
            asked.name().as_str(),
            asked.kind().as_str()
        );
        let kind = BackendErrorKind::OtherKind;
        Self::new(backend, kind, Executed::No, message).with_source(OtherKind { found, asked })
    }

    /// The semaphore has only `total` permits, fewer than the request asks for. `None`: its number
    /// was never set, or was lost. The backend took no permit.
    ///
    /// ```
    /// use locktopus_contract::{
    ///     BackendError, BackendErrorKind, LockKind, LockName, LockTarget, TooFewPermits,
    /// };
    /// let workers = LockTarget::new(LockName::new("workers")?, LockKind::Semaphore);
    /// let error = BackendError::too_few_permits("mine", &workers, 5, Some(3));
    /// assert_eq!(error.kind(), BackendErrorKind::TooFewPermits);
    /// let source = std::error::Error::source(&error)
    ///     .and_then(|source| source.downcast_ref::<TooFewPermits>());
    /// assert_eq!(source.and_then(|too_few| too_few.total), Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn too_few_permits(
        backend: &'static str,
        target: &LockTarget,
        asked: u32,
        total: Option<u64>,
    ) -> Self {
        let target = target.clone();
        let too_few = TooFewPermits {
            target,
            asked,
            total,
        };
        let message = format!(
            "{} {:?}: {too_few}; no permit was taken; {}",
            too_few.target.kind().as_str(),
            too_few.target.name().as_str(),
            too_few.advice()
        );
        let kind = BackendErrorKind::TooFewPermits;
        Self::new(backend, kind, Executed::No, message).with_source(too_few)
    }

    /// The backend does not support the request and did nothing.
    #[must_use]
    pub fn unsupported(backend: &'static str, message: impl Into<String>) -> Self {
        let kind = BackendErrorKind::Unsupported;
        Self::new(backend, kind, Executed::No, message)
    }

    /// The error of a call outside a tokio runtime. Nothing was sent.
    ///
    /// ```
    /// use locktopus_contract::{BackendError, BackendErrorKind, Executed};
    /// let error = BackendError::no_runtime("postgres");
    /// assert_eq!((error.kind(), error.executed()), (BackendErrorKind::NoRuntime, Executed::No));
    /// ```
    #[must_use]
    pub fn no_runtime(backend: &'static str) -> Self {
        let (kind, message) = (BackendErrorKind::NoRuntime, NoRuntime.to_string());
        Self::new(backend, kind, Executed::No, message).with_source(NoRuntime)
    }

    /// Adds the error that caused this one. Error chains show it, this error's text does not.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Says when the backend is ready again, in whole milliseconds, rounded up. Acquisitions with
    /// more time left than that keep waiting.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use locktopus_contract::{BackendError, BackendErrorKind, Executed};
    /// let young =
    ///     BackendError::new("quorum", BackendErrorKind::NoQuorum, Executed::No, "restarted");
    /// assert_eq!(young.ready_in(), None);
    /// let minute = Duration::from_secs(60);
    /// assert_eq!(young.with_ready_in(minute).ready_in(), Some(minute));
    /// ```
    #[must_use]
    pub fn with_ready_in(mut self, left: Duration) -> Self {
        let millis = u32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
        self.ready_in = NonZeroU32::new(millis);
        self
    }

    /// Marks the error as possibly executed, because an earlier part of the request may have run.
    #[must_use]
    pub fn after_a_part(mut self) -> Self {
        self.executed = Executed::Maybe;
        self
    }

    /// The reason of the failure.
    #[must_use]
    pub fn kind(&self) -> BackendErrorKind {
        self.kind
    }

    /// Whether the request may have taken effect.
    #[must_use]
    pub fn executed(&self) -> Executed {
        self.executed
    }

    /// The time until the backend is ready again, counted from this answer. `None` if unknown.
    #[must_use]
    pub fn ready_in(&self) -> Option<Duration> {
        let millis = self.ready_in?.get();
        Some(Duration::from_millis(millis.into()))
    }

    /// The short name of the backend.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// The message, without the backend's name.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The mistake in the request, if that is why it failed.
    #[doc(hidden)]
    pub fn mistake(&self) -> String {
        let source = self.source.as_deref();
        if let Some(too_few) = source.and_then(|source| source.downcast_ref::<TooFewPermits>()) {
            format!(": {too_few}; {}", too_few.advice())
        } else if let Some(other) = source.and_then(|source| source.downcast_ref::<OtherKind>()) {
            format!(": it is {other}")
        } else {
            String::new()
        }
    }

    /// Whether the same request may succeed a little later without any change.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            BackendErrorKind::Unavailable
                | BackendErrorKind::Timeout
                | BackendErrorKind::NoQuorum
                | BackendErrorKind::NotReplicated
        )
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.backend, self.message)?;
        if self.executed == Executed::Maybe {
            f.write_str(" (the request may have taken effect)")?;
        }
        Ok(())
    }
}

impl Error for BackendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}
