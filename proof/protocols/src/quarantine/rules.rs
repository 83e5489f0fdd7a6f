//! The rules that make quarantine sound, each of which can be left out, and how far the model goes.

/// The longest lease there is, in ticks, for which nothing is granted.
pub(super) const LONGEST: u8 = 3;

/// Who waits after a failover, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The server, for the longest lease: as shipped.
    Server,
    /// The server, a tick too short.
    ServerTooShort,
    /// The client, by when it saw the change itself.
    Client,
    /// Nobody: the mode `plain`.
    Nobody,
}

/// As shipped: `Wait::Server`, and each of the others true.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Who waits (`held_back` in `lua/part/quarantine.lua`).
    pub wait: Wait,
    /// The id in the record is one that never returns: the replication id, not that of the server
    /// (`replication_id` there).
    pub ids_are_new: bool,
    /// What a client vouches for must be this very history (`seen` there).
    pub vouches_for_this: bool,
    /// A primary that sentinels promote again as it is has a later epoch than its record
    /// (`promoted` there).
    pub epochs_tell: bool,
    /// Longer leases than the longest are refused (`check` in `execution/quarantine.rs`).
    pub longest_is_longest: bool,
    /// A primary that was replaced grants nothing any more (`min-replicas-to-write`; a check at
    /// connect looks for it).
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

/// How far the model goes.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many clients there are.
    pub clients: u8,
    /// How many failovers and restarts there may be.
    pub failovers: u8,
}
