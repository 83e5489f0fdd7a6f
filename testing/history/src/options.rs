//! How strict the checker is.

use std::time::Duration;

/// The limits of the checker, and how many examples it lists.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Options {
    /// Longest lists of examples; everything is counted. Default 20.
    pub examples: usize,
    /// Whether the lock promises at most one holder at a time throughout the history. Then tokens
    /// grow in the order of receipt of the grants. Without that promise, as in a failover that may
    /// forget locks or leave two servers granting for a while, only a grant requested after another
    /// one was received (exactly: [`handed_on`](Self::handed_on) later) must have the larger token.
    /// Other cases are counted. It is also right then to refuse a write whose smaller token may be
    /// from such a grant. Default true.
    pub exclusive: bool,
    /// The maximum age of a lease that is passed on inside a process, with tokens reserved when the
    /// server granted it: the time of the answer, and the 20 ms of passing on. Default 1 s.
    pub handed_on: Duration,
    /// How soon after the signal of a loss a use must end. It never allows use after the end of
    /// validity. Default 10 ms.
    pub reaction: Duration,
    /// How long a use may continue after the end, not counting the time that its worker was
    /// stalled, according to the history. Uses that overlap only for that reason are no violation
    /// either. Default 0.
    pub use_limit: Duration,
    /// How much later the reply of an earlier grant may arrive than that of a later one, if the two
    /// can coexist (readers, permits). Only for the order of fair locks. Default 100 ms.
    pub reply_slack: Duration,
    /// A worker that tries again this soon after a failed attempt wanted the lock all the time.
    /// Default 1 s.
    pub retry_pause: Duration,
    /// A waiter that was stalled this long in total since its request may have been taken for dead,
    /// and may have lost its place: grants of a fair lock before it are no overtaking. Default 2 s.
    pub stalled_waiter: Duration,
    /// How long after each fault waiters may take new places, in another order. Waits in that time
    /// are not judged. Without it, faults are no excuse.
    pub order_recovery: Option<Duration>,
    /// How late the signal of a loss may come after the end of validity, not counting the time in
    /// which its worker was stalled. Not judged if unset.
    pub lateness_limit: Option<Duration>,
    /// How long a wanted lock may go without a grant, not counting the time that its waiters were
    /// stalled. Not judged if unset.
    pub outage_limit: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            examples: 20,
            exclusive: true,
            handed_on: Duration::from_secs(1),
            reaction: Duration::from_millis(10),
            reply_slack: Duration::from_millis(100),
            use_limit: Duration::ZERO,
            retry_pause: Duration::from_secs(1),
            stalled_waiter: Duration::from_secs(2),
            order_recovery: None,
            lateness_limit: None,
            outage_limit: None,
        }
    }
}
