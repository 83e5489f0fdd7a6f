//! A turn of a lease: a guard holds it, and hears of a loss through it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{FencingToken, lock};
use tokio_util::sync::CancellationToken;

use crate::engine::acquisition::passing::Passing;
use crate::engine::error::LostCause;
use crate::engine::holding::hold::Hold;
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;
use crate::engine::observe::{HoldObservation, ObservedHold};

/// One task's turn of a lease, which its guards and owner handles share. A lease that is not passed
/// on has one turn.
pub(crate) struct Turn {
    pub(crate) lease: Arc<BackendLease>,
    pub(crate) token: Option<FencingToken>,
    pub(crate) since: BootInstant,
    holds: AtomicUsize,
    cause: OnceLock<LostCause>,
    /// Created for the first task that waits for the end.
    signal: OnceLock<CancellationToken>,
    /// Notified of the end, for spans and metrics.
    hold: ObservedHold,
}

impl BackendLease {
    /// Starts the next turn and returns its guard. If the lease is passed on, only the member that
    /// holds the lock, according to the local queue, may call this.
    pub(crate) fn begin_turn(
        self: &Arc<Self>,
        services: &Arc<Services>,
        hold_until: Option<BootInstant>,
        now: BootInstant,
    ) -> Hold {
        let number = self.passing.as_ref().map_or(0, Passing::count_turn);
        self.limit_turn(services, hold_until);
        let turn = Turn::begin(self, self.token_of(number), now);
        Hold::new(Arc::clone(services), turn)
    }

    /// Limits the lease to the maximum hold time of the member whose turn it is.
    pub(crate) fn limit_turn(&self, services: &Services, until: Option<BootInstant>) {
        if self.limit_hold(until) {
            services.watchdog.retime(self);
        }
    }

    /// The held turn or, if there is none, one without holds, which ends when the next turn starts.
    pub(crate) fn current_turn(self: &Arc<Self>, since: BootInstant) -> Arc<Turn> {
        let mut current = lock(&self.turn);
        let turn = current.upgrade();
        if let Some(turn) = turn.filter(|turn| turn.holds() > 0 || turn.lost().is_none()) {
            return turn;
        }
        let idle = Turn::new(self, self.token, since, 0);
        *current = Arc::downgrade(&idle);
        drop(current);
        idle.hear_of_loss();
        idle
    }

    /// Whether a guard holds it.
    pub(crate) fn is_held(&self) -> bool {
        let turn = lock(&self.turn).upgrade();
        turn.is_some_and(|turn| turn.holds() > 0)
    }
}

impl Turn {
    fn new(
        lease: &Arc<BackendLease>,
        token: Option<FencingToken>,
        since: BootInstant,
        holds: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            lease: Arc::clone(lease),
            token,
            since,
            holds: AtomicUsize::new(holds),
            cause: OnceLock::new(),
            signal: OnceLock::new(),
            hold: ObservedHold::default(),
        })
    }

    /// A turn with one hold, which hears of the lease's end from now on.
    pub(crate) fn begin(
        lease: &Arc<BackendLease>,
        token: Option<FencingToken>,
        since: BootInstant,
    ) -> Arc<Self> {
        let turn = Self::new(lease, token, since, 1);
        let before = std::mem::replace(&mut *lock(&lease.turn), Arc::downgrade(&turn));
        // The previous turn has usually ended and is gone.
        if let Some(before) = before.upgrade() {
            before.end(LostCause::Released);
        }
        turn.hear_of_loss();
        turn
    }

    /// The lease may have been lost before it knew this turn.
    fn hear_of_loss(&self) {
        if let Some(cause) = self.lease.lost() {
            self.end(cause.clone());
        }
    }

    pub(crate) fn lost(&self) -> Option<&LostCause> {
        self.cause.get()
    }

    /// Ends the turn and notifies its guards. The first cause stays.
    pub(crate) fn end(&self, cause: LostCause) {
        if self.cause.set(cause).is_err() {
            return;
        }
        if let Some(cause) = self.lost() {
            self.hold.end(cause);
        }
        // Pairs with the fence in `signal`: either this sees the signal, or `signal` sees the
        // cause.
        fence(Ordering::SeqCst);
        if let Some(signal) = self.signal.get() {
            signal.cancel();
        }
    }

    /// Cancelled when the turn has ended.
    pub(crate) fn signal(&self) -> &CancellationToken {
        let signal = self.signal.get_or_init(CancellationToken::new);
        fence(Ordering::SeqCst);
        if self.lost().is_some() {
            signal.cancel();
        }
        signal
    }

    /// Ends the turn if the lease's deadline has passed, unless the deadline was moved meanwhile.
    pub(crate) fn expire(&self) {
        if let Some(cause) = self.lease.judge(clock::now(), None) {
            self.lease.end(cause.clone());
            // The lease may have moved on to another turn.
            self.end(cause);
        }
    }

    /// Reports the end to `holding`. Called once, when the lock was taken.
    pub(crate) fn observed(&self, holding: HoldObservation) {
        self.hold.begin(holding, || self.lost());
    }

    /// Adds a hold, unless the last one is already gone.
    pub(super) fn try_add_hold(&self) -> bool {
        self.holds
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                (n > 0).then_some(n + 1)
            })
            .is_ok()
    }

    /// Removes the hold if it is the only one.
    pub(super) fn remove_only_hold(&self) -> bool {
        self.holds
            .compare_exchange(1, 0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Restores the only hold, which [`remove_only_hold`](Self::remove_only_hold) took away.
    pub(super) fn restore_hold(&self) {
        self.holds.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes a hold; true if it was the last one.
    pub(super) fn remove_hold(&self) -> bool {
        self.holds.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn holds(&self) -> usize {
        self.holds.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lease = &self.lease;
        f.debug_struct("Lease")
            .field("target", &lease.target)
            .field("owner", &lease.owner)
            .field("token", &self.token)
            .field("renewed", &lease.renewed)
            .field("holds", &self.holds())
            .field("safety", &format_args!("{}", lease.safety()))
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
