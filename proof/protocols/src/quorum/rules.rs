//! The rules that make the quorum sound, each of which can be left out, and how far the model goes.

/// The lease, and the longest there is, in ticks.
pub(super) const LEASE: u8 = 4;
/// How much sooner a node's fast clock may end a lease, or make it old enough to vote
/// (`ValidityMargin`).
pub(super) const DRIFT: u8 = 1;
/// How long a round may take.
pub(super) const ROUND: u8 = 2;

/// Each is true in what is shipped.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// More than half of the nodes must agree (`majority` in `members.rs`), not half.
    pub majority: bool,
    /// Validity counts from before the first node was asked (`attempt` in `attempt.rs`), not from
    /// the last answer.
    pub validity_from_sending: bool,
    /// Validity is shorter than the lease by as much as clocks may differ (`margin` there).
    pub margin: bool,
    /// A restarted node votes when the longest lease is over (`learn` in `eligibility.rs`).
    pub restarted_wait: bool,
    /// An answer counts only if the node was the same all the time (`vote` in `node.rs`).
    pub same_node: bool,
    /// The clock of a node that lost its counter is above the token of the holder before: the
    /// clocks of the nodes differ by less than the time between two holders (what `lib.rs` asks
    /// for).
    pub clocks_agree: bool,
    /// The token is written back to a majority before it is given out
    /// (`token_verdict` in `votes.rs`).
    pub write_back: bool,
    /// An attempt that arrives too late is refused (`late` in `lua/part/now.lua`).
    pub refuse_late: bool,
    /// What a failed round took is given back (`lose` in `attempt.rs`).
    pub failed_rounds_give_back: bool,
}

impl Rules {
    /// As shipped.
    pub const SHIPPED: Self = Self {
        majority: true,
        validity_from_sending: true,
        margin: true,
        restarted_wait: true,
        same_node: true,
        clocks_agree: true,
        write_back: true,
        refuse_late: true,
        failed_rounds_give_back: true,
    };
}

/// How far the model goes.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many clients there are.
    pub clients: usize,
    /// How many restarts there may be.
    pub restarts: u8,
    /// Whether there are tokens; single-key mutexes have none.
    pub tokens: bool,
    /// Whether an answer takes time, or else is there when the node has run the attempt.
    pub slow_answers: bool,
    /// Whether futures of rounds are dropped.
    pub drops: bool,
}
