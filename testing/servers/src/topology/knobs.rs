//! Server options that scenarios vary.

/// Server options. Start from [`Knobs::default`] and change fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knobs {
    /// Cluster: a node unreachable for this long is suspected.
    pub node_timeout_ms: u32,
    /// Sentinel: a server silent for this long is suspected.
    pub down_after_ms: u32,
    /// Sentinel: limit for one failover attempt.
    pub failover_timeout_ms: u32,
    /// Cluster: one uncovered slot stops every shard, which is the servers' default.
    pub full_coverage: bool,
    /// Keep an append-only file, so that a restarted server still has its data.
    pub appendonly: bool,
    /// Give each data server a clock that [`Node::set_clock_ahead`](super::Node::set_clock_ahead)
    /// can set. Without [`Caps::set_clock`](super::Caps::set_clock) they still have the system's
    /// clock.
    pub settable_clock: bool,
    /// Access-control users, each in the server's own syntax: name first, then rules, as in
    /// `app on >secret ~lock:* +@all`. The default user stays open unless listed here; leave it
    /// open, because the harness itself uses it.
    pub users: Vec<String>,
    /// The same for the sentinels, which have users of their own.
    pub sentinel_users: Vec<String>,
    /// More arguments for every data server, appended last so that they win.
    pub extra_args: Vec<String>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            node_timeout_ms: 1_000,
            down_after_ms: 1_000,
            failover_timeout_ms: 5_000,
            full_coverage: true,
            appendonly: false,
            settable_clock: false,
            users: Vec::new(),
            sentinel_users: Vec::new(),
            extra_args: Vec::new(),
        }
    }
}
