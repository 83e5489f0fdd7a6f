//! Nodes, clients, and what is between each two.

use super::rules::LEASE;

/// Everything at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// Sorted: nodes are alike.
    pub(super) nodes: Vec<Node>,
    pub(super) clients: Vec<Phase>,
    pub(super) restarts: u8,
    /// The largest token that any node gave: what the right time is above by now.
    pub(super) clock: u8,
    /// The largest token that a majority granted.
    pub(super) highest: u8,
    /// A majority granted a token that was not larger than all before it.
    pub(super) went_back: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Node {
    /// Who holds the lock, and for how long.
    pub(super) hold: Option<(u8, u8)>,
    /// The last token given.
    pub(super) token: u8,
    /// It lost its counter, and its clock is behind.
    pub(super) behind: bool,
    /// For how many ticks its server has been up by its own clock, as far as anybody asks.
    pub(super) up: u8,
    /// What is between it and each client.
    pub(super) links: Vec<Link>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) vote: Vote,
    /// An attempt that nobody waits for may still arrive.
    pub(super) stray: bool,
    /// A release is under way.
    pub(super) releasing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Vote {
    None,
    /// An attempt is on its way, with the smallest token it may get; 0 unless the node has granted
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
    /// It asks the nodes, since so many ticks; which token was chosen.
    Round {
        age: u8,
        chosen: u8,
    },
    /// It believes for so long.
    Holding {
        left: u8,
    },
    /// It gives back what the nodes may have; attempts of it may arrive until so many ticks after
    /// the round began.
    Leaving {
        age: u8,
    },
    Gone,
}

impl State {
    /// Nodes that have been up for long, and nobody who wants the lock yet.
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
