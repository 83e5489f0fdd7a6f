//! The client: its attempts, its beliefs, and its releases.

use super::rules::{CALL, HEARTBEAT, LEASE, Rules};
use super::state::{Client, Confirmed, Inbox, Phase, State, Waiting, What};

impl Client {
    pub(super) fn waiting(&mut self) -> Option<&mut Waiting> {
        match &mut self.phase {
            Phase::Waiting(waiting) => Some(waiting),
            _ => None,
        }
    }

    /// It gives up, and cleans up what an attempt may have taken (`give_up` in `state.rs`,
    /// `reaper.rs`).
    pub(super) fn leave(&mut self, rules: Rules, again: bool) {
        self.phase = Phase::Leaving {
            again: again && rules.release_twice,
            pause: Some(0),
            age: 0,
        };
        // Its process still listens and counts as a listener, but ignores what it hears.
    }
}

impl Waiting {
    /// It polls after a heartbeat, if the rules say so.
    fn pauses(&mut self, rules: Rules) {
        self.pause = if rules.heartbeats { HEARTBEAT } else { u8::MAX };
    }
}

impl State {
    /// `attempt` in `attempts.rs`.
    pub(super) fn look(&mut self, index: u8) {
        let client = &mut self.clients[usize::from(index)];
        let listens = client.inbox != Inbox::Nowhere;
        let Some(waiting) = client.waiting() else {
            return;
        };
        let newcomer = waiting.place.is_none() && !waiting.late && listens;
        waiting.asking = Some(0);
        let heard = true;
        self.send(index, What::Attempt { newcomer, heard });
    }

    /// The waiter gives up on the answer (`failed` in `attempts.rs`).
    pub(super) fn time_out(&mut self, index: u8) {
        if let Some(waiting) = self.clients[usize::from(index)].waiting() {
            (waiting.asking, waiting.late, waiting.pause) = (None, true, 0);
        }
        self.unheard(index);
    }

    /// Requests and answers still arrive, but the client does not hear them.
    pub(super) fn unheard(&mut self, index: u8) {
        let mut messages = std::mem::take(&mut self.messages);
        messages.retain_mut(|message| {
            if message.client != index {
                return true;
            }
            if let What::Attempt { heard, .. } | What::Release { heard } = &mut message.what {
                *heard = false;
            }
            !message.what.answers()
        });
        messages.sort_unstable();
        self.messages = messages;
    }

    /// A message for a client.
    pub(super) fn hear(&mut self, rules: Rules, index: u8, what: What) {
        let client = &mut self.clients[usize::from(index)];
        match what {
            What::Granted { token } => {
                let Some(waiting) = client.waiting() else {
                    return;
                };
                let (sent, late) = (waiting.asking.unwrap_or(LEASE), waiting.late);
                self.believe_from(rules, index, (sent, token, late));
            }
            What::Queued { fence } => {
                let listens = client.inbox != Inbox::Nowhere;
                let Some(waiting) = client.waiting() else {
                    return;
                };
                let age = waiting.asking.take().unwrap_or(LEASE);
                waiting.place = Some(Confirmed { age, fence });
                waiting.pauses(rules);
                // Subscribe, then try again.
                waiting.subscribes = !listens;
            }
            What::TooLate => {
                if let Some(waiting) = client.waiting() {
                    (waiting.asking, waiting.pause) = (None, 0);
                }
            }
            What::Token { token, via } if client.inbox == via => {
                let Some(waiting) = client.waiting() else {
                    return;
                };
                let fence = |place: &Confirmed| !rules.token_above_fence || token > place.fence;
                let late = waiting.late;
                match waiting.place.filter(fence) {
                    // Half of a renewed lease must be left (`least_validity` in `plan.rs`).
                    Some(place) if (LEASE - place.age.min(LEASE)) * 2 >= LEASE => {
                        self.believe_from(rules, index, (place.age, token, late));
                    }
                    _ => waiting.pause = 0,
                }
            }
            What::PassedOver { via } if client.inbox == via => {
                if let Some(waiting) = client.waiting() {
                    (waiting.subscribes, waiting.pause) = (true, 0);
                }
                // The client drops that subscription and makes another one
                // (`misplaced_subscriptions.rs`).
                client.inbox = Inbox::Nowhere;
            }
            What::Released => {
                if let Phase::Leaving {
                    again, pause: None, ..
                } = client.phase
                {
                    client.phase = match again {
                        true => Phase::Leaving {
                            again: false,
                            pause: Some(CALL + 1),
                            age: 0,
                        },
                        false => Phase::Gone,
                    };
                }
            }
            _ => {}
        }
    }

    /// `take` in `granted.rs`, for an attempt that was sent `age` ago. If that is too long ago, the
    /// client gives the lock back.
    fn believe_from(&mut self, rules: Rules, index: u8, (age, token, late): (u8, u8, bool)) {
        let age = if rules.validity_from_sending { age } else { 0 };
        let client = &mut self.clients[usize::from(index)];
        if age >= LEASE {
            client.leave(rules, late);
            return;
        }
        client.phase = Phase::Holding { age, late };
        self.went_back |= token <= self.highest;
        self.highest = self.highest.max(token);
        self.idle = 0;
        self.unheard(index);
    }
}
