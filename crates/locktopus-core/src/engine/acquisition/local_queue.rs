//! The local queue of one lock in one process: who leads to the backend, who holds, who waits.
//!
//! Something in the local queue belongs to exactly one of its members at any time: the lease, or the way to the backend
//! where there is no lease. The stage says whose it is. Only that member moves the stage, with these exceptions,
//! all of which go through the slot's compare-and-set or look at the stage under the lock: the lease is lost while it is
//! held, a turn is revoked, a leader that shows no life is deposed. A lease that is kept while nobody is there belongs
//! to the local queue itself: to whoever comes first, the next member or the one who gives it back.

use std::time::Duration;

use super::hand_off::{Baton, Leavings, Next, Passed, QueueState, Stage};
use super::slot::Slot;
use super::sync::{Arc, Mutex, lock};
use super::{AcquisitionState, Asker, BootInstant, Lease, OwnerId, PATIENCE};

#[derive(Debug)]
pub(crate) struct LocalQueue {
    inner: Mutex<QueueState>,
}

/// The position of a newcomer in the local queue.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Alone: it leads, with this number. A lease that was kept and is of no use to it stands in its way: it gives that
    /// back first.
    Leads {
        number: u64,
        kept: Option<Arc<Lease>>,
    },
    /// Alone with a lease that was kept: it holds the lock.
    Holds(Arc<Lease>),
    /// Behind others: `ahead` of them wait, or did. `look_at`: somebody must be sent to look after the local queue then.
    Waits {
        slot: Arc<Slot>,
        look_at: Option<BootInstant>,
        ahead: u64,
    },
    /// The local queue is closed.
    Closed,
}

/// What a caller that will not wait finds in the local queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glance {
    /// Nobody holds the lock or asks for it.
    Empty,
    /// A member holds the lock, or was just handed it.
    Held,
    /// Somebody is on the way to the backend.
    Asking,
}

/// It showed no life for too long, and somebody else leads.
#[derive(Debug)]
pub(crate) struct Deposed;

/// What a waiter finds when it takes its turn.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It has held the lock since it was passed on.
    Holds(Arc<Lease>, BootInstant),
    /// It leads, and goes on from where the leader before it stood.
    Leads(u64, Option<Box<AcquisitionState>>),
}

impl LocalQueue {
    pub(crate) fn new() -> Self {
        Self {
            inner: Mutex::new(QueueState::new()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(lock(&self.inner).stage, Stage::Empty)
    }

    /// Comes to the local queue. A lease that is kept goes to the newcomer if `may` allows it to have it.
    pub(crate) fn arrive(
        &self,
        asker: impl FnOnce() -> Asker,
        now: impl Fn() -> BootInstant,
        may: impl Fn(&Lease, &Asker) -> bool,
    ) -> Arrival {
        let mut inner = lock(&self.inner);
        if inner.closed {
            return Arrival::Closed;
        }
        match &inner.stage {
            Stage::Empty => {
                let (number, kept) = (inner.lead(), None);
                return Arrival::Leads { number, kept };
            }
            Stage::Kept(lease) => {
                let lease = Arc::clone(lease);
                if may(&lease, &asker()) {
                    inner.stage = Stage::Held(Arc::clone(&lease));
                    return Arrival::Holds(lease);
                }
                let (number, kept) = (inner.lead(), Some(lease));
                return Arrival::Leads { number, kept };
            }
            Stage::Led(_) | Stage::Offered { .. } | Stage::Held(_) | Stage::Handed { .. } => {}
        }
        let slot = Arc::new(Slot::new(asker()));
        let ahead = inner.waiting.len() as u64;
        inner.waiting.push_back(Arc::clone(&slot));
        // If somebody comes already, it is soon enough: whoever hands something over sees to that, and a leader that
        // says how long it will be silent. One that has said nothing has a check to fear from now on.
        let silent = matches!(&inner.stage, Stage::Led(leader) if leader.until.is_none());
        let look_at = match inner.look_at {
            Some(_) if !silent => None,
            _ => inner.look_by(now() + PATIENCE),
        };
        Arrival::Waits {
            slot,
            look_at,
            ahead,
        }
    }

    /// The lease that a member has, or was just handed.
    pub(crate) fn in_use(&self) -> Option<Arc<Lease>> {
        match &lock(&self.inner).stage {
            Stage::Held(lease) | Stage::Handed { lease, .. } => Some(Arc::clone(lease)),
            Stage::Empty | Stage::Kept(_) | Stage::Led(_) | Stage::Offered { .. } => None,
        }
    }

    /// Whether this leader is still the one.
    pub(crate) fn is_led_by(&self, number: u64) -> bool {
        lock(&self.inner).is_led_by(number)
    }

    /// What `pick` finds in those who wait, and how many wait before each of them.
    pub(crate) fn pick<T>(&self, pick: impl Fn(&Asker) -> Option<T>) -> Vec<(u64, T)> {
        let inner = lock(&self.inner);
        let waiting = inner.waiting.iter().filter(|slot| slot.is_waiting());
        (0..)
            .zip(waiting)
            .filter_map(|(before, slot)| Some((before, pick(&slot.asker)?)))
            .collect()
    }

    /// Whether the leader's lease will probably be passed on: somebody waits here, or waited for the last one when it was
    /// used up. Where two take turns, the other one is still busy giving that back when the next one begins to lead.
    pub(crate) fn has_company(&self) -> bool {
        let inner = lock(&self.inner);
        inner.used_up || !inner.waiting.is_empty()
    }

    pub(crate) fn glance(&self) -> Glance {
        match lock(&self.inner).stage {
            Stage::Empty | Stage::Kept(_) => Glance::Empty,
            Stage::Held(_) | Stage::Handed { .. } => Glance::Held,
            Stage::Led(_) | Stage::Offered { .. } => Glance::Asking,
        }
    }

    /// Notes that the leader is alive, and will be again by `until`. When somebody must be sent to look, if anybody must;
    /// `Err`: it was deposed.
    pub(crate) fn leader_lives(
        &self,
        number: u64,
        until: BootInstant,
        asks: (&OwnerId, Duration),
    ) -> Result<Option<BootInstant>, Deposed> {
        let mut inner = lock(&self.inner);
        match &mut inner.stage {
            Stage::Led(leader) if leader.number == number => {
                leader.until = Some(until);
                leader.asks = Some((asks.0.clone(), asks.1));
            }
            _ => return Err(Deposed),
        }
        // Nobody looks while nobody waits. A short step may follow a long one, for whose end the check was sent.
        Ok(inner.look_at.and_then(|_| inner.look_by(until)))
    }

    /// The leader has a lease. False: it was deposed, and must give the lease back.
    pub(crate) fn won(&self, number: u64, lease: &Arc<Lease>) -> bool {
        let mut inner = lock(&self.inner);
        let leads = inner.is_led_by(number) && lease.is_active();
        if leads {
            inner.stage = Stage::Held(Arc::clone(lease));
        }
        leads
    }

    /// The leader gives up. The next one goes on from where it stood; without one, the stand comes back.
    pub(crate) fn leader_left(
        &self,
        number: u64,
        state: Option<Box<AcquisitionState>>,
        now: BootInstant,
    ) -> Result<Next, Option<Box<AcquisitionState>>> {
        let mut inner = lock(&self.inner);
        if !inner.is_led_by(number) {
            return Err(state);
        }
        inner.offer(state, now)
    }

    /// A waiter begins what it was handed. To be called once, by whoever took the turn out of the slot.
    pub(crate) fn begin(&self, slot: &Arc<Slot>) -> Option<Begun> {
        let mut inner = lock(&self.inner);
        match inner.take_from(slot)? {
            Baton::Lease(lease, since) if lease.is_active() => {
                inner.stage = Stage::Held(Arc::clone(&lease));
                Some(Begun::Holds(lease, since))
            }
            Baton::Lease(..) => Some(Begun::Leads(inner.lead(), None)),
            Baton::Way(state) => Some(Begun::Leads(inner.lead(), state)),
        }
    }

    /// The holder is done: passes the lease to the first waiter, if `may` allows it to have it. If nobody waits, it may
    /// be kept. The clock is only read if somebody waits or it may be kept.
    pub(crate) fn pass(
        &self,
        lease: &Arc<Lease>,
        now: impl Fn() -> BootInstant,
        may: impl Fn(&Lease, &Asker) -> bool,
    ) -> Passed {
        let mut inner = lock(&self.inner);
        match &inner.stage {
            Stage::Held(held) if Arc::ptr_eq(held, lease) => {}
            _ => return Passed::NotHere,
        }
        inner.pass(lease, now, may)
    }

    /// A waiter goes away with the turn it was handed: passes it on. To be called once, by whoever took the turn
    /// out of the slot. The lease or the state that comes back belongs to the caller.
    pub(crate) fn hand_back(
        &self,
        slot: &Arc<Slot>,
        now: BootInstant,
        may: impl Fn(&Lease, &Asker) -> bool,
    ) -> Leavings {
        let mut inner = lock(&self.inner);
        let mut left = Leavings::default();
        if let Some(baton) = inner.take_from(slot) {
            inner.pass_baton(baton, now, may, &mut left);
        }
        left
    }

    /// A waiter went away that had been handed nothing.
    pub(crate) fn forget_one(&self) {
        let mut inner = lock(&self.inner);
        inner.gone += 1;
        if inner.gone * 2 > inner.waiting.len() {
            inner.waiting.retain(|slot| slot.is_waiting());
            inner.gone = 0;
        }
    }

    /// The lease is not to be passed on any more: it is lost, or leaves the local queue. Whoever has to be woken. If it lies
    /// in a slot it stays there, and whoever takes it out sees that it is over.
    pub(crate) fn remove(&self, lease: &Arc<Lease>, now: BootInstant) -> Option<Next> {
        let mut inner = lock(&self.inner);
        match &inner.stage {
            Stage::Held(held) | Stage::Kept(held) if Arc::ptr_eq(held, lease) => {
                inner.offer(None, now).ok()
            }
            _ => None,
        }
    }

    /// Takes out a lease that is kept: it belongs to the caller. False if somebody else has it, or had it.
    pub(crate) fn let_go(&self, lease: &Arc<Lease>) -> bool {
        let mut inner = lock(&self.inner);
        let kept = matches!(&inner.stage, Stage::Kept(kept) if Arc::ptr_eq(kept, lease));
        if kept {
            inner.empty();
        }
        kept
    }

    /// Looks for turns that nobody fetched for [`PATIENCE`], and for a leader that shows no life.
    pub(crate) fn check_members(
        &self,
        now: BootInstant,
        may: impl Fn(&Lease, &Asker) -> bool,
    ) -> Leavings {
        let mut inner = lock(&self.inner);
        let mut found = Leavings::default();
        if inner.look_at.is_none_or(|at| at > now) {
            return found; // another one came before, or comes
        }
        match &inner.stage {
            Stage::Handed { to, since, .. } | Stage::Offered { to, since, .. }
                if *since + PATIENCE <= now =>
            {
                let to = Arc::clone(to);
                if to.revoke().is_some()
                    && let Some(baton) = inner.take_from(&to)
                {
                    found.wake.push(to);
                    inner.pass_baton(baton, now, may, &mut found);
                }
            }
            Stage::Led(leader) if leader.until.is_some_and(|until| until <= now) => {
                found.stalled = leader.asks.clone();
                inner.pass_baton(Baton::Way(None), now, may, &mut found);
            }
            _ => {}
        }
        inner.look_at = inner.next_look(now);
        found.look_at = inner.look_at;
        found
    }

    /// Ends the wait of those for whom `verdict` says so. To be woken.
    pub(crate) fn dismiss(&self, verdict: impl Fn(&Asker) -> bool) -> Vec<Arc<Slot>> {
        let mut inner = lock(&self.inner);
        inner.dismiss(verdict)
    }

    /// Lets nobody in any more, and ends every wait. To be woken.
    pub(crate) fn close(&self) -> Vec<Arc<Slot>> {
        let mut inner = lock(&self.inner);
        inner.closed = true;
        inner.dismiss(|_| true)
    }
}
