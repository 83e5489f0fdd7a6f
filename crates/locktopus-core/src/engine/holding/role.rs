//! What was granted, and whose it is: a lease that is not passed on, the core of one that is, or one turn of it.

use std::sync::{Arc, Mutex};

use locktopus_contract::{LockTarget, OwnerId, SafetyMode, TokenRetention};

use crate::engine::holding::grant::Grant;
use crate::engine::holding::lease_in_turns::LeaseInTurns;
use crate::engine::holding::shared_owner::SharedOwner;
use crate::engine::holding::term::Term;

/// The role of a lease when it is passed on inside the process: none, the backend's lease, or one turn.
pub(crate) trait Role: Send + Sync {
    /// What the backend granted.
    fn granted(&self) -> &Granted;

    /// What this is a turn of, if it is one.
    fn lease_in_turns(&self) -> Option<&Arc<dyn LeaseInTurns>> {
        None
    }

    /// What this is the core of, if tasks of this process pass it to each other.
    fn as_core(&self) -> Option<Arc<dyn LeaseInTurns>> {
        None
    }
}

/// What the backend granted, and what became of it.
pub(crate) struct Granted {
    pub(crate) target: LockTarget,
    pub(crate) owner: OwnerId,
    /// How many permits of a semaphore; 1 for locks.
    pub(crate) permits: u32,
    /// Whether the watchdog renews it.
    pub(crate) renewed: bool,
    /// An attempt of this owner got no answer and may still arrive, after the release: look again then.
    pub(crate) late_attempt: bool,
    /// The safety mode of the grant; `None` if it is the default.
    pub(super) safety: Option<Box<SafetyMode>>,
    pub(crate) retention: Option<TokenRetention>,
    pub(super) term: Mutex<Term>,
    /// A writer's id, lent to a reader: noted by both of them.
    pub(super) loan: Mutex<Option<Arc<SharedOwner>>>,
}

/// It is not passed on.
impl Role for Granted {
    fn granted(&self) -> &Granted {
        self
    }
}

/// One task's turn.
pub(super) struct Turn(pub(super) Arc<dyn LeaseInTurns>);

impl Role for Turn {
    fn granted(&self) -> &Granted {
        self.0.granted()
    }

    fn lease_in_turns(&self) -> Option<&Arc<dyn LeaseInTurns>> {
        Some(&self.0)
    }
}

impl Granted {
    pub(crate) fn new(grant: Grant) -> Self {
        let Grant {
            target,
            owner,
            token: _,
            permits,
            turns: _,
            lease,
            renewed,
            hold_until,
            granted_at: _,
            valid_until,
            late_attempt,
            safety,
            retention,
        } = grant;
        Self {
            target,
            owner,
            permits,
            renewed,
            late_attempt,
            safety: (safety != SafetyMode::default()).then(|| Box::new(safety)),
            retention,
            term: Mutex::new(Term {
                lease,
                longest: lease,
                valid_until,
                hold_until,
                linger_until: None,
                token_until: None,
            }),
            loan: Mutex::default(),
        }
    }
}
