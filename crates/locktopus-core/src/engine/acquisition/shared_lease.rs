//! A shared lease: a lease of the backend that the members of a local queue pass to each other.
//!
//! The backend sees one owner and one lease. Each member that has its turn sees a lease of its own: its token from the
//! block that the grant reserved, its holds, its maximum hold time, its loss. What they share is validity, which is
//! only ever moved by an answer of the backend.

use std::cell::OnceCell;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::cohort::{Asker, Cohort};
use super::hand_off::Passed;
use super::kept_lease::{Keeping, RecallSubscription};
use super::plan::least_validity;
use crate::contract::clock::{self, BootInstant};
use crate::contract::sync::lock;
use crate::contract::token::FencingToken;
use crate::engine::error::LostCause;
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::grant::Grant;
use crate::engine::holding::held::Held;
use crate::engine::holding::lease::LeaseState;
use crate::engine::holding::lease_in_turns::LeaseInTurns;
use crate::engine::holding::services::Services;
use crate::engine::holding::watchdog;

pub(crate) struct SharedLease {
    /// What the backend granted: what the watchdog renews and a release gives back.
    pub(crate) core: Arc<LeaseState>,
    watch: watchdog::Ticket,
    cohort: Arc<Cohort>,
    services: Weak<Services>,
    /// The lease of the member whose turn it is; it must hear of a loss.
    holder: Mutex<Weak<LeaseState>>,
    /// Turns begun. Each has its own token.
    turns: AtomicU32,
    /// So many tokens were reserved.
    most_turns: u32,
    /// No turn begins after this instant, unless the lease is kept for longer.
    until: BootInstant,
    /// Whether it is kept while nobody wants it.
    keeping: Option<Box<Keeping>>,
}

impl SharedLease {
    /// Wraps what the leader was granted. `None` after a shutdown.
    pub(super) fn start(
        services: &Arc<Services>,
        cohort: &Arc<Cohort>,
        grant: Grant,
        recall: Option<RecallSubscription>,
    ) -> Option<Arc<Self>> {
        let until = grant.granted_at + services.settings.cohort.budget;
        let most_turns = match grant.token {
            Some(_) => grant.turns,
            None => services.settings.cohort.turns,
        };
        let keeping = recall.map(|recall| Box::new(Keeping::new(recall, grant.valid_until)));
        let mut watched = None;
        let shared = Arc::new_cyclic(|shared| {
            let core = Arc::new(LeaseState::at_core(grant, Weak::<Self>::clone(shared)));
            watched = services.watch(&core);
            Self {
                core,
                watch: watched.unwrap_or(watchdog::Ticket::NONE),
                cohort: Arc::clone(cohort),
                services: Arc::downgrade(services),
                holder: Mutex::default(),
                turns: AtomicU32::new(0),
                most_turns,
                until,
                keeping,
            }
        });
        watched.map(|_| shared)
    }

    /// Whether the lease has ended for the process, one way or the other.
    pub(super) fn is_over(&self) -> bool {
        !self.core.is_active()
    }

    fn token(&self, turn: u32) -> Option<FencingToken> {
        FencingToken::new(self.core.token?.get() + u64::from(turn))
    }

    /// Whether the lease may be passed to this waiter.
    ///
    /// Validity is inherited: the waiter gets what is left, so that must be close to what a grant of its own would
    /// have given it, and the backend must keep the lock neither longer nor shorter than it asked for.
    pub(super) fn may_serve(&self, asker: &Asker, now: BootInstant) -> bool {
        let kept_until = self.keeping.as_deref().and_then(Keeping::until);
        let until = kept_until.map_or(self.until, |kept| kept.max(self.until));
        let (lease, valid_until) = self.core.lease_and_validity();
        now < until
            && (self.core.renewed, lease) == (asker.renewed, asker.lease)
            && self.is_good_for_a_turn(valid_until, asker.least_validity(), now)
    }

    /// Whether there is a token for another turn, and enough of the validity.
    fn is_good_for_a_turn(
        &self,
        valid_until: BootInstant,
        least: Duration,
        now: BootInstant,
    ) -> bool {
        let core = &self.core;
        let turn = self.turns.load(Ordering::Relaxed);
        let left = valid_until.since(now);
        turn < self.most_turns
            && !self.is_over()
            && left >= least
            && (core.token.is_none() || self.token(turn).is_some())
    }

    /// Whether the local queue may keep the lease while nobody waits: if whoever comes next could have it.
    pub(super) fn may_keep(&self, now: impl Fn() -> BootInstant) -> bool {
        let Some(until) = self.keeping.as_deref().and_then(Keeping::until) else {
            return false;
        };
        let now = now();
        if until <= now {
            return false;
        }
        let (lease, valid_until) = self.core.lease_and_validity();
        let least = least_validity(lease, self.core.renewed);
        self.is_good_for_a_turn(valid_until, least, now)
    }

    /// The lease was released for the first time: from now on it may be kept.
    fn begin_keeping(self: &Arc<Self>, services: &Arc<Services>, now: impl Fn() -> BootInstant) {
        if let Some(keeping) = &self.keeping
            && let Some(watch) = keeping.begin(self, services, now())
        {
            // Not in the task tracker: it ends with the lease at the latest, and a shutdown waits for the release it starts.
            services.runtime.spawn(watch);
        }
    }

    /// The lease is not kept any longer. If nobody holds it at this moment, it goes back to the backend.
    pub(super) fn end_keeping(self: &Arc<Self>, services: &Arc<Services>) {
        self.keep_no_longer();
        // A shutdown waits for what follows.
        let _under_way = services.attempts.token();
        if !self.cohort.queue.let_go(self) {
            return; // whoever has it passes it on without keeping it
        }
        // What is owed then goes to the reaper.
        drop(self.close(services, LostCause::Released));
        self.cohort.tidy();
    }

    fn keep_no_longer(&self) {
        if let Some(keeping) = &self.keeping {
            keeping.end();
        }
    }

    /// Begins the next turn. To be called by the member that the local queue says holds the lock.
    pub(super) fn begin_turn(
        self: &Arc<Self>,
        hold_until: Option<BootInstant>,
        now: BootInstant,
    ) -> Arc<LeaseState> {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let state = Arc::new(LeaseState::of_turn(
            Arc::<Self>::clone(self),
            self.token(turn),
            now,
        ));
        self.limit_hold(hold_until);
        *lock(&self.holder) = Arc::downgrade(&state);
        // The lease may have been lost before `holder` was set: then the loss is reported here.
        if let Some(cause) = self.core.lost() {
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
        Held::new(Arc::clone(services), turn, self.watch)
    }

    /// Stops watching a lease that somebody else gives back.
    pub(super) fn abandon(&self, services: &Services) {
        self.core.begin_release();
        services.watchdog.forget(self.watch, &self.core);
    }

    /// Limits the lease to the maximum hold time of the member whose turn it is.
    fn limit_hold(&self, until: Option<BootInstant>) {
        if self.core.limit_hold(until)
            && let Some(services) = self.services.upgrade()
        {
            services.watchdog.retime(self.watch, &self.core);
        }
    }
}

impl LeaseInTurns for SharedLease {
    fn core(&self) -> &Arc<LeaseState> {
        &self.core
    }

    fn turn(&self) -> Option<Arc<LeaseState>> {
        lock(&self.holder).upgrade().filter(|turn| turn.holds() > 0)
    }

    fn ended(self: Arc<Self>, cause: &LostCause) {
        self.keep_no_longer();
        let holder = lock(&self.holder).upgrade();
        if let Some(holder) = holder {
            holder.end(cause.clone());
        }
        if matches!(cause, LostCause::Released | LostCause::Transferred) {
            return; // it left the local queue before
        }
        Arc::clone(&self).leave();
        // The backend may keep it for long, renewed as it was; nobody believes in it any more.
        if *cause == LostCause::MaxHold
            && self.core.begin_release()
            && let Some(services) = self.services.upgrade()
        {
            services.reap(services.pending_release_of(&self.core));
        }
    }

    fn pass(self: Arc<Self>, services: &Arc<Services>) -> bool {
        // The clock is read when it is first needed, and only once.
        let read = OnceCell::new();
        let now = || *read.get_or_init(clock::now);
        self.limit_hold(None);
        self.begin_keeping(services, now);
        let queue = &self.cohort.queue;
        let may = |shared: &Self, asker: &Asker| shared.may_serve(asker, now());
        match queue.pass(&self, now, may) {
            Passed::On(next) => {
                self.cohort.call(services, next);
                true
            }
            Passed::Kept => true,
            Passed::Over(Some(next)) => {
                self.cohort.call(services, next);
                false
            }
            Passed::Over(None) => {
                self.cohort.tidy();
                false
            }
            Passed::NotHere => false,
        }
    }

    fn leave(self: Arc<Self>) {
        let next = self.cohort.queue.remove(&self, clock::now());
        match (next, self.services.upgrade()) {
            (Some(next), Some(services)) => self.cohort.call(&services, next),
            (None, Some(_)) => self.cohort.tidy(),
            // Everything has ended, those who wait too.
            (_, None) => {}
        }
    }

    fn close(&self, services: &Arc<Services>, cause: LostCause) -> Option<Owed> {
        if !self.core.begin_release() {
            return None;
        }
        services.watchdog.forget(self.watch, &self.core);
        self.core.end(cause);
        Some(Owed::new(Arc::clone(services), Arc::clone(&self.core)))
    }
}

impl fmt::Debug for SharedLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLease")
            .field("core", &self.core)
            .field("turns", &self.turns)
            .finish_non_exhaustive()
    }
}
