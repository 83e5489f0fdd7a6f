//! The state of one lease, shared by guards, leases, the watchdog and the reaper.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::contract::clock::{self, BootInstant};
use crate::contract::kind::LockTarget;
use crate::contract::owner::OwnerId;
use crate::contract::safety_mode::SafetyMode;
use crate::contract::sync::lock;
use crate::contract::token::FencingToken;
use crate::contract::token_retention::TokenRetention;
use crate::engine::error::LostCause;
use crate::engine::holding::grant::Grant;
use crate::engine::holding::lease_in_turns::LeaseInTurns;
use crate::engine::holding::shared_owner::SharedOwner;
use crate::engine::holding::term::Term;
use crate::engine::observe::{Hold, Holding};

/// Everything known about one acquisition. Shared by guards, leases, the watchdog and owner handles.
pub(crate) struct LeaseState {
    pub(crate) target: LockTarget,
    pub(crate) owner: OwnerId,
    pub(crate) token: Option<FencingToken>,
    /// How many permits of a semaphore; 1 for locks.
    pub(crate) permits: u32,
    /// Whether the watchdog renews it.
    pub(crate) renewed: bool,
    pub(crate) granted_at: BootInstant,
    /// An attempt of this owner got no answer and may still arrive, after the release: look once more then.
    pub(crate) late_attempt: bool,
    /// The safety mode of the grant; `None` if it is the default.
    safety: Option<Box<SafetyMode>>,
    pub(crate) retention: Option<TokenRetention>,
    link: Link,
    term: Mutex<Term>,
    /// Set once a release began: from then on no renewal is sent and no result of one matters.
    releasing: AtomicBool,
    holds: AtomicUsize,
    cause: OnceLock<LostCause>,
    /// Made when somebody wants to hear it.
    signal: OnceLock<CancellationToken>,
    /// A writer's id, lent to a reader: noted by both of them.
    loan: Mutex<Option<Arc<SharedOwner>>>,
    /// What is told to those who watch.
    hold: Hold,
}

/// The role of this state when a lease is passed on inside the process: none, the backend's lease, or one turn.
enum Link {
    /// It is not.
    Alone,
    /// It is what the backend granted.
    Core(Weak<dyn LeaseInTurns>),
    /// It is one task's turn.
    Turn(Arc<dyn LeaseInTurns>),
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

impl LeaseState {
    pub(crate) fn new(grant: Grant) -> Self {
        Self::linked(grant, Link::Alone)
    }

    /// What the backend granted, to be passed on within the process.
    pub(crate) fn at_core(grant: Grant, shared: Weak<dyn LeaseInTurns>) -> Self {
        Self::linked(grant, Link::Core(shared))
    }

    /// One task's turn of a lease that is passed on.
    pub(crate) fn of_turn(
        shared: Arc<dyn LeaseInTurns>,
        token: Option<FencingToken>,
        granted_at: BootInstant,
    ) -> Self {
        let core = shared.core();
        let grant = Grant {
            target: core.target.clone(),
            owner: core.owner.clone(),
            token,
            permits: core.permits,
            turns: 1,
            lease: Duration::ZERO,
            renewed: core.renewed,
            hold_until: None,
            granted_at,
            valid_until: granted_at,
            late_attempt: core.late_attempt,
            safety: core.safety(),
            retention: core.retention,
        };
        Self::linked(grant, Link::Turn(shared))
    }

    fn linked(grant: Grant, link: Link) -> Self {
        let Grant {
            target,
            owner,
            token,
            permits,
            turns: _,
            lease,
            renewed,
            hold_until,
            granted_at,
            valid_until,
            late_attempt,
            safety,
            retention,
        } = grant;
        Self {
            target,
            owner,
            token,
            permits,
            renewed,
            granted_at,
            late_attempt,
            safety: (safety != SafetyMode::default()).then(|| Box::new(safety)),
            retention,
            link,
            term: Mutex::new(Term {
                lease,
                longest: lease,
                valid_until,
                hold_until,
                linger_until: None,
            }),
            releasing: AtomicBool::new(false),
            holds: AtomicUsize::new(1),
            loan: Mutex::default(),
            hold: Hold::default(),
            cause: OnceLock::new(),
            signal: OnceLock::new(),
        }
    }

    /// What the grant is worth when a server fails.
    pub(crate) fn safety(&self) -> SafetyMode {
        self.safety.as_deref().copied().unwrap_or_default()
    }

    /// What this is a turn of, if it is one.
    pub(crate) fn lease_in_turns(&self) -> Option<&Arc<dyn LeaseInTurns>> {
        match &self.link {
            Link::Turn(shared) => Some(shared),
            Link::Alone | Link::Core(_) => None,
        }
    }

    /// What `held_locks` reports: the lease, or the current turn if the lease is passed on and a task has it; and how many
    /// guards share it.
    pub(crate) fn in_use(self: &Arc<Self>) -> (Arc<Self>, usize) {
        let Link::Core(shared) = &self.link else {
            return (Arc::clone(self), self.holds());
        };
        match shared.upgrade().and_then(|shared| shared.turn()) {
            Some(turn) => {
                let holds = turn.holds();
                (turn, holds)
            }
            None => (Arc::clone(self), 0),
        }
    }

    /// The lease that the backend keeps and the watchdog watches.
    pub(crate) fn core(self: &Arc<Self>) -> &Arc<Self> {
        self.lease_in_turns().map_or(self, |shared| shared.core())
    }

    pub(super) fn term(&self) -> MutexGuard<'_, Term> {
        lock(match &self.link {
            Link::Turn(shared) => &shared.core().term,
            Link::Alone | Link::Core(_) => &self.term,
        })
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

    /// Notes that an extension is about to be sent. Until when the lease may be believed in without it.
    pub(crate) fn asked_for(&self, lease: Duration) -> BootInstant {
        let mut term = self.term();
        term.longest = term.longest.max(lease);
        term.valid_until()
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
        if let Link::Core(shared) = &self.link
            && let Some(shared) = shared.upgrade()
        {
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
        if let Some(over) = self.core().judge(clock::now(), None) {
            over.announce();
            // Nothing new if this turn was told already.
            self.end(self.core().lost().cloned().unwrap_or(LostCause::Expired));
        }
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
            .field("safety", &format_args!("{}", self.safety()))
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
