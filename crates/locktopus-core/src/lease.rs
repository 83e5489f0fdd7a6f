//! A lease: the shared state of one acquisition.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::error::{LockError, LostCause};
use crate::kind::LockTarget;
use crate::name::LockName;
use crate::owner::OwnerId;
use crate::token::FencingToken;
use crate::wake::lock;

/// A read-only view of a held lock, to be passed to whatever works under it.
///
/// Cheap to clone and independent of the guard: when the guard is released or dropped, the lease ends with
/// [`LostCause::Released`].
#[derive(Clone)]
pub struct Lease {
    state: Arc<LeaseState>,
}

impl Lease {
    pub(crate) fn new(state: Arc<LeaseState>) -> Self {
        Self { state }
    }

    /// The lock's name, namespace included.
    #[must_use]
    pub fn name(&self) -> &LockName {
        self.state.target.name()
    }

    /// The id under which the lock is held. A secret: it is all that is needed to release the lock.
    #[must_use]
    pub fn owner(&self) -> &OwnerId {
        &self.state.owner
    }

    /// The fencing token of this grant; `None` for a [single-key mutex](crate::MutexProfile::single_key).
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.state.token
    }

    /// The instant up to which the lock may be believed in, as things stand. Renewal moves it.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        clock::timer(self.state.valid_until())
    }

    /// What is left until [`valid_until`](Self::valid_until); zero once the lease has ended.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.state.lost().is_some() {
            return Duration::ZERO;
        }
        self.state
            .valid_until()
            .saturating_duration_since(clock::now())
    }

    /// How long the lock has been held.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        clock::now().saturating_duration_since(self.state.granted_at)
    }

    /// Checks that the lock may still be believed in. Call it right before a side effect.
    ///
    /// Looks at the clock, not at a flag, so it is right even if this task was stopped for a minute just
    /// before the call. It cannot help if the task is stopped just after; only a fencing token can.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] with the cause.
    pub fn ensure_valid(&self) -> Result<(), LockError> {
        self.ensure_valid_for(Duration::ZERO)
    }

    /// Checks that the lock may be believed in for at least `ahead` from now without renewal.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if it is lost; with cause [`LostCause::Expired`] also if it is only too short,
    /// in which case the lease itself is untouched.
    pub fn ensure_valid_for(&self, ahead: Duration) -> Result<(), LockError> {
        let state = &self.state;
        let cause = match state.lost() {
            Some(cause) => cause.clone(),
            None if state.valid_until().saturating_duration_since(clock::now()) > ahead => {
                return Ok(());
            }
            None if ahead.is_zero() => {
                state.expire();
                state.lost().cloned().unwrap_or(LostCause::Expired)
            }
            None => LostCause::Expired,
        };
        Err(LockError::Lost {
            target: state.target.clone(),
            cause,
        })
    }

    /// Waits until the lease ends, however that happens, and says why.
    ///
    /// Completes at the latest when the local deadline passes, whatever the network does. Returns at once
    /// if the lease has ended already.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn lost(&self) -> LostCause {
        self.state.signal.cancelled().await;
        self.state.lost().cloned().unwrap_or(LostCause::Expired)
    }

    /// A token that is cancelled when the lease ends, for code that already knows `CancellationToken`s.
    /// Cancelling it has no effect on the lock.
    #[must_use]
    pub fn lost_token(&self) -> CancellationToken {
        self.state.signal.child_token()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

/// Everything known about one acquisition. Shared by guards, leases, the watchdog and owner handles.
pub(crate) struct LeaseState {
    pub(crate) target: LockTarget,
    pub(crate) owner: OwnerId,
    pub(crate) token: Option<FencingToken>,
    /// Whether the watchdog renews it.
    pub(crate) renewed: bool,
    /// After this instant it is neither renewed nor believed in.
    pub(crate) hold_until: Option<Instant>,
    pub(crate) granted_at: Instant,
    /// An attempt of this owner got no answer and may still arrive, after the release: look once more then.
    pub(crate) late_attempt: bool,
    term: Mutex<Term>,
    /// Set once a release began: from then on no renewal is sent and no result of one matters.
    releasing: AtomicBool,
    holds: AtomicUsize,
    cause: OnceLock<LostCause>,
    signal: CancellationToken,
}

#[derive(Clone, Copy)]
struct Term {
    lease: Duration,
    /// The longest lease ever asked for: what the server may hold it for, confirmed or not.
    longest: Duration,
    valid_until: Instant,
}

/// What a grant comes with.
pub(crate) struct Grant {
    pub(crate) target: LockTarget,
    pub(crate) owner: OwnerId,
    pub(crate) token: Option<FencingToken>,
    pub(crate) lease: Duration,
    pub(crate) renewed: bool,
    pub(crate) hold_until: Option<Instant>,
    pub(crate) granted_at: Instant,
    pub(crate) valid_until: Instant,
    pub(crate) late_attempt: bool,
}

impl LeaseState {
    pub(crate) fn new(grant: Grant) -> Self {
        let Grant {
            target,
            owner,
            token,
            lease,
            renewed,
            hold_until,
            granted_at,
            valid_until,
            late_attempt,
        } = grant;
        let valid_until = hold_until.map_or(valid_until, |end| end.min(valid_until));
        Self {
            target,
            owner,
            token,
            renewed,
            hold_until,
            granted_at,
            late_attempt,
            term: Mutex::new(Term {
                lease,
                longest: lease,
                valid_until,
            }),
            releasing: AtomicBool::new(false),
            holds: AtomicUsize::new(1),
            cause: OnceLock::new(),
            signal: CancellationToken::new(),
        }
    }

    pub(crate) fn valid_until(&self) -> Instant {
        lock(&self.term).valid_until
    }

    /// The lease that renewals ask for.
    pub(crate) fn lease(&self) -> Duration {
        lock(&self.term).lease
    }

    /// Notes that an extension is about to be sent.
    pub(crate) fn asked_for(&self, lease: Duration) {
        let mut term = lock(&self.term);
        term.longest = term.longest.max(lease);
    }

    /// How long from now the server may go on holding it.
    pub(crate) fn longest_lease(&self) -> Duration {
        lock(&self.term).longest
    }

    /// Notes a confirmed extension. Extensions never shorten a lease, so neither does this.
    pub(crate) fn extended(&self, lease: Duration, valid_until: Instant) {
        let valid_until = self
            .hold_until
            .map_or(valid_until, |end| end.min(valid_until));
        let mut term = lock(&self.term);
        term.lease = lease;
        term.valid_until = term.valid_until.max(valid_until);
    }

    pub(crate) fn lost(&self) -> Option<&LostCause> {
        self.cause.get()
    }

    /// Ends the lease for a reason; the first reason stays.
    pub(crate) fn end(&self, cause: LostCause) {
        if self.cause.set(cause).is_ok() {
            self.signal.cancel();
        }
    }

    /// Ends a lease whose deadline has passed.
    pub(crate) fn expire(&self) {
        let over = self.hold_until.is_some_and(|end| end <= self.valid_until());
        self.end(match (over, self.renewed) {
            (true, _) => LostCause::MaxHold,
            (false, true) => LostCause::Unreachable {
                detail: "no renewal was confirmed in time".to_owned(),
            },
            (false, false) => LostCause::Expired,
        });
    }

    /// Adds a hold, unless the last one is already gone.
    pub(crate) fn try_add_hold(&self) -> bool {
        self.holds
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                (n > 0).then_some(n + 1)
            })
            .is_ok()
    }

    /// Takes the hold away if it is the only one.
    pub(crate) fn remove_only_hold(&self) -> bool {
        self.holds
            .compare_exchange(1, 0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Takes a hold away; true if it was the last one.
    pub(crate) fn remove_hold(&self) -> bool {
        self.holds.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn holds(&self) -> usize {
        self.holds.load(Ordering::Acquire)
    }

    /// Marks the beginning of a release; true for the first caller.
    pub(crate) fn begin_release(&self) -> bool {
        !self.releasing.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_releasing(&self) -> bool {
        self.releasing.load(Ordering::Acquire)
    }

    /// Whether the watchdog still has anything to do for it.
    pub(crate) fn is_active(&self) -> bool {
        !self.is_releasing() && self.lost().is_none()
    }
}

impl fmt::Debug for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("target", &self.target)
            .field("owner", &self.owner)
            .field("token", &self.token)
            .field("renewed", &self.renewed)
            .field("holds", &self.holds())
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
