//! How strict the checker is.

use std::time::Duration;

/// What the checker allows, and how much it lists.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Options {
    /// Longest lists of examples; everything is counted. 20.
    pub examples: usize,
    /// Whether at most one holder at a time is promised, whatever happens in the history. Then
    /// tokens grow in the order in which grants were received. Where it is not, as across a
    /// failover that may forget locks or leave two servers granting for a while, only a grant that
    /// was asked for after another one had been received is promised the larger token
    /// ([`handed_on`](Self::handed_on) later, to be exact), and the rest is counted; nor is a write
    /// wrongly refused whose smaller token may be that of such a grant. true.
    pub exclusive: bool,
    /// How old a lease may be that is passed on inside a process, with tokens that were reserved
    /// when the server granted it: the time of the answer, and the 20 ms for which it is passed on.
    /// 1 s.
    pub handed_on: Duration,
    /// How soon after the signal of a loss a use must have ended. It never allows use after the
    /// end of validity. 10 ms.
    pub reaction: Duration,
    /// For how long a use may go on after the end, not counting the time for which the history says
    /// that its worker was stalled. Uses that overlap for that reason alone are no violation
    /// either. 0.
    pub use_limit: Duration,
    /// How much later the reply of an earlier grant may arrive than that of a later one, where
    /// both could be granted together (readers, permits). Only for the order of fair locks.
    /// 100 ms.
    pub reply_slack: Duration,
    /// A worker that tries again so soon after a failed attempt wanted the lock all the time.
    /// 1 s.
    pub retry_pause: Duration,
    /// A waiter that was stalled for so long altogether since it asked may have been taken for
    /// dead, and lost its place: nobody who was granted a fair lock before it has overtaken it. 2
    /// s.
    pub stalled_waiter: Duration,
    /// For how long after each fault waiters may find new places, in another order: whoever waited
    /// meanwhile is not judged. Without it, faults are no excuse.
    pub order_recovery: Option<Duration>,
    /// How late the signal of a loss may come after the end of validity, not counting the time for
    /// which its worker was stalled. Not judged without.
    pub lateness_limit: Option<Duration>,
    /// How long nobody may be granted a lock that is wanted, not counting the time for which the
    /// one who waited was stalled. Not judged without.
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
