//! What a line is made of, and how things move in it. Everything here happens under the line's lock.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::slot::{Slot, Turn};
use super::sync::Arc;
use super::{Asker, OwnerId, Session, Stand};

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) stage: Stage,
    pub(crate) waiting: VecDeque<Arc<Slot>>,
    /// How many in `waiting` are gone, at most.
    pub(crate) gone: usize,
    /// How many leaders there have been; the last one's number is its proof.
    pub(crate) leaders: u64,
    /// A patrol is on its way.
    pub(crate) patrolled: bool,
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
        since: Instant,
        stand: Option<Box<Stand>>,
    },
    /// A member holds the lock.
    Held(Arc<Session>),
    /// Nobody holds the lock and nobody waits; the lease is kept for whoever comes next.
    Kept(Arc<Session>),
    /// The lock was passed to a waiter that has not taken it.
    Handed {
        to: Arc<Slot>,
        since: Instant,
        session: Arc<Session>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Leader {
    pub(crate) number: u64,
    /// When it is stalled if it has shown no life until then, and the owner id under which it asks.
    pub(crate) doing: Option<(Instant, OwnerId)>,
}

/// What a member has that it must pass on.
#[derive(Debug)]
pub(crate) enum Baton {
    /// The lease, and since when it is the member's.
    Lease(Arc<Session>, Instant),
    /// The way to the backend, and where the leader before stood.
    Way(Option<Box<Stand>>),
}

/// What became of a lease that its holder is done with.
#[derive(Debug)]
pub(crate) enum Passed {
    /// The next one has it. Wake it.
    On(Arc<Slot>),
    /// Nobody waits, and it is kept for whoever comes next.
    Kept,
    /// It stays with the caller, who gives it back to the backend. The next one, if any, leads: wake it.
    Over(Option<Arc<Slot>>),
    /// It had been taken out of the line before; as `Over`, and nobody is to be woken.
    NotHere,
}

/// What is left to do after something was taken away from a member.
#[derive(Debug, Default)]
pub(crate) struct Leavings {
    /// To be woken.
    pub(crate) wake: Vec<Arc<Slot>>,
    /// A lease that nobody fetched and nobody else wants: to be given back.
    pub(crate) lease: Option<Arc<Session>>,
    /// What a leader left behind that nobody follows.
    pub(crate) stand: Option<Box<Stand>>,
    /// A leader that showed no life asked under this owner id.
    pub(crate) stalled: Option<OwnerId>,
    /// When to look again.
    pub(crate) next: Option<Instant>,
}

impl Inner {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Empty,
            waiting: VecDeque::new(),
            gone: 0,
            leaders: 0,
            patrolled: false,
            closed: false,
        }
    }

    pub(crate) fn lead(&mut self) -> u64 {
        self.leaders += 1;
        self.stage = Stage::Led(Leader {
            number: self.leaders,
            doing: None,
        });
        self.leaders
    }

    pub(crate) fn is_led_by(&self, number: u64) -> bool {
        matches!(&self.stage, Stage::Led(leader) if leader.number == number)
    }

    /// Takes what was handed to this slot out of the stage, which the caller must set anew.
    pub(crate) fn take_from(&mut self, slot: &Arc<Slot>) -> Option<Baton> {
        match std::mem::replace(&mut self.stage, Stage::Empty) {
            Stage::Handed { to, since, session } if Arc::ptr_eq(&to, slot) => {
                Some(Baton::Lease(session, since))
            }
            Stage::Offered { to, stand, .. } if Arc::ptr_eq(&to, slot) => Some(Baton::Way(stand)),
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
        now: Instant,
        may: impl Fn(&Session, &Asker) -> bool,
        left: &mut Leavings,
    ) {
        let session = match baton {
            Baton::Lease(session, _) => session,
            Baton::Way(stand) => {
                match self.offer(stand, now) {
                    Ok(next) => left.wake.push(next),
                    Err(stand) => left.stand = stand,
                }
                return;
            }
        };
        match self.pass(&session, || now, may) {
            Passed::On(next) => left.wake.push(next),
            Passed::Over(next) => {
                left.wake.extend(next);
                left.lease = Some(session);
            }
            Passed::Kept | Passed::NotHere => {}
        }
    }

    pub(crate) fn pass(
        &mut self,
        session: &Arc<Session>,
        now: impl Fn() -> Instant,
        may: impl Fn(&Session, &Asker) -> bool,
    ) -> Passed {
        while let Some(first) = self.waiting.front() {
            if first.is_waiting() && !may(session, &first.asker) {
                break;
            }
            if let Some(next) = self.waiting.pop_front()
                && next.give(Turn::Lock)
            {
                self.stage = Stage::Handed {
                    to: Arc::clone(&next),
                    since: now(),
                    session: Arc::clone(session),
                };
                return Passed::On(next);
            }
        }
        if self.waiting.is_empty() && !self.closed && session.may_keep(&now) {
            (self.stage, self.gone) = (Stage::Kept(Arc::clone(session)), 0);
            return Passed::Kept;
        }
        if self.waiting.is_empty() {
            (self.stage, self.gone) = (Stage::Empty, 0);
            return Passed::Over(None);
        }
        Passed::Over(self.offer(None, now()).ok())
    }

    /// Tells the first waiter to lead.
    pub(crate) fn offer(
        &mut self,
        stand: Option<Box<Stand>>,
        now: Instant,
    ) -> Result<Arc<Slot>, Option<Box<Stand>>> {
        while let Some(next) = self.waiting.pop_front() {
            if next.give(Turn::Lead) {
                self.stage = Stage::Offered {
                    to: Arc::clone(&next),
                    since: now,
                    stand,
                };
                return Ok(next);
            }
        }
        (self.stage, self.gone) = (Stage::Empty, 0);
        Err(stand)
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

    pub(crate) fn next_patrol(&self, now: Instant, patience: Duration) -> Option<Instant> {
        match &self.stage {
            Stage::Handed { since, .. } | Stage::Offered { since, .. } => Some(*since + patience),
            _ if self.waiting.is_empty() => None,
            Stage::Led(Leader {
                doing: Some((until, _)),
                ..
            }) => Some((*until).max(now + patience)),
            Stage::Led(_) | Stage::Held(_) | Stage::Kept(_) | Stage::Empty => Some(now + patience),
        }
    }
}
