//! When each action is possible, its effect, and the properties.

use stateright::{Model, Property};

use super::action::{Action, KINDS};
use super::rules::{Bounds, CALL, Faults, HEARTBEAT, LEASE, Rules};
use super::state::{Inbox, Message, Phase, State, Waiting, What};
use crate::explore::{Notes, Protocol};

/// How many more ticks a fault excuses if it withholds the lock until a lease has ended and a
/// client has checked.
const LEASE_AND_LOOK: u8 = LEASE + HEARTBEAT + 2;
/// How many more ticks for a message that was not heard, or came through the replica.
const MISSED: u8 = 1;

/// The direct hand-off as a model.
#[derive(Debug)]
pub struct HandOff {
    /// The rules that are kept.
    pub rules: Rules,
    /// The bounds.
    pub bounds: Bounds,
    /// The record of this run.
    pub notes: Notes,
}

impl Protocol for HandOff {
    const KINDS: &'static [&'static str] = KINDS;

    fn notes(&self) -> &Notes {
        &self.notes
    }
}

impl HandOff {
    /// A model of the hand-off.
    #[must_use]
    pub fn new(rules: Rules, bounds: Bounds) -> Self {
        let notes = Notes::default();
        Self {
            rules,
            bounds,
            notes,
        }
    }

    /// Pushed messages wait in the inbox during an attempt (`pause` in `waiting.rs` takes them
    /// afterwards).
    fn arrives(state: &State, message: &Message) -> bool {
        let phase = state.clients[usize::from(message.client)].phase;
        let asking = matches!(
            phase,
            Phase::Waiting(Waiting {
                asking: Some(_),
                ..
            })
        );
        !(asking && matches!(message.what, What::Token { .. }))
    }

    /// Whether something must happen before the next tick: requests and messages take at most a
    /// tick, answers take none, and a pending subscription is made.
    fn is_busy(state: &State) -> bool {
        let due = |message: &Message| {
            let now = message.age > 0 || message.what.answers();
            !message.stuck && now && Self::arrives(state, message)
        };
        let subscribes = |phase| matches!(phase, Phase::Waiting(waiting) if waiting.subscribes && waiting.asking.is_none());
        let mut clients = state.clients.iter();
        state.messages.iter().any(due) || clients.any(|client| subscribes(client.phase))
    }

    /// A message that would be ignored is as good as lost.
    fn forget(state: &mut State) {
        let clients = &mut state.clients;
        for client in clients.iter_mut() {
            if client.phase == Phase::Gone {
                client.inbox = Inbox::Nowhere;
            }
        }
        state.messages.retain(|message| {
            let client = &clients[usize::from(message.client)];
            let waits = matches!(client.phase, Phase::Waiting(_));
            match message.what {
                What::Attempt { .. } | What::Release { .. } => true,
                What::Released => matches!(client.phase, Phase::Leaving { .. }),
                What::Granted { .. } | What::Queued { .. } | What::TooLate => waits,
                What::Token { via, .. } | What::PassedOver { via } => waits && client.inbox == via,
            }
        });
    }

    /// The immediate actions of each client (`run` in `attempts.rs`, `try_to_give_back` in
    /// `reaper.rs`).
    fn go_on(state: &mut State) {
        for index in 0..state.clients.len() {
            let unanswered = !Self::awaits(state, index);
            let number = u8::try_from(index).unwrap_or(u8::MAX);
            match &mut state.clients[index].phase {
                Phase::Waiting(Waiting {
                    asking: Some(age), ..
                }) if *age >= CALL && unanswered => {
                    state.time_out(number);
                    state.look(number);
                }
                Phase::Waiting(waiting)
                    if waiting.asking.is_none() && !waiting.subscribes && waiting.pause == 0 =>
                {
                    state.look(number);
                }
                Phase::Leaving { pause, age, .. }
                    if *pause == Some(0) || pause.is_none() && *age >= CALL && unanswered =>
                {
                    (*pause, *age) = (None, 0);
                    state.unheard(number);
                    state.send(number, What::Release { heard: true });
                }
                _ => {}
            }
        }
    }

    /// Whether a client's request or its answer is on its way.
    fn awaits(state: &State, index: usize) -> bool {
        state.messages.iter().any(|message| {
            usize::from(message.client) == index && !message.stuck && message.what.is_awaited()
        })
    }

    fn deliver(&self, state: &mut State, at: usize) {
        let message = state.messages.remove(at);
        let client = message.client;
        match message.what {
            What::Attempt { newcomer, heard } => {
                let answer = state.acquire(self.rules, client, newcomer, message.age);
                if heard {
                    state.send(client, answer);
                }
            }
            What::Release { heard } => {
                state.release(self.rules, client);
                if heard {
                    state.send(client, What::Released);
                }
            }
            what => state.hear(self.rules, client, what),
        }
    }

    fn fault(&self, state: &mut State, excused: u8) {
        state.faults += 1;
        self.excuse(state, excused);
    }

    /// How many ticks a lock may be free while a healthy client waits: those of a release, a
    /// message or an attempt, and for each further waiter the time that the one before it may need
    /// to find out that it came too late.
    pub(super) fn most_idle(&self, state: &State) -> u8 {
        2 * (self.bounds.clients - 1) + 1 + state.excused
    }

    fn excuse(&self, state: &mut State, ticks: u8) {
        if self.bounds.waits {
            state.excused += ticks;
        }
    }

    /// A process ends; if `silently`, its connection still seems open.
    fn crash(&self, state: &mut State, index: u8, silently: bool) {
        let asks = |message: &Message| {
            message.client == index && matches!(message.what, What::Attempt { .. })
        };
        let holds = state.server.holder.is_some_and(|hold| hold.owner == index);
        let harmful = silently || holds || state.messages.iter().any(asks);
        self.fault(state, if harmful { LEASE_AND_LOOK } else { 0 });
        let client = &mut state.clients[usize::from(index)];
        client.phase = Phase::Dead;
        if !silently {
            client.inbox = Inbox::Nowhere;
        }
        state.unheard(index);
    }
}

impl Model for HandOff {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::beginning(self.bounds.clients)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let bounds = self.bounds;
        let faulty = |sort| state.faults < bounds.faults && bounds.sort.has(sort);
        for (index, client) in (0..).zip(&state.clients) {
            match client.phase {
                // Waiters are alike, so they start in their order.
                Phase::Idle if state.clients[usize::from(index) - 1].phase == Phase::Idle => {}
                Phase::Idle => {
                    let begin = |listens| Action::Begin {
                        client: index,
                        listens,
                    };
                    actions.extend([begin(true), begin(false)]);
                }
                Phase::Waiting(waiting) => {
                    if waiting.subscribes && waiting.asking.is_none() {
                        actions.push(Action::Subscribe(index));
                        if faulty(Faults::Subscriptions) {
                            actions.push(Action::SubscribeAtReplica(index));
                        }
                    }
                    if bounds.drops {
                        actions.push(Action::Drop(index));
                    }
                    if faulty(Faults::Subscriptions) && client.inbox != Inbox::Nowhere {
                        actions.push(Action::Disconnect(index));
                    }
                }
                Phase::Holding { .. } => actions.push(Action::GiveBack(index)),
                Phase::Leaving { .. } | Phase::Gone | Phase::Dead => {}
            }
            if faulty(Faults::Crashes)
                && matches!(client.phase, Phase::Waiting(_) | Phase::Holding { .. })
            {
                actions.extend([Action::Crash(index), Action::CrashSilently(index)]);
            }
        }
        for (at, message) in state.messages.iter().enumerate() {
            if at > 0 && state.messages[at - 1] == *message {
                continue;
            }
            if Self::arrives(state, message) {
                actions.push(Action::Deliver(at));
            }
            if faulty(Faults::Messages) && !message.stuck {
                actions.push(Action::Lose(at));
                // An attempt that may have run is never repeated.
                if !matches!(message.what, What::Attempt { .. }) && !message.what.answers() {
                    actions.push(Action::Double(at));
                }
            }
        }
        if !Self::is_busy(state) {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        let state = &mut next;
        let at = |index: u8| usize::from(index);
        match action {
            Action::Begin { client, listens } => {
                let client = &mut state.clients[at(client)];
                client.phase = Phase::Waiting(Waiting {
                    asking: None,
                    subscribes: false,
                    pause: 0,
                    place: None,
                    late: false,
                });
                if listens {
                    client.inbox = Inbox::Primary;
                }
            }
            Action::Subscribe(index) => self.subscribe(state, index, Inbox::Primary),
            Action::SubscribeAtReplica(index) => {
                self.fault(state, MISSED);
                self.subscribe(state, index, Inbox::Replica);
            }
            Action::GiveBack(index) => {
                let late = matches!(
                    state.clients[at(index)].phase,
                    Phase::Holding { late: true, .. }
                );
                state.clients[at(index)].leave(self.rules, late);
            }
            Action::Drop(index) => {
                let waiting = state.clients[at(index)].waiting().copied()?;
                let late = waiting.late || waiting.asking.is_some();
                state.clients[at(index)].leave(self.rules, late);
                state.unheard(index);
                // The lock handed to it must come back first, and an attempt on its way may take it
                // once more.
                self.excuse(state, if late { CALL + 5 } else { 2 });
            }
            Action::Deliver(index) => self.deliver(state, index),
            Action::Lose(index) => {
                self.fault(state, LEASE_AND_LOOK);
                let mut message = state.messages.remove(index);
                message.stuck = true;
                state.add(message);
            }
            Action::Double(index) => {
                self.fault(state, LEASE_AND_LOOK);
                let mut message = state.messages[index];
                message.stuck = true;
                if let What::Release { heard } = &mut message.what {
                    *heard = false;
                }
                state.add(message);
            }
            Action::Disconnect(index) => {
                self.fault(state, MISSED);
                let client = &mut state.clients[at(index)];
                client.inbox = Inbox::Nowhere;
                client.waiting()?.subscribes = true;
            }
            Action::Crash(index) => self.crash(state, index, false),
            Action::CrashSilently(index) => self.crash(state, index, true),
            Action::Tick => self.tick(state),
        }
        Self::go_on(state);
        Self::forget(state);
        self.notes.occurred(action.kind());
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "at most one client believes",
                |model: &Self, state: &State| model.notes.holds(state.believers().count() <= 1),
            ),
            Property::always(
                "the server agrees for at least as long",
                |model: &Self, state: &State| {
                    let holds = |(index, left)| {
                        let holder = state.server.holder.as_ref();
                        holder.is_some_and(|hold| hold.owner == index && hold.left >= left)
                    };
                    model.notes.holds(state.believers().all(holds))
                },
            ),
            Property::always("tokens grow", |model: &Self, state: &State| {
                model.notes.holds(!state.went_back)
            }),
            Property::always(
                "a client that left leaves nothing",
                |model: &Self, state: &State| {
                    let gone = |index: u8| state.clients[usize::from(index)].phase == Phase::Gone;
                    let server = &state.server;
                    let held = server.holder.is_some_and(|hold| gone(hold.owner));
                    let queued = server.queue.iter().any(|place| gone(place.owner));
                    model.notes.holds(!held && !queued)
                },
            ),
            Property::always(
                "no client waits for a free lock",
                |model: &Self, state: &State| {
                    model.notes.holds(state.idle <= model.most_idle(state))
                },
            ),
        ]
    }
}

impl HandOff {
    fn subscribe(&self, state: &mut State, index: u8, at: Inbox) {
        let client = &mut state.clients[usize::from(index)];
        client.inbox = at;
        if let Some(waiting) = client.waiting() {
            waiting.subscribes = false;
            if self.rules.look_after_subscribing {
                waiting.pause = 0;
            }
        }
    }
}
