//! Names of the operations whose latencies are recorded.

/// Operation names that renderers and comparisons know. Others are allowed and shown last.
pub mod op {
    /// From the request until the grant.
    pub const ACQUIRE: &str = "acquire";
    /// From the request to release until its confirmation.
    pub const RELEASE: &str = "release";
    /// One acquire and one release together.
    pub const PAIR: &str = "acquire+release";
    /// From the start of a release until the next holder learns of its grant.
    pub const HAND_OFF: &str = "hand-off";
    /// From the request until the grant, for a lock that another process passes around.
    pub const REMOTE_WAIT: &str = "remote wait";
    /// The same if the process still had the lease from its own last turn.
    pub const OWN_LEASE: &str = "own lease again";
    /// From the request until the grant, for the exclusive half of a read-write lock.
    pub const WRITE_WAIT: &str = "write wait";
    /// The same for its shared half.
    pub const READ_WAIT: &str = "read wait";
    /// From the grant until the release, to compare a wait with.
    pub const HOLD: &str = "hold";
    /// How long after its due time a renewal was confirmed.
    pub const RENEWAL_LATENESS: &str = "renewal lateness";
    /// From the loss of a server until the first grant after it.
    pub const OUTAGE: &str = "outage";

    /// The known names, most important first: the order of rows and of charts.
    pub const ORDER: [&str; 11] = [
        REMOTE_WAIT,
        OWN_LEASE,
        WRITE_WAIT,
        READ_WAIT,
        HAND_OFF,
        PAIR,
        ACQUIRE,
        RELEASE,
        HOLD,
        RENEWAL_LATENESS,
        OUTAGE,
    ];

    /// What an operation measures, for a reader; empty for unknown names.
    #[must_use]
    pub fn meaning(name: &str) -> &'static str {
        match name {
            REMOTE_WAIT => "The wait for a lock that the tasks of another process pass around.",
            OWN_LEASE => "The wait if the process still had the lease from its own last turn.",
            WRITE_WAIT => "The wait of a writer for its grant.",
            READ_WAIT => "The wait of a reader for its grant.",
            HAND_OFF => "From the start of a release until the next holder knows of its grant.",
            PAIR => "Acquiring and releasing, without the time in between.",
            ACQUIRE => "From the request until the grant.",
            RELEASE => "From the request to release until its confirmation.",
            HOLD => "From the grant until the release.",
            RENEWAL_LATENESS => "How long after its due time a renewal was confirmed.",
            OUTAGE => "From the loss of a server until the first grant after it.",
            _ => "",
        }
    }

    /// Sort key of `name`: known names in the order above, then the others by name.
    #[must_use]
    pub fn rank(name: &str) -> (usize, &str) {
        (
            ORDER
                .iter()
                .position(|known| *known == name)
                .unwrap_or(ORDER.len()),
            name,
        )
    }
}
