//! The rules that make quarantine sound, which tests can leave out, and the bounds.

/// The longest lease, in ticks; the time without grants.
pub(super) const LONGEST: u8 = 3;

/// The place of the wait after a failover, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// By the server, for the longest lease: as shipped.
    Server,
    /// By the server, for one tick too few.
    ServerTooShort,
    /// By the client, since it saw the change itself.
    Client,
    /// Not at all: the mode `plain`.
    Nobody,
}

/// As shipped: `Wait::Server`, and all others true.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The wait (`held_back` in `lua/part/quarantine.lua`).
    pub wait: Wait,
    /// The record has an id that never returns: the replication id, not that of the server
    /// (`replication_id` there).
    pub ids_are_new: bool,
    /// A client can vouch only for this exact history (`seen` there).
    pub vouches_for_this: bool,
    /// A primary that sentinels promote again unchanged has a later epoch than its record
    /// (`promoted` there).
    pub epochs_tell: bool,
    /// Leases longer than the longest are refused (`check` in `execution/quarantine.rs`).
    pub longest_is_longest: bool,
    /// A replaced primary grants nothing any more (`min-replicas-to-write`; a check at connect
    /// looks for it).
    pub old_primary_stops: bool,
}

impl Rules {
    /// As shipped.
    pub const SHIPPED: Self = Self {
        wait: Wait::Server,
        ids_are_new: true,
        vouches_for_this: true,
        epochs_tell: true,
        longest_is_longest: true,
        old_primary_stops: true,
    };

    pub(super) fn lease(self) -> u8 {
        if self.longest_is_longest {
            LONGEST
        } else {
            LONGEST + 1
        }
    }
}

/// The bounds of the model.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The number of clients.
    pub clients: u8,
    /// The number of failovers and restarts.
    pub failovers: u8,
}
