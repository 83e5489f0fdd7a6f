//! The possible actions.

/// The possible next actions. Clients and messages are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A client starts to wait; it may listen to this lock already (`listen` in `waiting.rs`).
    Begin {
        /// The client.
        client: u8,
        /// Whether it listens already.
        listens: bool,
    },
    /// Subscribes to its inbox on the primary (`subscribe` in `waiting.rs`).
    Subscribe(u8),
    /// A fault: the subscription lands on the replica.
    SubscribeAtReplica(u8),
    /// The holder releases the lock (`release` of a guard).
    GiveBack(u8),
    /// The future of a waiter is dropped (`Drop` of `Acquisition`).
    Drop(u8),
    /// A message arrives: the script runs, or the client hears it.
    Deliver(usize),
    /// A fault: a message is lost, or arbitrarily late.
    Lose(usize),
    /// A fault: a message arrives twice.
    Double(usize),
    /// A fault: the connection for messages breaks; the client notices (`resync` of the hub).
    Disconnect(u8),
    /// A fault: the process ends.
    Crash(u8),
    /// A fault: the process ends, but its connection still seems open.
    CrashSilently(u8),
    /// Time passes.
    Tick,
}

impl Action {
    pub(super) fn kind(self) -> u32 {
        match self {
            Self::Begin { .. } => 0,
            Self::Subscribe(_) => 1,
            Self::SubscribeAtReplica(_) => 2,
            Self::GiveBack(_) => 3,
            Self::Drop(_) => 4,
            Self::Deliver(_) => 5,
            Self::Lose(_) => 6,
            Self::Double(_) => 7,
            Self::Disconnect(_) => 8,
            Self::Crash(_) => 9,
            Self::CrashSilently(_) => 10,
            Self::Tick => 11,
        }
    }
}

/// In the order of their numbers.
pub(super) const KINDS: &[&str] = &[
    "Begin",
    "Subscribe",
    "SubscribeAtReplica",
    "GiveBack",
    "Drop",
    "Deliver",
    "Lose",
    "Double",
    "Disconnect",
    "Crash",
    "CrashSilently",
    "Tick",
];
