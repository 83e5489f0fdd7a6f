//! The queue of one lock in one process: the member that asks the backend, the holder, the waiters.
//!
//! This is state without a clock, a lock or a task. A transition with remaining work returns
//! [`Effects`]. `Cohort::carry_out` does that work after the mutex is released.
//!
//! Each arrival gets a number. A member's state is where the queue has its number:
//!
//! ```text
//!   arrives ──► waits ──► handed the lease ──► holds
//!      │          │       handed the lead ───► leads ──► holds
//!      │          │              └─► revoked: not fetched in time, it queues again
//!      │          └─► dropped, dismissed, shut down
//!      └─► leads, or holds a kept lease
//! ```
//!
//! The lease, or the lead, belongs to one member at a time. The stage says which.
//! Only that member changes the stage, with three exceptions: its lease is lost, its turn is
//! revoked, or it leads, shows no life and is deposed. A kept lease belongs to the queue until the
//! next member comes or its time is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use super::stage::{Arrival, Baton, Effects, Stage, Step, Waiter, Waiters};
use super::{AcquisitionState, BackendLease, BootInstant, Cleanup, FETCH_TIMEOUT, LockError};

/// The members of one cohort: the one that leads or holds, and the waiters.
#[derive(Debug, Default)]
pub(super) struct CohortQueue {
    pub(super) stage: Stage,
    pub(super) waiting: Waiters,
    /// Members whose wait has ended with an error, until they fetch it.
    #[expect(
        clippy::box_collection,
        reason = "that is rare, and every held lock would need room for it"
    )]
    dismissed: Option<Box<BTreeMap<u64, LockError>>>,
    /// The number of the latest arrival.
    arrivals: u64,
    /// When the watchdog checks next; `None` if no check is needed. A check scheduled for later
    /// finds nothing to do, because another came first.
    check_at: Option<BootInstant>,
    /// The last lease was passed on as often as possible, and others still waited.
    used_up: bool,
    /// A waiter that wants progress reports has been here.
    pub(super) watched: bool,
    closed: bool,
}

impl CohortQueue {
    /// A member arrives. Only one that `waits` joins the queue behind others.
    pub(super) fn arrive(
        &mut self,
        waiter: impl FnOnce() -> Waiter,
        waits: bool,
        now: impl Fn() -> BootInstant,
    ) -> Arrival {
        self.arrivals += 1;
        let (number, ahead) = (self.arrivals, self.waiting.len() as u64);
        let mut check_at = None;
        let step = match &self.stage {
            _ if self.closed => Some(Step::Stop(None)),
            Stage::Empty => Some(self.lead(number, None, None)),
            Stage::Kept(lease) => {
                let (lease, now) = (Arc::clone(lease), now());
                if lease.may_serve(&waiter(), now) {
                    self.stage = Stage::Held(Arc::clone(&lease));
                    Some(Step::Hold(lease, now))
                } else {
                    Some(self.lead(number, None, Some(lease)))
                }
            }
            _ if !waits && self.in_use() => Some(Step::SayBusy),
            _ if !waits => Some(Step::AskAlone),
            stage => {
                // A scheduled check is early enough: each hand-off schedules one, and so does a
                // leader when it says how long it takes. A silent leader needs one from now on.
                let silent = matches!(stage, Stage::Led { until: None, .. });
                let waiter = waiter();
                self.watched |= waiter.progress.is_some();
                self.waiting.push(number, waiter);
                if silent || self.check_at.is_none() {
                    check_at = self.check_by(now() + FETCH_TIMEOUT);
                }
                None
            }
        };
        Arrival {
            number,
            step,
            ahead,
            effects: Effects::checks_at(check_at),
        }
    }

    /// A member polls its wait. `None`: it is not over, and `waker` is woken when it is. The caller
    /// drops the old waker, now in `waker`, outside the mutex.
    pub(super) fn poll(&mut self, number: u64, waker: &mut Option<Waker>) -> Option<Step> {
        if let Some(waiter) = self.waiting.get_mut(number) {
            std::mem::swap(&mut waiter.waker, waker);
            return None;
        }
        Some(match self.take_handed(number) {
            Some((Baton::Lease(lease), since)) if lease.is_active() => {
                self.stage = Stage::Held(Arc::clone(&lease));
                Step::Hold(lease, since)
            }
            Some((Baton::Lease(_), _)) => self.lead(number, None, None),
            Some((Baton::Lead(state), _)) => self.lead(number, state, None),
            None => match self.verdict(number) {
                None if !self.closed => Step::QueueAgain,
                verdict => Step::Stop(verdict.map(Box::new)),
            },
        })
    }

    /// A waiter leaves. `None`: it no longer waits, and must [`leave`](Self::leave).
    pub(super) fn withdraw(&mut self, number: u64) -> Option<Box<Waiter>> {
        self.waiting.remove(number)
    }

    /// A member that does not wait leaves. A leader leaves `state` at the backend.
    pub(super) fn leave(
        &mut self,
        number: u64,
        state: Option<Box<AcquisitionState>>,
        now: BootInstant,
    ) -> Effects {
        self.verdict(number);
        if self.is_led_by(number) {
            return self.hand(Baton::Lead(state), || now);
        }
        match self.take_handed(number) {
            Some((baton, _)) => self.pass_on(baton, now),
            None => Effects::gives_back(Baton::Lead(state)),
        }
    }

    /// The leader is alive and will report again by `until`. `None`: it was deposed.
    pub(super) fn leader_lives(
        &mut self,
        number: u64,
        lives_until: BootInstant,
        leader_cleanup: Cleanup,
    ) -> Option<Effects> {
        match &mut self.stage {
            Stage::Led {
                by, until, cleanup, ..
            } if *by == number => {
                (*until, *cleanup) = (Some(lives_until), Some(leader_cleanup));
            }
            _ => return None,
        }
        // Without waiters no check is needed. A short step may follow a long one; then the
        // scheduled check covers the end of the long one.
        let check_at = self.check_at.and_then(|_| self.check_by(lives_until));
        Some(Effects::checks_at(check_at))
    }

    /// The leader got the lease and holds the lock. False: it was deposed, and must give the lease
    /// back.
    pub(super) fn won(&mut self, number: u64, lease: &Arc<BackendLease>) -> bool {
        let won = self.is_led_by(number) && lease.is_active();
        if won {
            self.stage = Stage::Held(Arc::clone(lease));
        }
        won
    }

    /// The holder is done. If the lease must go back to the backend, the caller does that.
    ///
    /// It reads the clock only if a member waits or the lease may be kept.
    pub(super) fn pass(
        &mut self,
        lease: &Arc<BackendLease>,
        now: impl Fn() -> BootInstant,
    ) -> Effects {
        let lease = Arc::clone(lease);
        if matches!(&self.stage, Stage::Held(held) if Arc::ptr_eq(held, &lease)) {
            return self.pass_lease(lease, now);
        }
        // It left the queue earlier.
        Effects::gives_back(Baton::Lease(lease))
    }

    /// The lease is lost or leaves the queue, so no member gets it. A waiter that was already
    /// handed the lease finds it ended.
    pub(super) fn remove(&mut self, lease: &Arc<BackendLease>, now: BootInstant) -> Effects {
        match &self.stage {
            Stage::Held(held) | Stage::Kept(held) if Arc::ptr_eq(held, lease) => {
                self.hand(Baton::Lead(None), || now)
            }
            _ => Effects::default(),
        }
    }

    /// Gives back the lease if it is kept. Otherwise a member has or had it.
    pub(super) fn let_go(&mut self, lease: &Arc<BackendLease>) -> Effects {
        match &self.stage {
            Stage::Kept(kept) if Arc::ptr_eq(kept, lease) => {
                self.empty(Baton::Lease(Arc::clone(lease)))
            }
            _ => Effects::default(),
        }
    }

    /// Checks for a baton not fetched within [`FETCH_TIMEOUT`], and for a silent leader.
    pub(super) fn check(&mut self, now: BootInstant) -> Effects {
        if self.check_at.is_none_or(|at| at > now) {
            return Effects::default(); // another one came before, or comes
        }
        let mut effects = match &mut self.stage {
            Stage::Handed { to, since, .. } if *since + FETCH_TIMEOUT <= now => {
                let to = *to;
                let unfetched = self.take_handed(to);
                unfetched.map_or_else(Effects::default, |(baton, _)| self.pass_on(baton, now))
            }
            Stage::Led {
                until: Some(until),
                cleanup,
                ..
            } if *until <= now => {
                let stalled = cleanup.take();
                Effects {
                    stalled: stalled.map(Box::new),
                    ..self.hand(Baton::Lead(None), || now)
                }
            }
            _ => Effects::default(),
        };
        self.check_at = self.next_check(now);
        effects.check_at = self.check_at;
        effects
    }

    /// Ends the wait of each waiter that gets a verdict.
    pub(super) fn dismiss(&mut self, verdict: impl Fn(&Waiter) -> Option<LockError>) -> Effects {
        let waiting = self.waiting.iter();
        let verdicts: Vec<_> = waiting
            .filter_map(|(number, waiter)| Some((number, verdict(waiter)?)))
            .collect();
        let numbers = verdicts.iter().map(|(number, _)| *number);
        let waiters = numbers.filter_map(|number| self.waiting.remove(number));
        let dismiss = waiters.map(|waiter| *waiter).collect();
        self.dismissed.get_or_insert_default().extend(verdicts);
        Effects::dismisses(dismiss)
    }

    /// Ends every wait and refuses newcomers.
    pub(super) fn close(&mut self) -> Effects {
        self.closed = true;
        let waiting = std::iter::from_fn(|| self.waiting.pop());
        Effects::dismisses(waiting.map(|(_, waiter)| *waiter).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self.stage, Stage::Empty)
    }

    /// Whether a member has the lock, fetched or not.
    pub(super) fn in_use(&self) -> bool {
        matches!(
            self.stage,
            Stage::Held(_)
                | Stage::Handed {
                    baton: Baton::Lease(_),
                    ..
                }
        )
    }

    /// Whether the leader's lease will probably be passed on: others wait, or waited when the last
    /// lease was used up. If two tasks take turns, the other one is still giving that lease back.
    pub(super) fn has_company(&self) -> bool {
        self.used_up || !self.waiting.is_empty()
    }

    fn verdict(&mut self, number: u64) -> Option<LockError> {
        self.dismissed.as_mut()?.remove(&number)
    }

    fn is_led_by(&self, number: u64) -> bool {
        matches!(self.stage, Stage::Led { by, .. } if by == number)
    }

    fn lead(
        &mut self,
        by: u64,
        state: Option<Box<AcquisitionState>>,
        kept: Option<Arc<BackendLease>>,
    ) -> Step {
        self.stage = Stage::Led {
            by,
            until: None,
            cleanup: None,
            answer: None,
        };
        Step::Lead { state, kept }
    }

    /// Takes the baton for this member out of the stage, and the time of the hand-over. The caller
    /// must set the stage.
    fn take_handed(&mut self, number: u64) -> Option<(Baton, BootInstant)> {
        match std::mem::take(&mut self.stage) {
            Stage::Handed { to, since, baton } if to == number => Some((baton, since)),
            other => {
                self.stage = other;
                None
            }
        }
    }

    fn pass_on(&mut self, baton: Baton, now: BootInstant) -> Effects {
        match baton {
            Baton::Lease(lease) => self.pass_lease(lease, || now),
            lead @ Baton::Lead(_) => self.hand(lead, || now),
        }
    }

    /// Hands the lease to the first waiter if it suits; otherwise that waiter leads. Without
    /// waiters the lease may be kept.
    fn pass_lease(&mut self, lease: Arc<BackendLease>, now: impl Fn() -> BootInstant) -> Effects {
        match self.waiting.first() {
            Some(first) if lease.may_serve(first, now()) => self.hand(Baton::Lease(lease), now),
            None if !self.closed && lease.may_keep(&now) => {
                self.stage = Stage::Kept(lease);
                self.used_up = false;
                Effects::default()
            }
            _ => {
                self.used_up = lease.is_used_up();
                Effects {
                    give_back: Some(Baton::Lease(lease)),
                    ..self.hand(Baton::Lead(None), now)
                }
            }
        }
    }

    /// Hands the baton to the first waiter. Without waiters the queue becomes empty.
    fn hand(&mut self, baton: Baton, now: impl Fn() -> BootInstant) -> Effects {
        let Some((to, waiter)) = self.waiting.pop() else {
            return self.empty(baton);
        };
        let since = now();
        self.stage = Stage::Handed { to, since, baton };
        let check_at = self.check_by(since + FETCH_TIMEOUT);
        Effects {
            wake: Some(waiter),
            ..Effects::checks_at(check_at)
        }
    }

    /// The last member has left this baton.
    fn empty(&mut self, left: Baton) -> Effects {
        (self.stage, self.used_up, self.watched) = (Stage::Empty, false, false);
        Effects {
            empty: true,
            ..Effects::gives_back(left)
        }
    }

    /// Makes sure that the watchdog checks by then. The caller schedules the returned time.
    fn check_by(&mut self, at: BootInstant) -> Option<BootInstant> {
        if self.check_at.is_some_and(|sooner| sooner <= at) {
            return None;
        }
        self.check_at = Some(at);
        Some(at)
    }

    /// When the next check has something to do.
    fn next_check(&mut self, now: BootInstant) -> Option<BootInstant> {
        let nobody_waits = self.waiting.is_empty();
        match &mut self.stage {
            Stage::Handed { since, .. } => Some(*since + FETCH_TIMEOUT),
            _ if nobody_waits => None,
            // It has just started, or a task that was woken does not run.
            Stage::Led { until, .. } => Some(*until.get_or_insert(now + FETCH_TIMEOUT)),
            Stage::Held(_) | Stage::Kept(_) | Stage::Empty => Some(now + FETCH_TIMEOUT),
        }
    }
}
