//! The types of a cohort's queue: its stage, its waiters, and the results of its transitions.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::{AcquisitionState, BootInstant, Lease, LockError, OwnerId, Reporter, Told};

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
        /// The owner id of its attempts, and how long the backend may keep what they take.
        asks: Option<(OwnerId, Duration)>,
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
    /// Their wait is over.
    pub(super) wake: Vec<Waiter>,
    /// No member has this any more.
    pub(super) give_back: Option<Baton>,
    /// A deposed leader asked under this owner id, and the backend may keep the result for so long.
    pub(super) stalled: Option<(OwnerId, Duration)>,
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

    pub(super) fn wakes(wake: Vec<Waiter>) -> Self {
        Self {
            wake,
            ..Self::default()
        }
    }
}
