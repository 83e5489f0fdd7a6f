//! One lease of the backend: its grant, its length, and why it ended.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use locktopus_contract::clock::BootInstant;
use locktopus_contract::{
    ExtendRequest, FencingToken, LockTarget, OwnerId, SafetyMode, TokenRetention, lock,
};

use crate::engine::acquisition::passing::Passing;
use crate::engine::error::{LockError, LostCause};
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::services::Services;
use crate::engine::holding::shared_owner::SharedOwner;
use crate::engine::holding::term::Term;
use crate::engine::holding::turn::Turn;

/// A lease of the backend. The watchdog renews it, and a release or the reaper gives it back.
/// Guards hold a [`Turn`] of it.
pub(crate) struct BackendLease {
    pub(crate) target: LockTarget,
    pub(crate) owner: OwnerId,
    /// The token of the first turn.
    pub(crate) token: Option<FencingToken>,
    /// How many permits of a semaphore; 1 for locks.
    pub(crate) permits: u32,
    /// Whether the watchdog renews it.
    pub(crate) renewed: bool,
    /// An attempt of this owner got no answer and may arrive after the release: release twice.
    pub(crate) late_attempt: bool,
    /// The safety mode of the grant; `None` if it is the default.
    safety: Option<Box<SafetyMode>>,
    pub(crate) retention: Option<TokenRetention>,
    term: Mutex<Term>,
    cause: OnceLock<LostCause>,
    /// Set once a release has started: from then on no renewal is sent, and the results of earlier
    /// ones do not matter.
    releasing: AtomicBool,
    /// The latest turn, which hears of a loss.
    pub(super) turn: Mutex<Weak<Turn>>,
    /// The index of its entry in the watchdog, which reads and sets it under a mutex.
    pub(super) slot: AtomicUsize,
    /// A writer's owner id lent to a reader. Both leases keep it.
    loan: Mutex<Option<Arc<SharedOwner>>>,
    /// How tasks of this process pass the lease on; `None` if they do not.
    pub(crate) passing: Option<Passing>,
}

impl BackendLease {
    /// A lease of this length that the backend granted: one permit, not renewed, for one turn.
    pub(crate) fn granted(
        target: LockTarget,
        owner: OwnerId,
        token: Option<FencingToken>,
        lease: Duration,
        valid_until: BootInstant,
    ) -> Self {
        Self {
            target,
            owner,
            token,
            permits: 1,
            renewed: false,
            late_attempt: false,
            safety: None,
            retention: None,
            term: Mutex::new(Term {
                lease,
                longest: lease,
                valid_until,
                hold_until: None,
                linger_until: None,
                token_until: None,
            }),
            cause: OnceLock::new(),
            releasing: AtomicBool::new(false),
            turn: Mutex::new(Weak::new()),
            slot: AtomicUsize::new(usize::MAX),
            loan: Mutex::new(None),
            passing: None,
        }
    }

    /// The same with the safety mode of the grant.
    pub(crate) fn with_safety(mut self, safety: SafetyMode) -> Self {
        self.safety = (safety != SafetyMode::default()).then(|| Box::new(safety));
        self
    }

    /// Starts the lease: the watchdog watches it from now on.
    ///
    /// # Errors
    ///
    /// [`LockError::ShutDown`] after a shutdown.
    pub(crate) fn start(
        self,
        services: &Services,
        granted_at: BootInstant,
    ) -> Result<Arc<Self>, LockError> {
        let lease = Arc::new(self);
        let watched = services.watchdog.watch(&lease, granted_at);
        watched.then_some(lease).ok_or(LockError::ShutDown)
    }

    /// Ends the lease once its deadline has passed, and returns the cause, which the caller must
    /// pass to [`end`](Self::end). `failed` is the error of the last renewal.
    ///
    /// The holder may move the deadline, or lift its maximum hold time, at the same moment. The
    /// mutex decides: the lease either continues with the new deadline, or is over for every task.
    #[must_use]
    pub(crate) fn judge(&self, now: BootInstant, failed: Option<&str>) -> Option<LostCause> {
        let term = self.term();
        if term.valid_until() > now {
            return None;
        }
        let held_too_long = term.hold_until.is_some_and(|end| end <= term.valid_until);
        let cause = match (held_too_long, self.renewed) {
            (true, _) => LostCause::MaxHold,
            (false, true) => LostCause::Unreachable {
                detail: failed
                    .unwrap_or("no renewal was confirmed in time")
                    .to_owned(),
            },
            (false, false) => LostCause::Expired,
        };
        Some(self.cause.get_or_init(|| cause).clone())
    }

    /// Ends the lease, and notifies the turn and the local queue. The first cause stays; further
    /// calls have no effect. Wakers of other tasks run in here, so the caller must hold no mutex.
    pub(crate) fn end(self: &Arc<Self>, cause: LostCause) {
        let cause = self.cause.get_or_init(|| cause);
        // A turn that starts after this sees the cause (`Turn::begin`).
        let turn = lock(&self.turn).upgrade();
        if let Some(turn) = turn {
            turn.end(cause.clone());
        }
        if let Some(passing) = &self.passing {
            passing.end(self, cause);
        }
    }

    pub(crate) fn lost(&self) -> Option<&LostCause> {
        self.cause.get()
    }

    /// Marks the start of a release; true for the first caller.
    pub(crate) fn begin_release(&self) -> bool {
        !self.releasing.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_releasing(&self) -> bool {
        self.releasing.load(Ordering::Acquire)
    }

    /// Whether it is neither lost nor being released.
    pub(crate) fn is_active(&self) -> bool {
        !self.is_releasing() && self.lost().is_none()
    }

    /// Whether it ended because its maximum hold time was over, and no release has started.
    pub(crate) fn is_held_too_long(&self) -> bool {
        !self.is_releasing() && self.lost() == Some(&LostCause::MaxHold)
    }

    /// Ends the lease for this process. Returns what the backend must get back; `None` if another
    /// caller has that.
    pub(crate) fn close(
        self: &Arc<Self>,
        services: &Arc<Services>,
        cause: LostCause,
    ) -> Option<Owed> {
        if !self.begin_release() {
            return None;
        }
        services.watchdog.forget(self);
        self.end(cause);
        Some(Owed::new(Arc::clone(services), Arc::clone(self)))
    }

    /// Ends the lease for this process and leaves it to another one. False if a loss or a shutdown
    /// came first: then it goes back to the backend.
    pub(crate) fn transfer(self: &Arc<Self>, services: &Arc<Services>) -> bool {
        // Taken before the turn ends, so that a shutdown waits for the release.
        let _under_way = services.attempts.token();
        self.leave();
        let Some(owed) = self.close(services, LostCause::Transferred) else {
            return false;
        };
        let transferred = self.lost() == Some(&LostCause::Transferred);
        if transferred {
            owed.left_to_others();
        }
        transferred
    }

    /// The safety mode of the grant.
    pub(crate) fn safety(&self) -> SafetyMode {
        self.safety.as_deref().copied().unwrap_or_default()
    }

    /// The token of the turn with this number.
    pub(crate) fn token_of(&self, turn: u32) -> Option<FencingToken> {
        FencingToken::new(self.token?.get() + u64::from(turn))
    }

    pub(super) fn term(&self) -> MutexGuard<'_, Term> {
        lock(&self.term)
    }

    pub(crate) fn valid_until(&self) -> BootInstant {
        self.term().valid_until()
    }

    /// After this instant the lease is neither renewed nor relied on.
    pub(crate) fn hold_until(&self) -> Option<BootInstant> {
        self.term().hold_until
    }

    /// Sets or lifts the maximum hold time; true if that changed anything. No effect
    /// once [`judge`](Self::judge) has found the lease over; both hold the mutex of `term`.
    pub(crate) fn limit_hold(&self, until: Option<BootInstant>) -> bool {
        let mut term = self.term();
        self.lost().is_none() && until != std::mem::replace(&mut term.hold_until, until)
    }

    /// The length that renewals request.
    pub(crate) fn length(&self) -> Duration {
        self.term().lease
    }

    /// The length that renewals request, and the current end of validity.
    pub(crate) fn length_and_validity(&self) -> (Duration, BootInstant) {
        let term = self.term();
        (term.lease, term.valid_until())
    }

    /// The length that renewals request, and the instant after which the lease is not renewed.
    pub(crate) fn length_and_end(&self) -> (Duration, Option<BootInstant>) {
        let term = self.term();
        (term.lease, term.hold_until)
    }

    /// The start of the confirmed validity: before the request for it was sent.
    pub(crate) fn counts_from(&self) -> BootInstant {
        let term = self.term();
        term.valid_until.before(term.lease)
    }

    /// The extension request to send, and the end of validity without it. `usual` is the backend's
    /// default retention of tokens.
    pub(crate) fn extension(
        &self,
        lease: Duration,
        usual: TokenRetention,
        now: BootInstant,
    ) -> (ExtendRequest, BootInstant) {
        let mut term = self.term();
        term.longest = term.longest.max(lease);
        let retention = self.retention.unwrap_or(usual);
        let request = ExtendRequest {
            target: self.target.clone(),
            owner: self.owner.clone(),
            lease,
            permits: self.permits,
            keep_token: self
                .token
                .and_then(|_| term.keep_token(retention, lease, now)),
        };
        (request, term.valid_until())
    }

    /// Notes that a confirmed extension, sent at `sent`, made the backend remember the token.
    pub(crate) fn token_kept(&self, sent: BootInstant, keep: Option<Duration>) {
        if let Some(keep) = keep {
            let mut term = self.term();
            term.token_until = term.token_until.max(Some(sent + keep));
        }
    }

    /// How long from now the server may keep holding it.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.term().longest
    }

    /// Notes a confirmed extension. It never shortens the lease.
    pub(crate) fn extended(&self, lease: Duration, valid_until: BootInstant) {
        let mut term = self.term();
        term.lease = lease;
        term.valid_until = term.valid_until.max(valid_until);
    }

    /// Notes a confirmed renewal. Returns the length that renewals request, and the new end of
    /// validity.
    pub(crate) fn confirmed(&self, valid_until: BootInstant) -> (Duration, BootInstant) {
        let mut term = self.term();
        term.valid_until = term.valid_until.max(valid_until);
        (term.lease, term.valid_until())
    }

    /// The loan of the owner id, if the id was lent or borrowed.
    pub(crate) fn shared_owner(&self) -> Option<Arc<SharedOwner>> {
        lock(&self.loan).clone()
    }

    pub(crate) fn set_shared_owner(&self, loan: &Arc<SharedOwner>) {
        *lock(&self.loan) = Some(Arc::clone(loan));
    }
}

impl fmt::Debug for BackendLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("target", &self.target)
            .field("owner", &self.owner)
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use locktopus_contract::{LockKind, LockName, clock};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A lease of three seconds that may be held for two.
    fn lease() -> Arc<BackendLease> {
        let now = clock::now();
        let target = LockTarget::new(LockName::new("n").unwrap(), LockKind::Reentrant);
        let (owner, token) = (OwnerId::generate(), FencingToken::new(7));
        let lease = BackendLease::granted(target, owner, token, 3 * SECOND, now + 3 * SECOND);
        lease.limit_hold(Some(now + 2 * SECOND));
        Arc::new(lease.with_safety(SafetyMode::Quorum))
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_says_what_was_granted() {
        let (lease, now) = (lease(), clock::now());
        assert_eq!(lease.safety(), SafetyMode::Quorum);
        assert_eq!(lease.hold_until(), Some(now + 2 * SECOND));
        assert_eq!(lease.valid_until(), now + 2 * SECOND);
        assert_eq!(lease.counts_from(), now);
        let turn = Turn::begin(&lease, lease.token, now);
        let shown = format!("{turn:?}");
        for part in [
            "Lease",
            "token: Some",
            "safety: quorum",
            "holds: 1",
            "lost: None",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_gives_a_lease_back() {
        let lease = lease();
        assert!(lease.is_active() && !lease.is_releasing());
        assert!(lease.begin_release() && !lease.begin_release());
        assert!(lease.is_releasing() && !lease.is_active());
    }

    /// Only if its maximum hold time ended it, and until it is given back.
    #[tokio::test(start_paused = true)]
    async fn a_lease_is_held_too_long_until_somebody_gives_it_back() {
        let (expired, too_long) = (lease(), lease());
        assert!(!too_long.is_held_too_long());
        expired.end(LostCause::Expired);
        assert!(!expired.is_held_too_long());
        let end = too_long.valid_until();
        assert!(
            too_long
                .judge(end.before(Duration::from_nanos(1)), None)
                .is_none()
        );
        assert!(too_long.judge(end, None).is_some());
        assert!(too_long.is_held_too_long());
        assert!(too_long.begin_release() && !too_long.is_held_too_long());
    }
}
