//! The loop that takes locks: attempt, wait, attempt again. Mirrors the one of the core.

use super::acquisition::{Acquisition, Obstacle, Place, Wait};
use super::task::Phase;
use super::{Act, Call, How, Process, Purpose};
use crate::sim::ask::{Answer, Ask};
use crate::sim::rules::{Flaw, MS, Micros};

impl Process {
    pub(super) fn begin_acquisition(&mut self, task: usize) {
        let wait = self.habits.wait(&mut self.rng);
        let limit = match wait {
            Wait::Not => Some(self.now),
            Wait::AtMost(limit) => Some(self.now + limit),
            Wait::Forever => None,
        };
        let strategy = *self.rng.pick(&self.habits.strategies);
        let acquisition = Acquisition {
            owner: self.new_owner(),
            mode: self.rules.draw_mode(&mut self.rng),
            permits: self.rng.between(1, self.rules.total),
            strategy,
            renewed: !self.rng.permille(self.habits.fixed),
            wait,
            started: self.now,
            limit,
            deadline: 0,
            begun: 0,
            unsettled: false,
            in_flight: false,
            late_attempt: false,
            recall: false,
            place: None,
            failing_since: None,
            pauses: 0,
            obstacle: Obstacle::Failed,
        };
        if let Some(kept) = self.kept {
            if self.take_kept(task, kept, acquisition.renewed) {
                return;
            }
            // It is in the way.
            self.end_keeping(kept);
        }
        let listens = acquisition.listens();
        let waits = acquisition.wait != Wait::Not;
        self.tasks[task].acquisition = Some(acquisition);
        if self.rules.keep > 0 && (waits || self.hub.is_confirmed()) {
            // Whoever is to be told must listen before it can be.
            self.listen(task);
            return if self.confirm() {
                self.attempt(task);
            } else {
                self.enter(task, Phase::Subscribing);
            };
        }
        // If this process listens already, a grant may come right after the answer to the first attempt.
        if listens && self.hub.is_confirmed() {
            self.listen(task);
        }
        self.attempt(task);
    }

    pub(super) fn listen(&mut self, task: usize) {
        self.join(task);
        if let Some(acquisition) = &self.tasks[task].acquisition {
            self.hub.claim(task, &acquisition.owner);
        }
    }

    pub(super) fn attempt(&mut self, task: usize) {
        let Some(acquisition) = &mut self.tasks[task].acquisition else {
            return;
        };
        acquisition.begun = self.now;
        acquisition.deadline = acquisition.attempt_deadline(self.now, self.rules.call_timeout);
        self.send_attempt(task);
    }

    fn send_attempt(&mut self, task: usize) {
        let listens = self.hub.listens(task) && self.hub.is_confirmed();
        let Some(acquisition) = &mut self.tasks[task].acquisition else {
            return;
        };
        acquisition.recall = self.rules.keep > 0
            && listens
            && acquisition.place.is_none()
            && !acquisition.late_attempt;
        let recall = acquisition.recall;
        let first = listens
            && !acquisition.unsettled
            && acquisition.place.is_none()
            && !acquisition.late_attempt;
        acquisition.unsettled = true;
        acquisition.in_flight = true;
        let deadline = acquisition.deadline;
        let (owner, mode, permits) = (
            acquisition.owner.clone(),
            acquisition.mode,
            acquisition.permits,
        );
        let ask = Ask::Acquire {
            owner,
            mode,
            permits,
            lease_ms: self.rules.lease / MS,
            place_ms: acquisition
                .queues(&self.rules)
                .then(|| self.rules.place(acquisition.strategy) / MS),
            tokens: if mode.has_tokens() {
                self.rules.tokens
            } else {
                0
            },
            floor: 0,
            not_after: self.not_after(deadline),
            recall,
            first,
        };
        self.enter(task, Phase::Attempting);
        self.send(Purpose::Attempt(task), ask, deadline);
    }

    pub(super) fn attempt_answered(&mut self, task: usize, call: &Call, answer: Answer) {
        let now = self.now;
        let Some(acquisition) = &mut self.tasks[task].acquisition else {
            return;
        };
        acquisition.in_flight = false;
        let micros = |ms: Option<i64>| ms.map(|ms| ms * MS);
        match answer {
            Answer::Granted { token } => return self.granted(task, call.sent, token),
            Answer::Held { remaining_ms } => {
                acquisition.failing_since = None;
                acquisition.unsettled = false;
                acquisition.place = None;
                acquisition.obstacle = Obstacle::Held(micros(remaining_ms));
            }
            Answer::Queued {
                remaining_ms,
                ahead,
                fence,
            } => {
                // It stays unsettled: a place in the queue must be given up too.
                acquisition.failing_since = None;
                acquisition.place = Some(Place {
                    sent: call.sent,
                    fence,
                });
                let remaining = micros(remaining_ms);
                acquisition.obstacle = Obstacle::Queued { remaining, ahead };
            }
            // The guess of the server's clock was wrong and is now corrected.
            Answer::Late if now < call.deadline => return self.send_attempt(task),
            Answer::Late | Answer::Error(_) => return self.attempt_failed(task, false),
            _ => return self.attempt_failed(task, true),
        }
        self.obstructed(task);
    }

    fn granted(&mut self, task: usize, sent: Micros, token: i64) {
        let from = if self.rules.is(Flaw::ValidFromAnswer) {
            self.now
        } else {
            sent
        };
        let until = from + self.rules.validity(self.rules.lease);
        if until > self.now {
            return self.take(task, until, token, How::Answered);
        }
        // The answer came too late to be of use: give the grant back and start afresh.
        self.give_up_owner(task);
        self.attempt_failed(task, false);
    }

    /// The lock is ours until then.
    pub(super) fn take(&mut self, task: usize, until: Micros, token: i64, how: How) {
        let Some(acquisition) = self.tasks[task].acquisition.take() else {
            return;
        };
        let Acquisition {
            owner,
            mode,
            permits,
            renewed,
            late_attempt,
            recall,
            ..
        } = acquisition;
        let token = if mode.has_tokens() { token } else { 0 };
        self.acts.push(Act::Believe {
            owner: owner.clone(),
            mode,
            permits,
            until: self.believed_until(until),
            tokens: (token, token + self.rules.tokens - 1),
            how,
        });
        let lease = self.watch(owner, mode, permits, renewed, until, late_attempt);
        self.hold(task, lease);
        if recall && how == How::Answered {
            return self.may_be_kept(task, lease, token);
        }
        // Where several can hold at once there may be room for the next waiter too.
        if mode.shares_with(mode) {
            self.leave(task);
        } else {
            self.won(task);
        }
    }

    /// An attempt came to nothing; `maybe` if it may have run.
    pub(super) fn attempt_failed(&mut self, task: usize, maybe: bool) {
        let (now, outage) = (self.now, self.rules.outage);
        let Some(acquisition) = &mut self.tasks[task].acquisition else {
            return;
        };
        acquisition.in_flight = false;
        if maybe {
            acquisition.late_attempt = true;
        } else if acquisition.place.is_none() && !acquisition.late_attempt {
            acquisition.unsettled = false;
        }
        let since = *acquisition.failing_since.get_or_insert(acquisition.begun);
        if acquisition.wait == Wait::Not || now - since >= outage {
            return self.gave_up(task);
        }
        acquisition.obstacle = Obstacle::Failed;
        self.obstructed(task);
    }

    /// What to do after an attempt that did not get the lock.
    fn obstructed(&mut self, task: usize) {
        let now = self.now;
        let Some(acquisition) = &self.tasks[task].acquisition else {
            return;
        };
        let held = !matches!(acquisition.obstacle, Obstacle::Failed);
        if (acquisition.wait == Wait::Not && held) || !acquisition.time_left(now) {
            return self.gave_up(task);
        }
        if acquisition.listens() && held && !self.hub.listens(task) {
            // Subscribe first, then look again: what happens between the two would otherwise be missed.
            self.listen(task);
            if self.confirm() {
                return self.attempt(task);
            }
            return self.enter(task, Phase::Subscribing);
        }
        self.pause(task);
    }
}
