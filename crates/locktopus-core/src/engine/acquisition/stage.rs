//! The types of a cohort's queue: its stage, its waiters, and the results of its transitions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::{AcquisitionState, Asks, BootInstant, Lease, LockError, Reporter, Told};

/// Whose the lease, or the way to the backend, is.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// The cohort has no member.
    #[default]
    Empty,
    /// The member with this number asks the backend, for all.
    Led {
        by: u64,
        /// It counts as stalled if it has shown no life by then. `None`: it has shown none yet. Its
        /// time begins with the next check.
        until: Option<BootInstant>,
        /// What it asks for.
        asks: Option<Asks>,
        /// The backend's last answer.
        told: Option<Box<Told>>,
    },
    /// A member holds the lock.
    Held(Arc<Lease>),
    /// The cohort has no member, and keeps the lease for the next one.
    Kept(Arc<Lease>),
    /// A member handed the baton to a waiter, which has not fetched it.
    Handed {
        to: u64,
        since: BootInstant,
        baton: Baton,
    },
}

/// The thing that one member hands to the next.
#[derive(Debug)]
pub(super) enum Baton {
    Lease(Arc<Lease>),
    /// The way to the backend, and the state of the leader before.
    Way(Option<Box<AcquisitionState>>),
}

/// A member that waits, and what lease it asks for.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) lease: Duration,
    pub(super) renewed: bool,
    pub(super) arrived: Instant,
    /// Takes progress reports, if the request asked for them.
    pub(super) progress: Option<Reporter>,
    pub(super) waker: Option<Waker>,
}

/// The waiters, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// By number. `None` is a gap: that waiter has gone. The first place is never one.
    places: VecDeque<(u64, Option<Box<Waiter>>)>,
    gaps: usize,
}

impl Line {
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

/// The next thing a member does.
#[derive(Debug)]
pub(super) enum Step {
    /// Hold the lock, which has been this member's since then.
    Hold(Arc<Lease>, BootInstant),
    /// Ask the backend, for all.
    Lead {
        /// Go on from where the leader before was.
        state: Option<Box<AcquisitionState>>,
        /// Give this back first: it was kept, and is of no use here.
        kept: Option<Arc<Lease>>,
    },
    /// Do not wait: a member holds the lock.
    SayBusy,
    /// Do not wait: a member asks the backend. Ask beside it.
    AskAlone,
    /// Queue again: the turn was revoked.
    QueueAgain,
    /// Stop, with this error. Without one, there was a shutdown.
    Stop(Option<Box<LockError>>),
}

/// A newcomer.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) number: u64,
    /// `None`: it waits.
    pub(super) step: Option<Step>,
    /// How many waited before it.
    pub(super) ahead: u64,
    pub(super) effects: Effects,
}

/// The rest of a transition, to be carried out after the mutex is released.
#[must_use = "members wait for it"]
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// This waiter has a turn.
    pub(super) wake: Option<Box<Waiter>>,
    /// The wait of these is over.
    pub(super) dismiss: Vec<Waiter>,
    /// No member has this any more.
    pub(super) give_back: Option<Baton>,
    /// A deposed leader asked for this.
    pub(super) stalled: Option<Box<Asks>>,
    /// The watchdog must look at this instant.
    pub(super) look_at: Option<BootInstant>,
    /// The last member has gone.
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

    pub(super) fn looks_at(look_at: Option<BootInstant>) -> Self {
        Self {
            look_at,
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
