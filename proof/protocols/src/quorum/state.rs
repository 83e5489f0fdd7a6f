//! Nodes, clients, and the links between them.

use super::rules::LEASE;

/// The state at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// Sorted: nodes are alike.
    pub(super) nodes: Vec<Node>,
    pub(super) clients: Vec<Phase>,
    pub(super) restarts: u8,
    /// The largest token that any node gave; the right time is above it by now.
    pub(super) clock: u8,
    /// The largest token that a majority granted.
    pub(super) highest: u8,
    /// A majority granted a token that was not larger than all before it.
    pub(super) went_back: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Node {
    /// The holder, and the rest of its lease.
    pub(super) hold: Option<(u8, u8)>,
    /// The last token given.
    pub(super) token: u8,
    /// It lost its counter, and its clock is behind.
    pub(super) behind: bool,
    /// How many ticks its server has been up by its own clock, as far as that matters.
    pub(super) up: u8,
    /// The links to each client.
    pub(super) links: Vec<Link>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) vote: Vote,
    /// An abandoned attempt may still arrive.
    pub(super) stray: bool,
    /// A release is in flight.
    pub(super) releasing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Vote {
    None,
    /// An attempt is on its way, with the smallest token it accepts; 0 unless the node has granted
    /// the lock already.
    Asked {
        floor: u8,
    },
    /// The node ran it, and the answer is on its way.
    Answered {
        token: Option<u8>,
        wrote: bool,
    },
    Granted(u8),
    Held,
    /// Its answer does not count.
    Abstained,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    /// It has been asking the nodes for this many ticks; the chosen token.
    Round {
        age: u8,
        chosen: u8,
    },
    /// It believes that it holds the lock for this long.
    Holding {
        left: u8,
    },
    /// It releases what the nodes may have. Its attempts may arrive until this many ticks after the
    /// start of the round.
    Leaving {
        age: u8,
    },
    Gone,
}

impl State {
    /// Nodes that have been up for a long time, and clients that do not want the lock yet.
    pub(super) fn beginning(nodes: usize, clients: usize) -> Self {
        let link = Link {
            vote: Vote::None,
            stray: false,
            releasing: false,
        };
        let node = Node {
            hold: None,
            token: 0,
            behind: false,
            up: LEASE,
            links: vec![link; clients],
        };
        Self {
            nodes: vec![node; nodes],
            clients: vec![Phase::Idle; clients],
            restarts: 0,
            clock: 0,
            highest: 0,
            went_back: false,
        }
    }

    pub(super) fn believers(&self) -> usize {
        let believes = |phase: &&Phase| matches!(phase, Phase::Holding { .. });
        self.clients.iter().filter(believes).count()
    }
}
