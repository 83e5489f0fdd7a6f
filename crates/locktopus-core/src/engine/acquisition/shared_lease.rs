//! A shared lease: a lease of the backend that the members of a local queue pass to each other.
//!
//! The backend sees one owner and one lease. Each member that has its turn sees a lease of its own: its token from the
//! block that the grant reserved, its holds, its maximum hold time, its loss. What they share is validity, which is
//! only ever moved by an answer of the backend.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{FencingToken, lock};

use super::cohort::{Asker, Cohort};
use super::hand_off::Passed;
use super::kept_lease::{Keeping, RecallSubscription};
use super::plan::least_validity;
use crate::engine::error::LostCause;
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::grant::Grant;
use crate::engine::holding::held::Held;
use crate::engine::holding::lease::{LeaseState, State};
use crate::engine::holding::lease_in_turns::LeaseInTurns;
use crate::engine::holding::role::{Granted, Role};
use crate::engine::holding::services::Services;
use crate::engine::holding::watchdog;

/// What the backend granted, which the watchdog renews and a release gives back, and how it is passed on.
pub(crate) type SharedLease = State<Shared>;

/// The role of a lease that is passed on.
pub(crate) struct Shared {
    granted: Granted,
    /// The lease.
    lease: Weak<SharedLease>,
    /// Set right after it was made.
    watch: OnceLock<watchdog::Ticket>,
    cohort: Arc<Cohort>,
    services: Weak<Services>,
    /// The lease of the member whose turn it is; it must hear of a loss.
    holder: Mutex<Option<Weak<LeaseState>>>,
    /// Turns begun. Each has its own token.
    turns: AtomicU32,
    /// So many tokens were reserved.
    most_turns: u32,
    /// No turn begins after this instant, unless the lease is kept for longer.
    until: BootInstant,
    /// Whether it is kept while nobody wants it.
    keeping: Option<Box<Keeping>>,
}

impl Role for Shared {
    fn granted(&self) -> &Granted {
        &self.granted
    }

    fn as_core(&self) -> Option<Arc<dyn LeaseInTurns>> {
        let lease: Arc<dyn LeaseInTurns> = self.lease.upgrade()?;
        Some(lease)
    }
}

impl SharedLease {
    /// Wraps what the leader was granted. `None` after a shutdown.
    pub(super) fn start(
        services: &Arc<Services>,
        cohort: &Arc<Cohort>,
        grant: Grant,
        recall: Option<RecallSubscription>,
    ) -> Option<Arc<Self>> {
        let (token, granted_at) = (grant.token, grant.granted_at);
        let most_turns = match token {
            Some(_) => grant.turns,
            None => services.settings.cohort.turns,
        };
        let keeping = recall.map(|recall| Box::new(Keeping::new(recall, grant.valid_until)));
        let lease = Arc::new_cyclic(|lease| {
            let shared = Shared {
                granted: Granted::new(grant),
                lease: Weak::clone(lease),
                watch: OnceLock::new(),
                cohort: Arc::clone(cohort),
                services: Arc::downgrade(services),
                holder: Mutex::default(),
                turns: AtomicU32::new(0),
                most_turns,
                until: granted_at + services.settings.cohort.last_turn(),
                keeping,
            };
            Self::with(shared, token, granted_at)
        });
        let watched: Arc<LeaseState> = Arc::<Self>::clone(&lease);
        let watch = services.watch(&watched)?;
        lease.role().watch.get_or_init(|| watch);
        Some(lease)
    }

    /// Where the watchdog finds it.
    fn watch(&self) -> watchdog::Ticket {
        let watch = self.role().watch.get();
        watch.copied().unwrap_or(watchdog::Ticket::NONE)
    }

    /// Whether the lease has ended for the process, one way or the other.
    pub(super) fn is_over(&self) -> bool {
        !self.is_active()
    }

    /// Whether every turn that it was good for has begun.
    pub(super) fn is_used_up(&self) -> bool {
        self.role().turns.load(Ordering::Relaxed) >= self.role().most_turns
    }

    fn token_of(&self, turn: u32) -> Option<FencingToken> {
        FencingToken::new(self.token?.get() + u64::from(turn))
    }

    /// Whether the lease may be passed to this waiter.
    ///
    /// Validity is inherited: the waiter gets what is left, so that must be close to what a grant of its own would
    /// have given it, and the backend must keep the lock neither longer nor shorter than it asked for.
    pub(super) fn may_serve(&self, asker: &Asker, now: BootInstant) -> bool {
        let Shared { keeping, until, .. } = self.role();
        let kept_until = keeping.as_deref().and_then(Keeping::until);
        let until = kept_until.map_or(*until, |kept| kept.max(*until));
        let (lease, valid_until) = self.lease_and_validity();
        now < until
            && (self.renewed, lease) == (asker.renewed, asker.lease)
            && self.is_good_for_a_turn(valid_until, asker.least_validity(), now)
    }

    /// Whether there is a token for another turn, and enough of the validity.
    fn is_good_for_a_turn(
        &self,
        valid_until: BootInstant,
        least: Duration,
        now: BootInstant,
    ) -> bool {
        let turn = self.role().turns.load(Ordering::Relaxed);
        let left = valid_until.since(now);
        turn < self.role().most_turns
            && !self.is_over()
            && left >= least
            && (self.token.is_none() || self.token_of(turn).is_some())
    }

    /// Whether the local queue may keep the lease while nobody waits: if whoever comes next could have it.
    pub(super) fn may_keep(&self, now: impl Fn() -> BootInstant) -> bool {
        let Some(until) = self.role().keeping.as_deref().and_then(Keeping::until) else {
            return false;
        };
        let now = now();
        if until <= now {
            return false;
        }
        let (lease, valid_until) = self.lease_and_validity();
        let least = least_validity(lease, self.renewed);
        self.is_good_for_a_turn(valid_until, least, now)
    }

    /// The lease was released for the first time: from now on it may be kept.
    fn begin_keeping(self: &Arc<Self>, services: &Arc<Services>, now: impl Fn() -> BootInstant) {
        let Some(keeping) = &self.role().keeping else {
            return;
        };
        let Some(recall) = keeping.begin(now()) else {
            return;
        };
        // Not in the task tracker: it ends with the lease at the latest, and a shutdown waits for
        // the release it starts.
        let (lease, recall) = (Arc::downgrade(self), Mutex::new(Some(recall)));
        services.in_background(None, move |services| {
            let (lease, recall) = (lease.upgrade(), lock(&recall).take());
            async move {
                let Some(lease) = lease else { return };
                // Started again, it may have missed a request for the lock.
                if let Some(recall) = recall {
                    recall.over(lease.signal()).await;
                }
                lease.end_keeping(&services);
            }
        });
    }

    /// The lease is not kept any longer. If nobody holds it at this moment, it goes back to the backend.
    pub(super) fn end_keeping(self: &Arc<Self>, services: &Arc<Services>) {
        self.keep_no_longer();
        // A shutdown waits for what follows.
        let _under_way = services.attempts.token();
        if !self.role().cohort.queue.let_go(self) {
            return; // whoever has it passes it on without keeping it
        }
        // What is owed then goes to the reaper.
        drop(Arc::clone(self).close(services, LostCause::Released));
        self.role().cohort.tidy();
    }

    fn keep_no_longer(&self) {
        if let Some(keeping) = &self.role().keeping {
            keeping.end();
        }
    }

    /// Begins the next turn. To be called by the member that the local queue says holds the lock.
    pub(super) fn begin_turn(
        self: &Arc<Self>,
        hold_until: Option<BootInstant>,
        now: BootInstant,
    ) -> Arc<LeaseState> {
        let turn = self.role().turns.fetch_add(1, Ordering::Relaxed);
        let state = LeaseState::of_turn(Arc::<Self>::clone(self), self.token_of(turn), now);
        self.limit_turn(hold_until);
        *lock(&self.role().holder) = Some(Arc::downgrade(&state));
        // The lease may have been lost before `holder` was set: then the loss is reported here.
        if let Some(cause) = self.lost() {
            state.end(cause.clone());
        }
        state
    }

    /// Begins the next turn, and gives its guard.
    pub(super) fn begin(
        self: &Arc<Self>,
        services: &Arc<Services>,
        hold_until: Option<BootInstant>,
        now: BootInstant,
    ) -> Held {
        let turn = self.begin_turn(hold_until, now);
        Held::new(Arc::clone(services), turn, self.watch())
    }

    /// Stops watching a lease that somebody else gives back.
    pub(super) fn abandon(&self, services: &Services) {
        self.begin_release();
        services.watchdog.forget(self.watch(), self);
    }

    /// Limits the lease to the maximum hold time of the member whose turn it is.
    fn limit_turn(&self, until: Option<BootInstant>) {
        if self.limit_hold(until)
            && let Some(services) = self.role().services.upgrade()
        {
            services.watchdog.retime(self.watch(), self);
        }
    }

    /// The lease that the holder of a turn had last.
    fn holder(&self) -> Option<Arc<LeaseState>> {
        lock(&self.role().holder).as_ref()?.upgrade()
    }
}

impl LeaseInTurns for SharedLease {
    fn core(self: Arc<Self>) -> Arc<LeaseState> {
        self
    }

    fn granted(&self) -> &Granted {
        self
    }

    fn turn(&self) -> Option<Arc<LeaseState>> {
        self.holder().filter(|turn| turn.holds() > 0)
    }

    fn ended(self: Arc<Self>, cause: &LostCause) {
        self.keep_no_longer();
        let holder = self.holder();
        if let Some(holder) = holder {
            holder.end(cause.clone());
        }
        if matches!(cause, LostCause::Released | LostCause::Transferred) {
            return; // it left the local queue before
        }
        Arc::clone(&self).leave();
        // The backend may keep it for long, renewed as it was; nobody believes in it any more.
        if *cause == LostCause::MaxHold
            && self.begin_release()
            && let Some(services) = self.role().services.upgrade()
        {
            services.reap(services.pending_release_of(&*self));
        }
    }

    fn pass(self: Arc<Self>, services: &Arc<Services>) -> bool {
        // The clock is read when it is first needed, and only once.
        let read = OnceCell::new();
        let now = || *read.get_or_init(clock::now);
        self.limit_turn(None);
        self.begin_keeping(services, now);
        let queue = &self.role().cohort.queue;
        let may = |shared: &Self, asker: &Asker| shared.may_serve(asker, now());
        match queue.pass(&self, now, may) {
            Passed::On(next) => {
                self.role().cohort.call(services, next);
                true
            }
            Passed::Kept => true,
            Passed::Over(Some(next)) => {
                self.role().cohort.call(services, next);
                false
            }
            Passed::Over(None) => {
                self.role().cohort.tidy();
                false
            }
            Passed::NotHere => false,
        }
    }

    fn leave(self: Arc<Self>) {
        let next = self.role().cohort.queue.remove(&self, clock::now());
        match (next, self.role().services.upgrade()) {
            (Some(next), Some(services)) => self.role().cohort.call(&services, next),
            (None, Some(_)) => self.role().cohort.tidy(),
            // Everything has ended, those who wait too.
            (_, None) => {}
        }
    }

    fn close(self: Arc<Self>, services: &Arc<Services>, cause: LostCause) -> Option<Owed> {
        if !self.begin_release() {
            return None;
        }
        services.watchdog.forget(self.watch(), &*self);
        self.end(cause);
        Some(Owed::new(Arc::clone(services), self))
    }
}
