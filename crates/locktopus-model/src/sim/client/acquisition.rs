//! The loop that takes locks: attempt, wait, attempt again. Mirrors `acquire.rs` of the core.

use super::hub::Hint;
use super::task::{Phase, Wait};
use super::{Act, Call, How, Process, Purpose};
use crate::sim::ask::{Answer, Ask, Mode, Owner};
use crate::sim::rules::{Flaw, LONGEST_POLL, MS, Micros, Rules, SHORTEST_POLL, Strategy};

/// The time that the first attempt has for its answer, however short the wait limit.
const FIRST_ATTEMPT: Micros = 50 * MS;

/// One acquisition under way.
#[derive(Debug)]
pub(super) struct Acquisition {
    owner: Owner,
    mode: Mode,
    permits: i64,
    strategy: Strategy,
    renewed: bool,
    wait: Wait,
    started: Micros,
    limit: Option<Micros>,
    deadline: Micros,
    begun: Micros,
    /// An attempt was sent whose outcome is not known to be nothing.
    unsettled: bool,
    in_flight: bool,
    late_attempt: bool,
    /// The last attempt asked to be told when others want the lock, and what it is granted no earlier one was.
    recall: bool,
    place: Option<Place>,
    failing_since: Option<Micros>,
    pauses: u32,
    obstacle: Obstacle,
}

/// A confirmed place in the queue.
#[derive(Debug, Clone, Copy)]
struct Place {
    sent: Micros,
    fence: i64,
}

/// What is in the way.
#[derive(Debug, Clone, Copy)]
enum Obstacle {
    Held(Option<Micros>),
    Queued {
        remaining: Option<Micros>,
        ahead: i64,
    },
    Failed,
}

impl Acquisition {
    fn attempt_deadline(&self, now: Micros, call_timeout: Micros) -> Micros {
        let deadline = now + call_timeout;
        match self.limit {
            Some(limit) if limit > self.started => {
                deadline.min(limit.max(self.started + FIRST_ATTEMPT))
            }
            _ => deadline,
        }
    }

    fn time_left(&self, now: Micros) -> bool {
        self.limit.is_none_or(|limit| now < limit)
    }

    fn listens(&self) -> bool {
        self.wait != Wait::Not && self.strategy != Strategy::Poll
    }

    fn queues(&self, rules: &Rules) -> bool {
        self.wait != Wait::Not && rules.queues(self.strategy)
    }
}

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

    fn listen(&mut self, task: usize) {
        self.join(task);
        if let Some(acquisition) = &self.tasks[task].acquisition {
            self.hub.claim(task, &acquisition.owner);
        }
    }

    fn attempt(&mut self, task: usize) {
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
    fn take(&mut self, task: usize, until: Micros, token: i64, how: How) {
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

    fn pause(&mut self, task: usize) {
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

    fn give_up_owner(&mut self, task: usize) {
        let owner = self.new_owner();
        let Some(acquisition) = &mut self.tasks[task].acquisition else {
            return;
        };
        let old = std::mem::replace(&mut acquisition.owner, owner);
        let (mode, permits) = (acquisition.mode, acquisition.permits);
        let (late, place) = (
            late_attempt(acquisition),
            self.rules.place(acquisition.strategy),
        );
        acquisition.unsettled = false;
        acquisition.place = None;
        acquisition.late_attempt = false;
        self.reap_attempt(old, mode, permits, late, place);
    }

    /// Leaves an acquisition at any point, and gives back whatever it may have taken.
    pub(super) fn drop_acquisition(&mut self, task: usize) {
        self.leave(task);
        let Some(acquisition) = self.tasks[task].acquisition.take() else {
            return;
        };
        if acquisition.unsettled || acquisition.late_attempt {
            let late = late_attempt(&acquisition);
            let Acquisition {
                owner,
                mode,
                permits,
                strategy,
                ..
            } = acquisition;
            self.reap_attempt(owner, mode, permits, late, self.rules.place(strategy));
        }
        self.calls
            .retain(|_, call| !matches!(call.purpose, Purpose::Attempt(it) if it == task));
    }

    fn reap_attempt(&mut self, owner: Owner, mode: Mode, permits: i64, late: bool, place: Micros) {
        self.spare_owner = Some(owner.clone());
        self.acts.push(Act::GaveUp {
            owner: owner.clone(),
        });
        if !self.rules.is(Flaw::NeverCancels) {
            let until = self.now + self.rules.lease + place + self.rules.call_timeout;
            self.owe(owner, mode, permits, until, late);
        }
    }
}

fn late_attempt(acquisition: &Acquisition) -> bool {
    acquisition.in_flight || acquisition.late_attempt
}
