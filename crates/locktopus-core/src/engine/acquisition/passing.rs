//! How members of a local queue pass a lease of the backend to each other; `cohort_queue.rs` says
//! to whom.
//!
//! The backend sees one owner and one lease. Each member has a turn of it, with a token from the
//! block that the grant reserved, and with its own holds, maximum hold time and loss. They share
//! the validity, which only an answer of the backend changes.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::lock;

use super::cohort::Cohort;
use super::kept_lease::Keeping;
use super::plan::least_validity;
use super::stage::Waiter;
use crate::engine::error::LostCause;
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;
use crate::engine::holding::turn::Turn;

/// The part of a lease that only a lease in a local queue has.
pub(crate) struct Passing {
    cohort: Arc<Cohort>,
    services: Weak<Services>,
    /// Turns begun. Each has its own token.
    turns: AtomicU32,
    /// How many tokens were reserved.
    most_turns: u32,
    /// No turn begins after this instant, unless the lease is kept for longer.
    until: BootInstant,
    /// Keeps the lease while no member wants it; `None` if the request did not ask for that.
    keeping: Option<Box<Keeping>>,
}

impl Passing {
    pub(super) fn new(
        services: &Arc<Services>,
        cohort: &Arc<Cohort>,
        turns: Option<u32>,
        granted_at: BootInstant,
        keeping: Option<Box<Keeping>>,
    ) -> Self {
        let settings = services.settings.cohort;
        Self {
            cohort: Arc::clone(cohort),
            services: Arc::downgrade(services),
            turns: AtomicU32::new(0),
            most_turns: turns.unwrap_or(settings.turns),
            until: granted_at + settings.last_turn(),
            keeping,
        }
    }

    /// Counts a turn that starts, and returns its number.
    pub(crate) fn count_turn(&self) -> u32 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    fn has_turns(&self) -> bool {
        self.turns.load(Ordering::Relaxed) < self.most_turns
    }

    fn kept_until(&self) -> Option<BootInstant> {
        self.keeping.as_deref().and_then(Keeping::until)
    }

    fn keep_no_longer(&self) {
        if let Some(keeping) = &self.keeping {
            keeping.end();
        }
    }

    /// The lease has ended.
    pub(crate) fn end(&self, lease: &Arc<BackendLease>, cause: &LostCause) {
        self.keep_no_longer();
        // Otherwise it left the local queue before.
        if !matches!(cause, LostCause::Released | LostCause::Transferred) {
            lease.leave();
        }
    }
}

impl BackendLease {
    /// Whether all its turns have started.
    pub(super) fn is_used_up(&self) -> bool {
        self.passing.as_ref().is_some_and(|own| !own.has_turns())
    }

    /// Whether the lease may be passed to this waiter.
    ///
    /// The waiter inherits the rest of the validity, which must be close to that of a new grant.
    /// The backend must keep the lock neither longer nor shorter than the waiter wants.
    pub(super) fn may_serve(&self, waiter: &Waiter, now: BootInstant) -> bool {
        let Some(passing) = &self.passing else {
            return false;
        };
        let (length, valid_until) = self.length_and_validity();
        passing.kept_until().max(Some(passing.until)) > Some(now)
            && (self.renewed, length) == (waiter.renewed, waiter.lease)
            && self.is_good_for_a_turn(passing, length, valid_until.since(now))
    }

    /// Whether there is a token for another turn, and enough validity left for a lease of this
    /// length.
    fn is_good_for_a_turn(&self, passing: &Passing, length: Duration, left: Duration) -> bool {
        let turn = passing.turns.load(Ordering::Relaxed);
        passing.has_turns()
            && self.is_active()
            && left >= least_validity(length, self.renewed)
            && (self.token.is_none() || self.token_of(turn).is_some())
    }

    /// Whether the local queue may keep a lease without waiters: the next member must be able to
    /// use it.
    pub(super) fn may_keep(&self, now: impl Fn() -> BootInstant) -> bool {
        let Some(passing) = &self.passing else {
            return false;
        };
        let Some(until) = passing.kept_until() else {
            return false;
        };
        let now = now();
        let (length, valid_until) = self.length_and_validity();
        now < until && self.is_good_for_a_turn(passing, length, valid_until.since(now))
    }

    /// After the first release the lease may be kept.
    fn begin_keeping(
        self: &Arc<Self>,
        passing: &Passing,
        services: &Arc<Services>,
        now: impl Fn() -> BootInstant,
    ) {
        let keeping = passing.keeping.as_ref();
        let Some(recall) = keeping.and_then(|keeping| keeping.begin(now)) else {
            return;
        };
        // Not in the task tracker: it ends with the lease at the latest, and a shutdown waits for
        // the release that it starts.
        let (lease, recall) = (Arc::downgrade(self), Mutex::new(Some(recall)));
        services.in_background(None, move |services| {
            let (lease, recall) = (lease.upgrade(), lock(&recall).take());
            async move {
                let Some(lease) = lease else { return };
                // If this work is restarted, it may have missed a recall.
                if let Some(recall) = recall {
                    recall.await;
                }
                lease.end_keeping(&services);
            }
        });
    }

    /// Ends the keeping. A lease without a holder goes back to the backend.
    fn end_keeping(self: &Arc<Self>, services: &Arc<Services>) {
        let Some(passing) = &self.passing else {
            return;
        };
        passing.keep_no_longer();
        // A shutdown waits for the work below.
        let _under_way = services.attempts.token();
        // If a member holds the lease, it passes it on and does not keep it.
        let effects = passing.cohort.queue().let_go(self);
        passing.cohort.carry_out(services, effects);
    }

    /// The task whose turn it was is done. True: the next task has the lease, or it is kept. False:
    /// the caller gives it back to the backend.
    pub(crate) fn pass(self: &Arc<Self>, services: &Arc<Services>) -> bool {
        let Some(passing) = &self.passing else {
            return false;
        };
        // Reads the clock when first needed, and only once.
        let read = OnceCell::new();
        let now = || *read.get_or_init(clock::now);
        self.limit_turn(services, None);
        self.begin_keeping(passing, services, now);
        let mut effects = passing.cohort.queue().pass(self, now);
        let goes_on = effects.give_back.take().is_none();
        passing.cohort.carry_out(services, effects);
        goes_on
    }

    /// Takes the lease out of the local queue, so that no other member gets it. The next member
    /// asks the backend.
    pub(crate) fn leave(self: &Arc<Self>) {
        let Some(passing) = &self.passing else {
            return;
        };
        let now = clock::now();
        let effects = passing.cohort.queue().remove(self, now);
        // Without services everything has ended, the waiters too.
        if let Some(services) = passing.services.upgrade() {
            passing.cohort.carry_out(&services, effects);
        }
    }

    /// The turn that `held_locks` shows. While the lease is kept or being handed over, that turn
    /// has no holds.
    pub(crate) fn shown(self: &Arc<Self>, services: &Services) -> Arc<Turn> {
        let last_turn = services.settings.cohort.last_turn();
        let granted_at = self.passing.as_ref().map(|own| own.until.before(last_turn));
        self.current_turn(granted_at.unwrap_or_else(clock::now))
    }
}
