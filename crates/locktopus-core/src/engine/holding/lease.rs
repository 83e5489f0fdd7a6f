//! The state of one lease, shared by guards, leases, the watchdog and the reaper.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{ExtendRequest, FencingToken, SafetyMode, TokenRetention, lock};
use tokio_util::sync::CancellationToken;

use crate::engine::error::LostCause;
use crate::engine::holding::grant::Grant;
use crate::engine::holding::lease_in_turns::LeaseInTurns;
use crate::engine::holding::role::{Granted, Role, Turn};
use crate::engine::holding::shared_owner::SharedOwner;
use crate::engine::holding::term::Term;
use crate::engine::observe::{Hold, Holding};

/// A lease, or one task's turn of a lease that is passed on inside the process. Shared by guards, leases, the watchdog and
/// owner handles.
///
/// Here is what each of them has for itself. The [role](Role) says what was granted, for which a turn looks at its lease:
/// a lock that is held costs one of these small, and one with a grant.
pub(crate) struct State<R: ?Sized> {
    pub(crate) token: Option<FencingToken>,
    pub(crate) granted_at: BootInstant,
    holds: AtomicUsize,
    cause: OnceLock<LostCause>,
    /// Made when somebody wants to hear it.
    signal: OnceLock<CancellationToken>,
    /// What is told to those who watch.
    hold: Hold,
    /// Set once a release began: from then on no renewal is sent and no result of one matters.
    releasing: AtomicBool,
    role: R,
}

/// A lease, whatever its role.
pub(crate) type LeaseState = State<dyn Role>;

/// What was granted is the same for a lease and for each of its turns.
impl<R: Role + ?Sized> Deref for State<R> {
    type Target = Granted;

    fn deref(&self) -> &Granted {
        self.role.granted()
    }
}

/// A lease that was found to be over.
#[must_use = "somebody may wait to hear of it"]
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) lease: Arc<LeaseState>,
    /// Nobody had found it before.
    first: bool,
}

impl Over {
    /// Tells everybody. Runs whatever waits for that, so no lock may be held.
    pub(crate) fn announce(&self) {
        if self.first {
            self.lease.announce();
        }
    }
}

impl<R> State<R> {
    /// A lease that is held once.
    pub(crate) fn with(role: R, token: Option<FencingToken>, granted_at: BootInstant) -> Self {
        Self {
            token,
            granted_at,
            holds: AtomicUsize::new(1),
            cause: OnceLock::new(),
            signal: OnceLock::new(),
            hold: Hold::default(),
            releasing: AtomicBool::new(false),
            role,
        }
    }

    pub(crate) fn role(&self) -> &R {
        &self.role
    }
}

impl LeaseState {
    /// A lease that is not passed on.
    pub(crate) fn of(grant: Grant) -> Arc<Self> {
        let (token, granted_at) = (grant.token, grant.granted_at);
        Arc::new(State::with(Granted::new(grant), token, granted_at))
    }

    /// One task's turn of a lease that is passed on.
    pub(crate) fn of_turn(
        shared: Arc<dyn LeaseInTurns>,
        token: Option<FencingToken>,
        granted_at: BootInstant,
    ) -> Arc<Self> {
        Arc::new(State::with(Turn(shared), token, granted_at))
    }

    #[cfg(test)]
    pub(crate) fn size_of_turn() -> usize {
        size_of::<State<Turn>>()
    }

    /// What this is a turn of, if it is one.
    pub(crate) fn lease_in_turns(&self) -> Option<&Arc<dyn LeaseInTurns>> {
        self.role.lease_in_turns()
    }

    /// What `held_locks` reports: the lease, or the current turn if the lease is passed on and a task has it; and how many
    /// guards share it.
    pub(crate) fn in_use(self: &Arc<Self>) -> (Arc<Self>, usize) {
        let Some(shared) = self.role.as_core() else {
            return (Arc::clone(self), self.holds());
        };
        match shared.turn() {
            Some(turn) => {
                let holds = turn.holds();
                (turn, holds)
            }
            None => (Arc::clone(self), 0),
        }
    }

    /// The lease that the backend keeps and the watchdog watches.
    pub(crate) fn core(self: &Arc<Self>) -> Arc<Self> {
        match self.lease_in_turns() {
            Some(shared) => Arc::clone(shared).core(),
            None => Arc::clone(self),
        }
    }

    /// Finds out whether the deadline has passed; if so, the lease is over from now on, and what comes back tells everybody.
    /// `failed`: what the last renewal failed with.
    ///
    /// The deadline may be moved, or a maximum hold time lifted, by whoever passes the lease on at the same moment. Either
    /// that happens before, and the lease is not over, or nobody goes on with it.
    #[must_use]
    pub(crate) fn judge(self: &Arc<Self>, now: BootInstant, failed: Option<&str>) -> Option<Over> {
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
        let first = self.cause.set(cause).is_ok();
        drop(term);
        let lease = Arc::clone(self);
        Some(Over { lease, first })
    }

    /// Ends a lease whose deadline has passed, unless that was moved meanwhile.
    pub(crate) fn expire(self: &Arc<Self>) {
        let core = self.core();
        if let Some(over) = core.judge(clock::now(), None) {
            over.announce();
            // Nothing new if this turn was told already.
            self.end(core.lost().cloned().unwrap_or(LostCause::Expired));
        }
    }
}

impl<R: Role + ?Sized> State<R> {
    /// What the grant is worth when a server fails.
    pub(crate) fn safety(&self) -> SafetyMode {
        self.safety.as_deref().copied().unwrap_or_default()
    }

    /// A turn's is its lease's.
    pub(super) fn term(&self) -> MutexGuard<'_, Term> {
        lock(&self.term)
    }

    pub(crate) fn valid_until(&self) -> BootInstant {
        self.term().valid_until()
    }

    /// After this instant it is neither renewed nor believed in.
    pub(crate) fn hold_until(&self) -> Option<BootInstant> {
        self.term().hold_until
    }

    /// Sets or lifts the maximum hold time; true if that changed anything. No effect
    /// once [`judge`](Self::judge) has found the lease over; both hold the lock of `term`.
    pub(crate) fn limit_hold(&self, until: Option<BootInstant>) -> bool {
        let mut term = self.term();
        self.lost().is_none() && until != std::mem::replace(&mut term.hold_until, until)
    }

    /// The lease that renewals ask for.
    pub(crate) fn lease(&self) -> Duration {
        self.term().lease
    }

    /// The lease that renewals ask for, and until when it may be believed in as things stand.
    pub(crate) fn lease_and_validity(&self) -> (Duration, BootInstant) {
        let term = self.term();
        (term.lease, term.valid_until())
    }

    /// The lease that renewals ask for, and the instant after which it is not renewed.
    pub(crate) fn lease_and_end(&self) -> (Duration, Option<BootInstant>) {
        let term = self.term();
        (term.lease, term.hold_until)
    }

    /// From when the validity counts that the backend confirmed: before that was asked for.
    pub(crate) fn counts_from(&self) -> BootInstant {
        let term = self.term();
        term.valid_until.before(term.lease)
    }

    /// The request for an extension that the caller is about to send, and until when the lease is
    /// valid without it. `usual`: the backend's default retention of tokens.
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

    /// Notes that a confirmed extension, sent then, made the backend remember the token.
    pub(crate) fn token_kept(&self, sent: BootInstant, keep: Option<Duration>) {
        if let Some(keep) = keep {
            let mut term = self.term();
            term.token_until = term.token_until.max(Some(sent + keep));
        }
    }

    /// How long from now the server may go on holding it.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.term().longest
    }

    /// Notes a confirmed extension. Extensions never shorten a lease, so neither does this.
    pub(crate) fn extended(&self, lease: Duration, valid_until: BootInstant) {
        let mut term = self.term();
        term.lease = lease;
        term.valid_until = term.valid_until.max(valid_until);
    }

    /// Notes a confirmed renewal, which changes nothing about what renewals ask for: that, and until when the lease may be
    /// believed in now.
    pub(crate) fn confirmed(&self, valid_until: BootInstant) -> (Duration, BootInstant) {
        let mut term = self.term();
        term.valid_until = term.valid_until.max(valid_until);
        (term.lease, term.valid_until())
    }

    pub(crate) fn lost(&self) -> Option<&LostCause> {
        self.cause.get()
    }

    /// Ends the lease for a reason; the first reason stays.
    pub(crate) fn end(&self, cause: LostCause) {
        if self.cause.set(cause).is_ok() {
            self.announce();
        }
    }

    /// Tells everybody that the lease has ended. To be called once, by whoever gave the cause.
    fn announce(&self) {
        let Some(cause) = self.lost() else {
            return;
        };
        self.hold.end(cause);
        // Pairs with the fence in `signal()`: either this sees its signal, or it sees the cause.
        fence(Ordering::SeqCst);
        if let Some(signal) = self.signal.get() {
            signal.cancel();
        }
        if let Some(shared) = self.role.as_core() {
            shared.ended(cause);
        }
    }

    /// The lease is held from now on; `holding` is told when it is not any more.
    pub(crate) fn observed(&self, holding: Holding) {
        self.hold.begin(holding, || self.lost());
    }

    /// Cancelled when the lease has ended.
    pub(crate) fn signal(&self) -> &CancellationToken {
        let signal = self.signal.get_or_init(CancellationToken::new);
        fence(Ordering::SeqCst);
        if self.lost().is_some() {
            signal.cancel();
        }
        signal
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

    /// The loan of the owner id, if it was lent or borrowed.
    pub(crate) fn shared_owner(&self) -> Option<Arc<SharedOwner>> {
        lock(&self.loan).clone()
    }

    pub(crate) fn set_shared_owner(&self, loan: &Arc<SharedOwner>) {
        *lock(&self.loan) = Some(Arc::clone(loan));
    }

    /// Marks the beginning of a release; true for the first caller.
    pub(crate) fn begin_release(&self) -> bool {
        !self.releasing.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_releasing(&self) -> bool {
        self.releasing.load(Ordering::Acquire)
    }

    /// Whether it ended because its maximum hold time was over, and nobody gives it back yet.
    pub(crate) fn is_held_too_long(&self) -> bool {
        !self.is_releasing() && self.lost() == Some(&LostCause::MaxHold)
    }

    /// Whether the watchdog still has anything to do for it.
    pub(crate) fn is_active(&self) -> bool {
        !self.is_releasing() && self.lost().is_none()
    }
}

impl<R: Role + ?Sized> fmt::Debug for State<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("target", &self.target)
            .field("owner", &self.owner)
            .field("token", &self.token)
            .field("renewed", &self.renewed)
            .field("holds", &self.holds())
            .field("safety", &format_args!("{}", self.safety()))
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use locktopus_contract::{LockKind, LockName, LockTarget, OwnerId};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A lease of three seconds that may be held for two.
    fn lease() -> Arc<LeaseState> {
        let now = clock::now();
        LeaseState::of(Grant {
            target: LockTarget::new(LockName::new("n").unwrap(), LockKind::Reentrant),
            owner: OwnerId::generate(),
            token: FencingToken::new(7),
            permits: 1,
            turns: 1,
            lease: 3 * SECOND,
            renewed: false,
            hold_until: Some(now + 2 * SECOND),
            granted_at: now,
            valid_until: now + 3 * SECOND,
            late_attempt: false,
            safety: SafetyMode::Quorum,
            retention: None,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_says_what_was_granted() {
        let (lease, now) = (lease(), clock::now());
        assert_eq!(lease.safety(), SafetyMode::Quorum);
        assert_eq!(lease.hold_until(), Some(now + 2 * SECOND));
        assert_eq!(lease.valid_until(), now + 2 * SECOND);
        assert_eq!(lease.counts_from(), now);
        let shown = format!("{lease:?}");
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

    /// Only what is over because of its maximum hold time, and until somebody gives it back.
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

    #[tokio::test(start_paused = true)]
    async fn a_lock_lingers_until_its_least_time_is_over() {
        let lease = lease();
        lease.hold_at_least(Duration::ZERO);
        assert!(lease.linger_until().is_none() && !lease.lingers());
        lease.hold_at_least(SECOND);
        lease.hold_at_least(SECOND / 2);
        assert_eq!(lease.linger_until(), Some(clock::now() + SECOND));
        tokio::time::advance(SECOND - Duration::from_nanos(1)).await;
        assert!(lease.lingers());
        tokio::time::advance(Duration::from_nanos(1)).await;
        assert!(!lease.lingers());
    }
}
