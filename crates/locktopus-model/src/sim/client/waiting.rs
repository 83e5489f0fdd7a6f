//! The pauses between two attempts: how long they are, and what ends them.

use super::acquisition::Obstacle;
use super::hub::Hint;
use super::task::Phase;
use super::{How, Process};
use crate::sim::rules::{Flaw, LONGEST_POLL, MS, Micros, SHORTEST_POLL, Strategy};

impl Process {
    pub(super) fn subscription_done(&mut self, task: usize, confirmed: bool) {
        let now = self.now;
        let time_left = self.tasks[task]
            .acquisition
            .as_ref()
            .is_some_and(|it| it.time_left(now));
        if !confirmed {
            self.leave(task);
        }
        if !time_left {
            self.gave_up(task);
        } else if confirmed && !self.rules.is(Flaw::NoLookAfterSubscribing) {
            self.attempt(task);
        } else {
            self.pause(task);
        }
    }

    pub(super) fn pause(&mut self, task: usize) {
        let pause = self.next_pause(task);
        let Some(acquisition) = &self.tasks[task].acquisition else {
            return;
        };
        let until = self.now + pause;
        let until = acquisition.limit.map_or(until, |limit| limit.min(until));
        // The owner may be a new one since the last time.
        let owner = acquisition.owner.clone();
        self.hub.claim(task, &owner);
        self.enter_until(task, Phase::Pausing, until);
        if let Some(hint) = self.hub.take(task) {
            self.hinted(task, hint);
        }
    }

    /// The pause is over, by time or by a hint.
    pub(super) fn pause_over(&mut self, task: usize) {
        match self.hub.take(task) {
            Some(hint) => self.hinted(task, hint),
            None => self.look(task),
        }
    }

    fn hinted(&mut self, task: usize, hint: Hint) {
        if let Hint::Granted { token } = hint
            && let Some(until) = self.believable(task, token)
        {
            return self.take(task, until, token, How::Pushed);
        }
        self.look(task);
    }

    /// Until when a pushed grant may be believed, if at all: its token must be newer than the last answer to this
    /// owner, and validity counts from when that answer's attempt was sent, which was before the grant.
    fn believable(&self, task: usize, token: i64) -> Option<Micros> {
        let acquisition = self.tasks[task].acquisition.as_ref()?;
        if acquisition.strategy != (Strategy::HandOff { confirm: false }) {
            return None;
        }
        let place = acquisition.place?;
        if token <= place.fence && !self.rules.is(Flaw::OldPush) {
            return None;
        }
        let lease = self.rules.lease;
        let needed = self.rules.least_validity(acquisition.renewed);
        let from = if self.rules.is(Flaw::ValidFromPush) {
            self.now
        } else {
            place.sent
        };
        let until = from + self.rules.validity(lease);
        (until - self.now >= needed).then_some(until)
    }

    fn look(&mut self, task: usize) {
        let now = self.now;
        if self.tasks[task]
            .acquisition
            .as_ref()
            .is_some_and(|it| it.time_left(now))
        {
            self.attempt(task);
        } else {
            self.gave_up(task);
        }
    }

    fn next_pause(&mut self, task: usize) -> Micros {
        let listening = self.hub.listens(task);
        let Some(acquisition) = &self.tasks[task].acquisition else {
            return 0;
        };
        let pauses = acquisition.pauses;
        let (obstacle, strategy) = (acquisition.obstacle, acquisition.strategy);
        let beat = self.rules.beat(strategy);
        let pause = if listening && strategy != Strategy::Poll {
            self.jitter(beat * 3 / 4, beat * 5 / 4)
        } else {
            if let Some(acquisition) = &mut self.tasks[task].acquisition {
                acquisition.pauses += 1;
            }
            let top = (SHORTEST_POLL << pauses.min(16)).min(LONGEST_POLL);
            self.jitter(SHORTEST_POLL / 2, top)
        };
        let soon = self.jitter(MS, 5 * MS);
        match obstacle {
            Obstacle::Queued { .. } if self.rules.is(Flaw::NoHeartbeat) => self.rules.lease * 100,
            // A place in the queue is lost without heartbeats. Others are ahead: when the lease in the way ends,
            // it is their turn to notice.
            Obstacle::Queued { ahead: 1.., .. }
            | Obstacle::Queued {
                remaining: None, ..
            } => pause.min(beat * 5 / 4),
            Obstacle::Queued {
                remaining: Some(remaining),
                ..
            } => pause.min(beat * 5 / 4).min(remaining + soon),
            // The holder's lease may be all that stands in the way; the jitter keeps a crowd apart.
            Obstacle::Held(Some(remaining)) => pause.min(remaining + soon),
            Obstacle::Held(None) => pause,
            Obstacle::Failed => {
                let retry = self.jitter(20 * MS, 200 * MS);
                pause.min(retry)
            }
        }
    }
}
