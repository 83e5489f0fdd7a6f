//! The rules that make the quorum sound, which tests can leave out, and the bounds.

/// The lease, which is also the longest lease, in ticks.
pub(super) const LEASE: u8 = 4;
/// How much earlier a node's fast clock may end a lease, or let it vote (`ValidityMargin`).
pub(super) const DRIFT: u8 = 1;
/// How long a round may take.
pub(super) const ROUND: u8 = 2;

/// Each is true as shipped.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// More than half of the nodes must agree (`majority` in `members.rs`), not half.
    pub majority: bool,
    /// Validity counts from before the first request of a round (`attempt` in `attempt.rs`), not
    /// from the last answer.
    pub validity_from_sending: bool,
    /// Validity is shorter than the lease by the possible difference of clocks (`margin` there).
    pub margin: bool,
    /// A restarted node votes only after the longest lease (`learn` in `eligibility.rs`).
    pub restarted_wait: bool,
    /// An answer of a node that restarted meanwhile does not count (`vote` in `node.rs`).
    pub same_node: bool,
    /// If a node lost its counter, its clock is above the last holder's token: clocks of nodes
    /// differ by less than the time between two holders (a requirement of `lib.rs`).
    pub clocks_agree: bool,
    /// The token is written back to a majority before the client uses it (`token_verdict` in
    /// `votes.rs`).
    pub write_back: bool,
    /// A late attempt is refused (`late` in `lua/part/now.lua`).
    pub refuse_late: bool,
    /// A failed round releases what it took (`lose` in `attempt.rs`).
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

/// The bounds of the model.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of clients.
    pub clients: usize,
    /// The number of restarts.
    pub restarts: u8,
    /// Whether there are tokens; single-key mutexes have none.
    pub tokens: bool,
    /// Whether answers take time; otherwise an answer arrives when the node has run the attempt.
    pub slow_answers: bool,
    /// Whether futures of rounds are dropped.
    pub drops: bool,
}
