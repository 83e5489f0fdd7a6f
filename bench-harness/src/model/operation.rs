//! Names of the operations whose latencies are recorded.

/// Operation names that renderers and comparisons know. Others are allowed and shown last.
pub mod op {
    /// From asking until the grant.
    pub const ACQUIRE: &str = "acquire";
    /// From asking for the release until it is confirmed.
    pub const RELEASE: &str = "release";
    /// One acquire and one release together.
    pub const PAIR: &str = "acquire+release";
    /// From the start of a release until the next holder knows of its grant.
    pub const HAND_OFF: &str = "hand-off";
    /// How long after its due time a renewal was sent.
    pub const RENEWAL_LATENESS: &str = "renewal lateness";
    /// From the loss of a server until the first grant after it.
    pub const OUTAGE: &str = "outage";

    /// The known names, most telling first: the order of rows and of charts.
    pub const ORDER: [&str; 6] = [HAND_OFF, PAIR, ACQUIRE, RELEASE, RENEWAL_LATENESS, OUTAGE];

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
