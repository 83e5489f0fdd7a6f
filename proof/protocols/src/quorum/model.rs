//! When each action is possible, its effect, and the properties.

use stateright::{Model, Property};

use super::node::Offset;
use super::rules::{Bounds, DRIFT, LEASE, ROUND, Rules};
use super::state::{Link, Phase, State, Vote};
use crate::explore::{Notes, Protocol};

/// The quorum as a model.
#[derive(Debug)]
pub struct Quorum {
    /// The rules that are kept.
    pub rules: Rules,
    /// The bounds.
    pub bounds: Bounds,
    /// The record of this run.
    pub notes: Notes,
}

/// The possible next actions. Nodes are renumbered by their state after each action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A client asks all nodes (`attempt` in `attempt.rs`).
    Begin(usize),
    /// An attempt arrives at a node.
    Run {
        /// The node.
        node: usize,
        /// The client of the attempt.
        client: usize,
        /// Whether the node's clock is fast and ends the lease early.
        fast: bool,
    },
    /// An abandoned attempt arrives.
    RunStray {
        /// The node.
        node: usize,
        /// The client of the attempt.
        client: usize,
    },
    /// An answer arrives, and the round continues.
    Hear {
        /// The node that answered.
        node: usize,
        /// The client that hears it.
        client: usize,
    },
    /// The future of a round is dropped (`Drop` of `Round`).
    Drop(usize),
    /// The holder releases the lock (`release.rs`).
    GiveBack(usize),
    /// A release arrives at a node.
    Release {
        /// The node.
        node: usize,
        /// The client of the release.
        client: usize,
    },
    /// A server is restarted.
    Restart {
        /// The node.
        node: usize,
        /// `None` if it keeps its data; otherwise the state of its clock, which restarts its
        /// counter.
        lost: Option<Offset>,
        /// Whether its clock is fast and lets it vote early.
        fast: bool,
    },
    /// Time passes.
    Tick,
}

impl Action {
    fn kind(self) -> u32 {
        match self {
            Self::Begin(_) => 0,
            Self::Run { .. } => 1,
            Self::RunStray { .. } => 2,
            Self::Hear { .. } => 3,
            Self::Drop(_) => 4,
            Self::GiveBack(_) => 5,
            Self::Release { .. } => 6,
            Self::Restart { .. } => 7,
            Self::Tick => 8,
        }
    }
}

impl Protocol for Quorum {
    const KINDS: &'static [&'static str] = &[
        "Begin",
        "Run",
        "RunStray",
        "Hear",
        "Drop",
        "GiveBack",
        "Release",
        "Restart",
        "Tick",
        "won",
        "lost",
        "wrote back",
    ];

    fn notes(&self) -> &Notes {
        &self.notes
    }
}

impl Quorum {
    /// A model of the quorum.
    #[must_use]
    pub fn new(rules: Rules, bounds: Bounds) -> Self {
        let notes = Notes::default();
        Self {
            rules,
            bounds,
            notes,
        }
    }

    fn decide(&self, state: &mut State, client: usize) {
        state.decide(self.rules, client, self.bounds.tokens);
        match state.clients[client] {
            Phase::Holding { .. } => self.notes.occurred(9),
            Phase::Leaving { .. } => self.notes.occurred(10),
            Phase::Round { chosen: 1.., .. } => self.notes.occurred(11),
            _ => {}
        }
    }

    /// How long ago a client's attempts were sent.
    fn age(phase: Phase) -> u8 {
        match phase {
            Phase::Round { age, .. } | Phase::Leaving { age } => age,
            Phase::Holding { left } => (LEASE - DRIFT).saturating_sub(left),
            Phase::Idle | Phase::Gone => u8::MAX,
        }
    }

    fn is_late(&self, phase: Phase) -> bool {
        self.rules.refuse_late && Self::age(phase) > ROUND
    }

    fn run(&self, state: &mut State, (node, client): (usize, usize), fast: bool) -> Option<()> {
        let lease = if fast { LEASE - DRIFT } else { LEASE };
        let age = Self::age(state.clients[client]);
        let node = &mut state.nodes[node];
        let Vote::Asked { floor } = node.links[client].vote else {
            return None;
        };
        let (wrote, vote) = (floor > 0, node.votes(self.rules, age));
        node.links[client].vote = if vote {
            let tokens = self.bounds.tokens;
            node.read_clock(self.rules, state.highest);
            let token = node.acquire(u8::try_from(client).ok()?, floor, (tokens, lease));
            Vote::Answered { token, wrote }
        } else {
            Vote::Abstained
        };
        state.clock = state.clock.max(node.token);
        if vote && self.bounds.slow_answers {
            return Some(());
        }
        let link = &mut node.links[client];
        Self::heard(link);
        self.decide(state, client);
        Some(())
    }

    fn heard(link: &mut Link) {
        if let Vote::Answered { token, .. } = link.vote {
            link.vote = token.map_or(Vote::Held, Vote::Granted);
        }
    }

    fn release(&self, state: &mut State, (node, client): (usize, usize)) -> Option<()> {
        let over = Self::age(state.clients[client]) > ROUND;
        let node = &mut state.nodes[node];
        node.release(u8::try_from(client).ok()?);
        let link = &mut node.links[client];
        // `released` in `claim.rs`: repeats it later if an attempt may have come after it.
        link.releasing = link.stray && !over;
        if over && self.rules.refuse_late {
            link.stray = false;
        }
        Some(())
    }

    fn tick(&self, state: &mut State) {
        for node in &mut state.nodes {
            node.hold.take_if(|(_, left)| {
                *left -= 1;
                *left == 0
            });
            node.up = (node.up + 1).min(LEASE);
        }
        for client in 0..state.clients.len() {
            match &mut state.clients[client] {
                Phase::Round { age, .. } => {
                    *age += 1;
                    if *age > ROUND {
                        state.lose(self.rules, client);
                        self.notes.occurred(10);
                    }
                }
                Phase::Leaving { age } => *age = age.saturating_add(1).min(ROUND + 1),
                Phase::Holding { left } => {
                    *left -= 1;
                    if *left == 0 {
                        state.lose(self.rules, client);
                    }
                }
                Phase::Idle | Phase::Gone => {}
            }
        }
    }

    /// Applies automatic changes, and sorts the nodes.
    fn settle(&self, state: &mut State) {
        for client in 0..state.clients.len() {
            let phase = state.clients[client];
            let late = self.is_late(phase);
            for node in &mut state.nodes {
                node.links[client].stray &= !late;
            }
            let clean = state.nodes.iter().all(|node| !node.links[client].releasing);
            if matches!(phase, Phase::Leaving { .. }) && clean {
                state.clients[client] = Phase::Gone;
            }
        }
        state.nodes.sort_unstable();
    }
}

impl Model for Quorum {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::beginning(self.bounds.nodes, self.bounds.clients)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (client, phase) in state.clients.iter().enumerate() {
            match phase {
                // Clients are alike, so they start in their order.
                Phase::Idle if client > 0 && state.clients[client - 1] == Phase::Idle => {}
                Phase::Idle => actions.push(Action::Begin(client)),
                Phase::Round { .. } if self.bounds.drops => actions.push(Action::Drop(client)),
                Phase::Holding { .. } => actions.push(Action::GiveBack(client)),
                _ => {}
            }
        }
        for (node, found) in state.nodes.iter().enumerate() {
            if node > 0 && state.nodes[node - 1] == *found {
                continue;
            }
            for (client, link) in found.links.iter().enumerate() {
                match link.vote {
                    Vote::Asked { .. } => {
                        for fast in [false, true] {
                            actions.push(Action::Run { node, client, fast });
                        }
                    }
                    Vote::Answered { .. } => actions.push(Action::Hear { node, client }),
                    _ => {}
                }
                if link.stray {
                    actions.push(Action::RunStray { node, client });
                }
                if link.releasing {
                    actions.push(Action::Release { node, client });
                }
            }
            if state.restarts < self.bounds.restarts {
                // Without tokens clocks do not matter.
                let clocks: &[Option<Offset>] = match self.bounds.tokens {
                    false => &[None, Some(Offset::None)],
                    true => &[
                        None,
                        Some(Offset::Behind),
                        Some(Offset::None),
                        Some(Offset::Ahead),
                    ],
                };
                for (&lost, fast) in clocks.iter().flat_map(|lost| [(lost, false), (lost, true)]) {
                    actions.push(Action::Restart { node, lost, fast });
                }
            }
        }
        actions.push(Action::Tick);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        let state = &mut next;
        match action {
            Action::Begin(client) => {
                state.clients[client] = Phase::Round { age: 0, chosen: 0 };
                for node in &mut state.nodes {
                    node.links[client].vote = Vote::Asked { floor: 0 };
                }
            }
            Action::Run { node, client, fast } => self.run(state, (node, client), fast)?,
            Action::RunStray { node, client } => {
                let tokens = self.bounds.tokens;
                let node = &mut state.nodes[node];
                node.links[client].stray = false;
                node.read_clock(self.rules, state.highest);
                node.acquire(u8::try_from(client).ok()?, 0, (tokens, LEASE));
                state.clock = state.clock.max(node.token);
            }
            Action::Hear { node, client } => {
                Self::heard(&mut state.nodes[node].links[client]);
                self.decide(state, client);
            }
            Action::Drop(client) | Action::GiveBack(client) => state.lose(self.rules, client),
            Action::Release { node, client } => self.release(state, (node, client))?,
            Action::Restart { node, lost, fast } => {
                state.restarts += 1;
                let node = &mut state.nodes[node];
                node.restart(fast, lost.map(|offset| (offset, state.clock)));
                for client in 0..state.clients.len() {
                    let vote = &mut node.links[client].vote;
                    if matches!(vote, Vote::Answered { .. }) {
                        *vote = Vote::Abstained;
                    }
                }
                for client in 0..state.clients.len() {
                    self.decide(state, client);
                }
            }
            Action::Tick => self.tick(state),
        }
        self.settle(state);
        self.notes.occurred(action.kind());
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "at most one client believes",
                |model: &Self, state: &State| model.notes.holds(state.believers() <= 1),
            ),
            Property::always("tokens grow", |model: &Self, state: &State| {
                model.notes.holds(!state.went_back)
            }),
            Property::always(
                "a client that left leaves nothing",
                |model: &Self, state: &State| {
                    let gone =
                        |(client, _): (u8, u8)| state.clients[usize::from(client)] == Phase::Gone;
                    let left = state.nodes.iter().any(|node| node.hold.is_some_and(gone));
                    model.notes.holds(!left)
                },
            ),
        ]
    }
}
