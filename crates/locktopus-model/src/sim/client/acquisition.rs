//! What one acquisition knows of itself.

use crate::sim::ask::{Mode, Owner};
use crate::sim::rules::{MS, Micros, Rules, Strategy};

/// How long an acquisition waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Not,
    AtMost(Micros),
    Forever,
}

/// The time that the first attempt has for its answer, however short the wait limit.
const FIRST_ATTEMPT: Micros = 50 * MS;

/// One acquisition under way.
#[derive(Debug, Clone)]
pub(super) struct Acquisition {
    pub(super) owner: Owner,
    pub(super) mode: Mode,
    pub(super) permits: i64,
    pub(super) strategy: Strategy,
    pub(super) renewed: bool,
    pub(super) wait: Wait,
    pub(super) started: Micros,
    pub(super) limit: Option<Micros>,
    pub(super) deadline: Micros,
    pub(super) begun: Micros,
    /// An attempt was sent whose outcome is not known to be nothing.
    pub(super) unsettled: bool,
    pub(super) in_flight: bool,
    pub(super) late_attempt: bool,
    /// The last attempt asked to be told when others want the lock, and what it is granted no earlier one was.
    pub(super) recall: bool,
    pub(super) place: Option<Place>,
    pub(super) failing_since: Option<Micros>,
    pub(super) pauses: u32,
    pub(super) obstacle: Obstacle,
}

/// A confirmed place in the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) sent: Micros,
    pub(super) fence: i64,
}

/// What is in the way.
#[derive(Debug, Clone, Copy)]
pub(super) enum Obstacle {
    Held(Option<Micros>),
    Queued {
        remaining: Option<Micros>,
        ahead: i64,
    },
    Failed,
}

impl Acquisition {
    pub(super) fn attempt_deadline(&self, now: Micros, call_timeout: Micros) -> Micros {
        let deadline = now + call_timeout;
        match self.limit {
            Some(limit) if limit > self.started => {
                deadline.min(limit.max(self.started + FIRST_ATTEMPT))
            }
            _ => deadline,
        }
    }

    pub(super) fn time_left(&self, now: Micros) -> bool {
        self.limit.is_none_or(|limit| now < limit)
    }

    pub(super) fn listens(&self) -> bool {
        self.wait != Wait::Not && self.strategy != Strategy::Poll
    }

    pub(super) fn queues(&self, rules: &Rules) -> bool {
        self.wait != Wait::Not && rules.queues(self.strategy)
    }

    /// Whether an attempt may still arrive.
    pub(super) fn may_arrive_late(&self) -> bool {
        self.in_flight || self.late_attempt
    }
}
