//! Progress reports to waiting members: from the backend's answer to the leader, or from the
//! current lease.

use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};

use super::cohort::Cohort;
use super::cohort_queue::CohortQueue;
use super::member::Member;
use super::stage::{Baton, Stage};

/// An answer of the backend to the leader.
#[derive(Debug)]
pub(super) struct LeaderAnswer {
    /// How many are ahead of the leader, if it queues at the backend.
    ahead: Option<u64>,
    /// The rest of the blocking lease.
    remaining: Option<Duration>,
    at: BootInstant,
}

impl Member {
    /// Notes the backend's answer to this leader, and reports it to the waiters behind it.
    pub(crate) fn tell(&self, ahead: Option<u64>, remaining: Option<Duration>) {
        let at = clock::now();
        if let Stage::Led { by, answer, .. } = &mut self.cohort.queue().stage
            && *by == self.number
        {
            *answer = Some(Box::new(LeaderAnswer {
                ahead,
                remaining,
                at,
            }));
        }
        self.cohort.tell(at);
    }
}

impl Cohort {
    /// Reports the state of the queue to members that watch their wait, as far as it is known.
    pub(super) fn tell(&self, now: BootInstant) {
        let (ahead, remaining, watching) = {
            let queue = self.queue();
            let news = queue.watched.then(|| queue.news(now)).flatten();
            let Some((ahead, remaining)) = news else {
                return;
            };
            let waiting = (0..).zip(queue.waiting.iter());
            let watching: Vec<_> = waiting
                .filter_map(|(before, (_, waiter))| {
                    Some((before, waiter.progress.clone()?, waiter.lease))
                })
                .collect();
            (ahead, remaining, watching)
        };
        for (before, reporter, lease) in watching {
            reporter.report(ahead.map(|ahead| ahead + before), remaining, lease);
        }
    }
}

impl CohortQueue {
    /// How many are ahead of the first waiter, and what is left of the holder's lease.
    fn news(&self, now: BootInstant) -> Option<(Option<u64>, Option<Duration>)> {
        match &self.stage {
            Stage::Held(lease)
            | Stage::Handed {
                baton: Baton::Lease(lease),
                ..
            } => Some((Some(0), Some(lease.valid_until().since(now)))),
            Stage::Led {
                answer: Some(answer),
                ..
            } => {
                let age = now.since(answer.at);
                let remaining = answer.remaining.map(|left| left.saturating_sub(age));
                Some((answer.ahead.map(|ahead| ahead + 1), remaining))
            }
            _ => None,
        }
    }
}
