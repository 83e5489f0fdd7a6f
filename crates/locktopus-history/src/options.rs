//! How strict the checker is.

use std::time::Duration;

/// What the checker allows, and how much it lists.
#[derive(Clone, Debug)]
pub struct Options {
    /// Longest lists of examples; everything is counted. 20.
    pub examples: usize,
    /// Whether at most one holder at a time is promised, whatever happens in the history. Then tokens grow in the order in which
    /// grants were received. Where it is not, as across a failover that may forget locks or leave two servers granting
    /// for a while, only a grant that was asked for after another one had been received is promised the larger token
    /// ([`handed_on`](Self::handed_on) later, to be exact), and the rest is counted. true.
    pub exclusive: bool,
    /// How old a lease may be that is passed on inside a process, with tokens that were reserved when the server granted it: the
    /// time of the answer, and the 20 ms for which it is passed on. 1 s.
    pub handed_on: Duration,
    /// How soon after the signal of a loss a use must have ended. It never allows use after the
    /// end of validity. 10 ms.
    pub reaction: Duration,
    /// How much later the reply of an earlier grant may arrive than that of a later one, where
    /// both could be granted together (readers, permits). Only for the order of fair locks.
    /// 100 ms.
    pub reply_slack: Duration,
    /// A worker that tries again so soon after a failed attempt wanted the lock all the time.
    /// 1 s.
    pub retry_pause: Duration,
    /// How late the signal of a loss may come after the end of validity. Not judged without.
    pub lateness_limit: Option<Duration>,
    /// How long nobody may be granted a lock that is wanted. Not judged without.
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
            retry_pause: Duration::from_secs(1),
            lateness_limit: None,
            outage_limit: None,
        }
    }
}
