//! What is chosen before a schedule is drawn.

use crate::sim::kind::Kind;
use crate::sim::patch::Patch;
use crate::sim::rules::Flaw;

/// What schedules are about.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The kind of lock.
    pub kind: Kind,
    /// Primaries die and replicas that lag behind take over. Then locks may be lost, so that only what is promised
    /// even then is judged: tokens, and everything that one server does by itself.
    pub failovers: bool,
    /// Others take the name for another kind of lock, and operators lose the number of a semaphore.
    pub strangers: bool,
    /// What clients do wrong.
    pub flaw: Option<Flaw>,
    /// How scripts are changed.
    pub patch: Option<Patch>,
}

impl Config {
    /// Schedules without failovers, of clients and scripts as they are.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            failovers: false,
            strangers: false,
            flaw: None,
            patch: None,
        }
    }

    /// With failovers.
    #[must_use]
    pub fn with_failovers(self) -> Self {
        Self {
            failovers: true,
            ..self
        }
    }

    /// With others who take the name for another kind.
    #[must_use]
    pub fn with_strangers(self) -> Self {
        Self {
            strangers: true,
            ..self
        }
    }

    /// With clients that are wrong in some way.
    #[must_use]
    pub fn with_flaw(self, flaw: Flaw) -> Self {
        Self {
            flaw: Some(flaw),
            ..self
        }
    }

    /// With a changed script.
    #[must_use]
    pub fn with_patch(self, patch: Patch) -> Self {
        Self {
            patch: Some(patch),
            ..self
        }
    }
}
