//! The types of a cohort's queue: its stage, its waiters, and the results of its transitions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::{
    AcquisitionState, BackendLease, BootInstant, Cleanup, LeaderAnswer, LockError, ProgressReporter,
};

/// The state of the cohort: which member has the lease or the lead.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// The cohort has no member.
    #[default]
    Empty,
    /// The member with this number asks the backend for all of them.
    Led {
        by: u64,
        /// The time after which a silent leader counts as stalled. `None`: it has shown no life
        /// yet, and its time starts with the next check.
        until: Option<BootInstant>,
        /// What to give back if it stalls.
        cleanup: Option<Cleanup>,
        /// The backend's last answer.
        answer: Option<Box<LeaderAnswer>>,
    },
    /// A member holds the lock.
    Held(Arc<BackendLease>),
    /// The cohort has no member, and keeps the lease for the next one.
    Kept(Arc<BackendLease>),
    /// A member handed the baton to a waiter, which has not fetched it yet.
    Handed {
        to: u64,
        since: BootInstant,
        baton: Baton,
    },
}

/// The thing that one member hands to the next.
#[derive(Debug)]
pub(super) enum Baton {
    Lease(Arc<BackendLease>),
    /// The right to ask the backend, and the previous leader's state.
    Lead(Option<Box<AcquisitionState>>),
}

/// A waiting member, and the lease it wants.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) lease: Duration,
    pub(super) renewed: bool,
    pub(super) arrived: Instant,
    /// Takes progress reports, if the request asked for them.
    pub(super) progress: Option<ProgressReporter>,
    pub(super) waker: Option<Waker>,
}

/// The waiters, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// By number. `None` is a gap: that waiter has left. The first place is never a gap.
    places: VecDeque<(u64, Option<Box<Waiter>>)>,
    gaps: usize,
}

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.gaps
    }

    pub(super) fn first(&self) -> Option<&Waiter> {
        self.places.front()?.1.as_deref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Waiter)> {
        let places = self.places.iter();
        places.filter_map(|(number, waiter)| Some((*number, waiter.as_deref()?)))
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Waiter> {
        self.place(number)?.as_deref_mut()
    }

    pub(super) fn push(&mut self, number: u64, waiter: Waiter) {
        self.places.push_back((number, Some(Box::new(waiter))));
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Box<Waiter>)> {
        let (number, waiter) = self.places.pop_front()?;
        self.close_gaps();
        Some((number, waiter?))
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Box<Waiter>> {
        let waiter = self.place(number)?.take();
        self.gaps += 1;
        self.close_gaps();
        waiter
    }

    fn place(&mut self, number: u64) -> Option<&mut Option<Box<Waiter>>> {
        let at = self.places.binary_search_by_key(&number, |place| place.0);
        let place = self.places.get_mut(at.ok()?)?;
        Some(&mut place.1).filter(|waiter| waiter.is_some())
    }

    /// Removes the gaps at the front, and all of them if they are most of the places.
    fn close_gaps(&mut self) {
        while self.places.front().is_some_and(|place| place.1.is_none()) {
            self.places.pop_front();
            self.gaps -= 1;
        }
        if self.gaps * 2 > self.places.len() {
            self.places.retain(|place| place.1.is_some());
            self.gaps = 0;
        }
    }
}

/// The next step of a member.
#[derive(Debug)]
pub(super) enum Step {
    /// Hold the lock, which this member has had since then.
    Hold(Arc<BackendLease>, BootInstant),
    /// Ask the backend for all members.
    Lead {
        /// Continue from the previous leader's state.
        state: Option<Box<AcquisitionState>>,
        /// Give this back first: it was kept, but does not suit this request.
        kept: Option<Arc<BackendLease>>,
    },
    /// Do not wait: another member holds the lock.
    SayBusy,
    /// Do not wait: another member is asking the backend. Ask separately.
    AskAlone,
    /// Queue again: the turn was revoked.
    QueueAgain,
    /// Stop with this error. Without one, there was a shutdown.
    Stop(Option<Box<LockError>>),
}

/// The outcome of an arrival.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) number: u64,
    /// `None` if it waits.
    pub(super) step: Option<Step>,
    /// How many were waiting before it.
    pub(super) ahead: u64,
    pub(super) effects: Effects,
}

/// The remaining work of a transition, to be done after the mutex is released.
#[must_use = "members wait for it"]
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// This waiter has a turn.
    pub(super) wake: Option<Box<Waiter>>,
    /// The waits of these are over.
    pub(super) dismiss: Vec<Waiter>,
    /// No member has this any longer.
    pub(super) give_back: Option<Baton>,
    /// The possible grants of a deposed leader.
    pub(super) stalled: Option<Box<Cleanup>>,
    /// The watchdog must check at this instant.
    pub(super) check_at: Option<BootInstant>,
    /// The last member has left.
    pub(super) empty: bool,
}

impl Effects {
    pub(super) fn gives_back(baton: Baton) -> Self {
        let give_back = Some(baton);
        Self {
            give_back,
            ..Self::default()
        }
    }

    pub(super) fn checks_at(check_at: Option<BootInstant>) -> Self {
        Self {
            check_at,
            ..Self::default()
        }
    }

    pub(super) fn dismisses(dismiss: Vec<Waiter>) -> Self {
        Self {
            dismiss,
            ..Self::default()
        }
    }
}
