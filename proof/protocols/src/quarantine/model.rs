//! When each action is possible, its effect, and the properties.

use stateright::{Model, Property};

use super::rules::{Bounds, LONGEST, Rules};
use super::server::Answer;
use super::state::{Client, Data, Phase, Seen, Server, State};
use crate::explore::{Notes, Protocol};

/// Quarantine as a model.
#[derive(Debug)]
pub struct Quarantine {
    /// The rules that are kept.
    pub rules: Rules,
    /// The bounds.
    pub bounds: Bounds,
    /// The record of this run.
    pub notes: Notes,
}

/// The possible next actions. Clients are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Sends an attempt, or repeats it under the same owner id if the answer was lost.
    Ask(u8),
    /// A client's request arrives: the script runs. Any time may have passed.
    Run {
        /// The client.
        client: u8,
        /// Whether it arrives at the replaced primary.
        on_old: bool,
        /// The answer arrives.
        answered: bool,
    },
    /// Sends an extension (the watchdog).
    Extend(u8),
    /// Releases the lock; the release may be lost.
    GiveBack {
        /// The client.
        client: u8,
        /// Whether the release arrives.
        arrives: bool,
    },
    /// Reads the history of the primary (`Watched` in `execution/quarantine.rs`).
    Watch(u8),
    /// The replica receives all data of the primary.
    Replicate,
    /// The replica becomes the primary, with its own data.
    Failover,
    /// The replaced primary becomes the primary again, without having been a replica.
    Return,
    /// The primary restarts without data.
    Restart,
    /// Time passes.
    Tick,
}

const ANSWERS: u32 = 9;

impl Action {
    fn kind(self) -> u32 {
        match self {
            Self::Ask(_) => 0,
            Self::Run { .. } => 1,
            Self::Extend(_) => 2,
            Self::GiveBack { .. } => 3,
            Self::Watch(_) => 4,
            Self::Replicate => 5,
            Self::Failover => 6,
            Self::Return => 7,
            Self::Restart => 8,
            Self::Tick => ANSWERS + 7,
        }
    }
}

impl Protocol for Quarantine {
    const KINDS: &'static [&'static str] = &[
        "Ask",
        "Run",
        "Extend",
        "GiveBack",
        "Watch",
        "Replicate",
        "Failover",
        "Return",
        "Restart",
        "granted",
        "granted again",
        "granted by word",
        "held",
        "held back",
        "extended",
        "missing",
        "Tick",
    ];

    fn notes(&self) -> &Notes {
        &self.notes
    }
}

impl Quarantine {
    /// A model of quarantine.
    #[must_use]
    pub fn new(rules: Rules, bounds: Bounds) -> Self {
        let notes = Notes::default();
        Self {
            rules,
            bounds,
            notes,
        }
    }

    fn run(&self, state: &mut State, index: u8, on_old: bool, answered: bool) -> Option<()> {
        let lease = self.rules.lease();
        let epoch = state.epoch;
        let server = match on_old {
            true => state.old.as_mut()?,
            false => &mut state.primary,
        };
        let client = &mut state.clients[usize::from(index)];
        let answer = match client.phase {
            Phase::Asking { seen, .. } => server.acquire(self.rules, index, seen, epoch),
            Phase::Holding { .. } => server.extend(self.rules, index),
            Phase::Idle | Phase::Gone => return None,
        };
        self.notes.occurred(ANSWERS + answer as u32);
        client.phase = match (client.phase, answer) {
            (Phase::Asking { age, .. }, _) if !answered => Phase::Asking { age, seen: None },
            (Phase::Asking { .. }, Answer::Held | Answer::HeldBack) => Phase::Idle,
            // Validity counts from sending; a lease that has already ended is given back.
            (Phase::Asking { age, .. }, _) if age >= lease => {
                server.release(index);
                Phase::Gone
            }
            (Phase::Asking { age, .. }, _) => Phase::Holding {
                left: lease - age,
                extending: None,
            },
            (Phase::Holding { left, .. }, _) if !answered => Phase::Holding {
                left,
                extending: None,
            },
            (Phase::Holding { left, extending }, Answer::Extended) => Phase::Holding {
                left: left.max(lease - extending.unwrap_or(lease).min(lease)),
                extending: None,
            },
            // It learns that it lost the lock.
            _ => Phase::Gone,
        };
        Some(())
    }

    /// Another server, or the same one again, with this data.
    fn replace(&self, state: &mut State, data: Data) {
        state.failovers += 1;
        let old = state.primary;
        let history = match self.rules.ids_are_new {
            true => state.failovers,
            // There are two servers, which alternate.
            false => 1 - old.history.min(1),
        };
        state.primary = Server { history, data };
        state.replica = data;
        state.old = (!self.rules.old_primary_stops).then_some(old);
    }

    fn tick(&self, state: &mut State) {
        let lease = self.rules.lease();
        let others = state.old.iter_mut().chain(&mut state.replaced);
        let others = others.map(|server| &mut server.data);
        let all = [&mut state.primary.data, &mut state.replica];
        all.into_iter().chain(others).for_each(Data::tick);
        let older = |age: &mut u8, most: u8| *age = (*age + 1).min(most);
        for client in &mut state.clients {
            if let Some(seen) = &mut client.seen {
                older(&mut seen.age, LONGEST);
            }
            match &mut client.phase {
                Phase::Asking { age, .. } => older(age, lease),
                Phase::Holding { left, extending } => {
                    *left -= 1;
                    if let Some(age) = extending {
                        older(age, lease);
                    }
                }
                Phase::Idle | Phase::Gone => {}
            }
            if matches!(client.phase, Phase::Holding { left: 0, .. }) {
                client.phase = Phase::Gone;
            }
        }
    }
}

impl Model for Quarantine {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::beginning(self.bounds.clients)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let primary = &state.primary;
        for (index, Client { phase, seen }) in (0..).zip(&state.clients) {
            let sent = matches!(
                phase,
                Phase::Asking { .. }
                    | Phase::Holding {
                        extending: Some(_),
                        ..
                    }
            );
            if sent {
                for (on_old, answered) in
                    [(false, true), (false, false), (true, true), (true, false)]
                {
                    if !on_old || state.old.is_some() {
                        actions.push(Action::Run {
                            client: index,
                            on_old,
                            answered,
                        });
                    }
                }
            }
            match phase {
                Phase::Idle | Phase::Asking { age: 1.., .. } => actions.push(Action::Ask(index)),
                Phase::Holding { extending, .. } => {
                    if extending.is_none() {
                        actions.push(Action::Extend(index));
                    }
                    for arrives in [true, false] {
                        actions.push(Action::GiveBack {
                            client: index,
                            arrives,
                        });
                    }
                }
                Phase::Asking { .. } | Phase::Gone => {}
            }
            let knows = seen
                .is_some_and(|seen| seen.history == primary.history && seen.epoch == state.epoch);
            if !knows && *phase != Phase::Gone {
                actions.push(Action::Watch(index));
            }
        }
        if state.replica != primary.data {
            actions.push(Action::Replicate);
        }
        if state.failovers < self.bounds.failovers {
            actions.extend([Action::Failover, Action::Restart]);
            if state.replaced.is_some() {
                actions.push(Action::Return);
            }
        }
        actions.push(Action::Tick);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        let state = &mut next;
        let at = |index: u8| usize::from(index);
        match action {
            Action::Ask(index) => {
                let client = &mut state.clients[at(index)];
                client.phase = Phase::Asking {
                    age: 0,
                    seen: client.seen,
                };
            }
            Action::Run {
                client,
                on_old,
                answered,
            } => self.run(state, client, on_old, answered)?,
            Action::Extend(index) => {
                if let Phase::Holding { extending, .. } = &mut state.clients[at(index)].phase {
                    *extending = Some(0);
                }
            }
            Action::GiveBack { client, arrives } => {
                state.clients[at(client)].phase = Phase::Gone;
                if arrives {
                    state.primary.release(client);
                }
            }
            Action::Watch(index) => {
                state.clients[at(index)].seen = Some(Seen {
                    history: state.primary.history,
                    epoch: state.epoch,
                    age: 0,
                });
            }
            Action::Replicate => state.replica = state.primary.data,
            Action::Failover => {
                state.epoch += 1;
                state.replaced = Some(state.primary);
                self.replace(state, state.replica);
            }
            Action::Return => {
                let back = state.replaced.replace(state.primary)?;
                state.failovers += 1;
                state.epoch += 1;
                state.old = (!self.rules.old_primary_stops).then_some(state.primary);
                state.replica = back.data;
                state.primary = back;
            }
            Action::Restart => self.replace(state, Data::default()),
            Action::Tick => self.tick(state),
        }
        if state.failovers == self.bounds.failovers {
            // It can have no further effect.
            state.replaced = None;
        }
        for client in &mut state.clients {
            if client.phase == Phase::Gone {
                client.seen = None;
            }
        }
        self.notes.occurred(action.kind());
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(
            "at most one client believes",
            |model: &Self, state: &State| model.notes.holds(state.believers() <= 1),
        )]
    }
}
