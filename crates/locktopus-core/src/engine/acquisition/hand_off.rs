//! The hand-off between tasks of one process: the state of a local queue and its transitions. All of this runs under the
//! mutex of the queue.

use std::collections::VecDeque;
use std::time::Duration;

use super::slot::{Slot, Turn};
use super::sync::Arc;
use super::{AcquisitionState, Asker, BootInstant, Lease, OwnerId, PATIENCE};

#[derive(Debug)]
pub(crate) struct QueueState {
    pub(crate) stage: Stage,
    pub(crate) waiting: VecDeque<Arc<Slot>>,
    /// How many in `waiting` are gone, at most.
    pub(crate) gone: usize,
    /// How many leaders there have been; the last one's number is its proof.
    pub(crate) leaders: u64,
    /// The last lease was passed on as often as it could be, and somebody still waited.
    pub(crate) used_up: bool,
    /// When somebody looks after the local queue next; `None` if nobody does. A check that was sent for later than that is of no
    /// use when it comes: one that was sent since has been here.
    pub(crate) look_at: Option<BootInstant>,
    pub(crate) closed: bool,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Nobody is here.
    Empty,
    /// One member is on its way to the backend.
    Led(Leader),
    /// A waiter was told to lead and has not begun.
    Offered {
        to: Arc<Slot>,
        since: BootInstant,
        state: Option<Box<AcquisitionState>>,
    },
    /// A member holds the lock.
    Held(Arc<Lease>),
    /// Nobody holds the lock and nobody waits; the lease is kept for whoever comes next.
    Kept(Arc<Lease>),
    /// The lock was passed to a waiter that has not taken it.
    Handed {
        to: Arc<Slot>,
        since: BootInstant,
        lease: Arc<Lease>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Leader {
    pub(crate) number: u64,
    /// When it is stalled if it has shown no life until then. `None`: it has shown none yet, and has as long as everybody
    /// who is handed something, from when somebody looks.
    pub(crate) until: Option<BootInstant>,
    /// The owner id under which it asks, and for how long what that is granted may last; `None` before the first time.
    pub(crate) asks: Option<(OwnerId, Duration)>,
}

/// What a member has that it must pass on.
#[derive(Debug)]
pub(crate) enum Baton {
    /// The lease, and since when it is the member's.
    Lease(Arc<Lease>, BootInstant),
    /// The way to the backend, and where the leader before it was.
    Way(Option<Box<AcquisitionState>>),
}

/// Somebody that was handed something. It must be woken, and somebody sent to look whether it comes: whoever handed it
/// over knows that there is nothing to look at before.
#[must_use = "it does not know yet"]
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) slot: Arc<Slot>,
    /// Somebody must be sent to look after the local queue at this instant.
    pub(crate) look_at: Option<BootInstant>,
}

/// What became of a lease that its holder is done with.
#[derive(Debug)]
pub(crate) enum Passed {
    /// The next one has it.
    On(Next),
    /// Nobody waits, and it is kept for whoever comes next.
    Kept,
    /// It stays with the caller, who gives it back to the backend. The next one, if any, leads.
    Over(Option<Next>),
    /// It had been taken out of the local queue before; as `Over`, and nobody is to be woken.
    NotHere,
}

/// What is left to do after something was taken away from a member.
#[derive(Debug, Default)]
pub(crate) struct Leavings {
    /// To be woken.
    pub(crate) wake: Vec<Arc<Slot>>,
    /// A lease that nobody fetched and nobody else wants: to be given back.
    pub(crate) lease: Option<Arc<Lease>>,
    /// What a leader left behind that nobody follows.
    pub(crate) state: Option<Box<AcquisitionState>>,
    /// A leader that showed no life asked under this owner id, for something that may last for so long.
    pub(crate) stalled: Option<(OwnerId, Duration)>,
    /// Somebody must be sent to look after the local queue at this instant.
    pub(crate) look_at: Option<BootInstant>,
}

impl Leavings {
    fn call(&mut self, next: Next) {
        self.wake.push(next.slot);
        self.look_at = next.look_at.or(self.look_at);
    }
}

impl QueueState {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Empty,
            waiting: VecDeque::new(),
            gone: 0,
            leaders: 0,
            used_up: false,
            look_at: None,
            closed: false,
        }
    }

    pub(crate) fn lead(&mut self) -> u64 {
        self.leaders += 1;
        self.stage = Stage::Led(Leader {
            number: self.leaders,
            until: None,
            asks: None,
        });
        self.leaders
    }

    /// Makes sure that somebody looks after the local queue by then. What comes back must be sent.
    pub(crate) fn look_by(&mut self, at: BootInstant) -> Option<BootInstant> {
        if self.look_at.is_some_and(|sooner| sooner <= at) {
            return None;
        }
        self.look_at = Some(at);
        Some(at)
    }

    /// Nobody is here any more.
    pub(crate) fn empty(&mut self) {
        (self.stage, self.gone, self.used_up) = (Stage::Empty, 0, false);
    }

    pub(crate) fn is_led_by(&self, number: u64) -> bool {
        matches!(&self.stage, Stage::Led(leader) if leader.number == number)
    }

    /// Takes what was handed to this slot out of the stage, which the caller must set anew.
    pub(crate) fn take_from(&mut self, slot: &Arc<Slot>) -> Option<Baton> {
        match std::mem::replace(&mut self.stage, Stage::Empty) {
            Stage::Handed { to, since, lease } if Arc::ptr_eq(&to, slot) => {
                Some(Baton::Lease(lease, since))
            }
            Stage::Offered { to, state, .. } if Arc::ptr_eq(&to, slot) => Some(Baton::Way(state)),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Passes on whatever there is.
    pub(crate) fn pass_baton(
        &mut self,
        baton: Baton,
        now: BootInstant,
        may: impl Fn(&Lease, &Asker) -> bool,
        left: &mut Leavings,
    ) {
        let lease = match baton {
            Baton::Lease(lease, _) => lease,
            Baton::Way(state) => {
                match self.offer(state, now) {
                    Ok(next) => left.call(next),
                    Err(state) => left.state = state,
                }
                return;
            }
        };
        match self.pass(&lease, || now, may) {
            Passed::On(next) => left.call(next),
            Passed::Over(next) => {
                if let Some(next) = next {
                    left.call(next);
                }
                left.lease = Some(lease);
            }
            Passed::Kept | Passed::NotHere => {}
        }
    }

    pub(crate) fn pass(
        &mut self,
        lease: &Arc<Lease>,
        now: impl Fn() -> BootInstant,
        may: impl Fn(&Lease, &Asker) -> bool,
    ) -> Passed {
        while let Some(first) = self.waiting.front() {
            if first.is_waiting() && !may(lease, &first.asker) {
                break;
            }
            if let Some(next) = self.waiting.pop_front()
                && next.give(Turn::Lock)
            {
                let since = now();
                self.stage = Stage::Handed {
                    to: Arc::clone(&next),
                    since,
                    lease: Arc::clone(lease),
                };
                return Passed::On(self.handed(next, since));
            }
        }
        if self.waiting.is_empty() && !self.closed && lease.may_keep(&now) {
            self.empty();
            self.stage = Stage::Kept(Arc::clone(lease));
            return Passed::Kept;
        }
        if self.waiting.is_empty() {
            self.empty();
            return Passed::Over(None);
        }
        self.used_up = lease.is_used_up();
        Passed::Over(self.offer(None, now()).ok())
    }

    /// Tells the first waiter to lead.
    pub(crate) fn offer(
        &mut self,
        state: Option<Box<AcquisitionState>>,
        now: BootInstant,
    ) -> Result<Next, Option<Box<AcquisitionState>>> {
        while let Some(next) = self.waiting.pop_front() {
            if next.give(Turn::Lead) {
                self.stage = Stage::Offered {
                    to: Arc::clone(&next),
                    since: now,
                    state,
                };
                return Ok(self.handed(next, now));
            }
        }
        self.empty();
        Err(state)
    }

    fn handed(&mut self, slot: Arc<Slot>, since: BootInstant) -> Next {
        let look_at = self.look_by(since + PATIENCE);
        Next { slot, look_at }
    }

    pub(crate) fn dismiss(&mut self, verdict: impl Fn(&Asker) -> bool) -> Vec<Arc<Slot>> {
        let mut wake = Vec::new();
        self.waiting.retain(|slot| {
            let goes = verdict(&slot.asker) && slot.dismiss();
            if goes {
                wake.push(Arc::clone(slot));
            }
            !goes && slot.is_waiting()
        });
        self.gone = 0;
        wake
    }

    /// When the next check has something to look at.
    pub(crate) fn next_look(&mut self, now: BootInstant) -> Option<BootInstant> {
        let nobody_waits = self.waiting.is_empty();
        match &mut self.stage {
            Stage::Handed { since, .. } | Stage::Offered { since, .. } => Some(*since + PATIENCE),
            _ if nobody_waits => None,
            // It has just begun, or a task that was woken does not run.
            Stage::Led(leader) => Some(*leader.until.get_or_insert(now + PATIENCE)),
            Stage::Held(_) | Stage::Kept(_) | Stage::Empty => Some(now + PATIENCE),
        }
    }
}
