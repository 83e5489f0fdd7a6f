//! The times when a job is due, by the wall clock.

use std::collections::VecDeque;
use std::fmt;
use std::iter::Peekable;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktopus_core::OptionError;

/// Requests to the backend take time. Anything due more often than this needs a loop.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// The longest period.
const LONGEST_PERIOD: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How many past times of an iterator to skip before other tasks get a turn.
const TIMES_PER_YIELD: u32 = 1_000;

/// When a job is due.
pub(super) enum Times {
    /// At multiples of the period since the epoch, each plus the offset.
    Every { period: Duration, offset: Duration },
    /// At the times of an iterator.
    Given {
        /// Never locked: the mutex only makes the iterator shareable.
        ahead: Mutex<Peekable<Box<dyn Iterator<Item = SystemTime> + Send>>>,
        /// Times that are already past, newest first.
        past: VecDeque<SystemTime>,
        /// The newest time taken from the iterator.
        last: Option<SystemTime>,
    },
}

/// The due times at some moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DueTimes {
    /// The past times, newest first.
    pub(super) past: Vec<SystemTime>,
    /// The next one.
    pub(super) next: Option<SystemTime>,
}

impl Times {
    pub(super) fn every(period: Duration, offset: Duration) -> Self {
        Self::Every { period, offset }
    }

    pub(super) fn given(times: impl Iterator<Item = SystemTime> + Send + 'static) -> Self {
        let times: Box<dyn Iterator<Item = SystemTime> + Send> = Box::new(times);
        Self::Given {
            ahead: Mutex::new(times.peekable()),
            past: VecDeque::new(),
            last: None,
        }
    }

    /// The time between two of them, if it is always the same.
    pub(super) fn period(&self) -> Option<Duration> {
        match self {
            Self::Every { period, .. } => Some(*period),
            Self::Given { .. } => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), OptionError> {
        match self.period() {
            Some(period) if !(SHORTEST_PERIOD..=LONGEST_PERIOD).contains(&period) => {
                let rule = "a period must be between 100 ms and ten years";
                Err(OptionError::new("every", period, rule))
            }
            _ => Ok(()),
        }
    }

    /// The newest `most` times that are due at `now`. Yields now and then, because an iterator may
    /// have many past times. Fails if the iterator does not grow, because skipping would never end.
    /// Times before the bad one are returned first.
    pub(super) async fn due(
        &mut self,
        now: SystemTime,
        most: usize,
    ) -> Result<DueTimes, OptionError> {
        let (ahead, past, last) = match self {
            Self::Every { period, offset } => return Ok(multiples(*period, *offset, now, most)),
            Self::Given { ahead, past, last } => (ahead, past, last),
        };
        let ahead = ahead.get_mut().unwrap_or_else(PoisonError::into_inner);
        let before = *last;
        for skipped in 1_u32.. {
            match ahead.peek() {
                Some(time) if last.is_some_and(|last| *time <= last) => {
                    if *last != before {
                        break;
                    }
                    return Err(not_growing(*time));
                }
                Some(time) if *time <= now => {
                    *last = Some(*time);
                    past.push_front(*time);
                    past.truncate(most);
                    ahead.next();
                }
                _ => break,
            }
            if skipped % TIMES_PER_YIELD == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(DueTimes {
            past: past.iter().copied().collect(),
            next: ahead.peek().copied(),
        })
    }
}

fn not_growing(time: SystemTime) -> OptionError {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let rule = "each time must be later than the one before it (since 1970-01-01 UTC); some libraries for cron expressions \
                repeat a time that daylight saving skips";
    OptionError::new("at_times", since, rule)
}

fn multiples(period: Duration, offset: Duration, now: SystemTime, most: usize) -> DueTimes {
    let period = period.as_millis().max(1);
    let offset = offset.as_millis() % period;
    let at = |index: u128| {
        let millis = u64::try_from(index * period + offset).ok()?;
        UNIX_EPOCH.checked_add(Duration::from_millis(millis))
    };
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let Some(since_first) = since.as_millis().checked_sub(offset) else {
        return DueTimes {
            past: Vec::new(),
            next: at(0),
        };
    };
    let newest = since_first / period;
    let past = (0..=newest).rev().take(most).filter_map(at).collect();
    DueTimes {
        past,
        next: at(newest + 1),
    }
}

impl fmt::Debug for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every { period, offset } => write!(f, "every {period:?} at {offset:?}"),
            Self::Given { .. } => f.write_str("times of an iterator"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[tokio::test]
    async fn multiples_since_the_epoch_are_due_newest_first() {
        let mut times = Times::every(Duration::from_secs(1), Duration::from_millis(2_250));
        let due = |past: &[u64], next| DueTimes {
            past: past.iter().copied().map(at).collect(),
            next: Some(at(next)),
        };
        assert_eq!(times.due(at(100), 3).await.unwrap(), due(&[], 250));
        assert_eq!(times.due(at(250), 3).await.unwrap(), due(&[250], 1_250));
        assert_eq!(
            times.due(at(2_249), 3).await.unwrap(),
            due(&[1_250, 250], 2_250)
        );
        assert_eq!(
            times.due(at(9_999), 2).await.unwrap(),
            due(&[9_250, 8_250], 10_250)
        );
        assert_eq!(
            times
                .due(UNIX_EPOCH - Duration::from_secs(9), 2)
                .await
                .unwrap(),
            due(&[], 250)
        );
    }

    #[tokio::test]
    async fn given_times_are_due_when_they_are_over() {
        let mut times = Times::given([1, 2, 3, 50].map(at).into_iter());
        let due = times.due(at(0), 2).await.unwrap();
        assert_eq!((due.past, due.next), (vec![], Some(at(1))));
        let due = times.due(at(10), 2).await.unwrap();
        assert_eq!((due.past, due.next), (vec![at(3), at(2)], Some(at(50))));
        let due = times.due(at(50), 2).await.unwrap();
        assert_eq!((due.past, due.next), (vec![at(50), at(3)], None));
    }

    /// At once or after good times; already due or not yet.
    #[tokio::test]
    async fn times_that_do_not_grow_are_an_error() {
        let stuck: [(&[u64], u64); 5] = [
            (&[], 5),
            (&[5], 5),
            (&[3, 9], 5),
            (&[3, 90], 90),
            (&[90], 3),
        ];
        for (good, forever) in stuck {
            let all = good.iter().copied().chain(std::iter::repeat(forever));
            let mut times = Times::given(all.map(at));
            let (mut due, mut said) = (None, String::new());
            for now in [10, 100, 100] {
                match times.due(at(now), 2).await {
                    Ok(found) => due = found.past.first().copied().max(due),
                    Err(error) => said = error.to_string(),
                }
            }
            let last = good.last().copied().unwrap_or(forever);
            assert_eq!(due, Some(at(last)), "{good:?}, {forever}");
            assert!(
                said.starts_with("at_times = "),
                "{good:?}, {forever}: {said}"
            );
        }
    }

    #[test]
    fn periods_have_bounds() {
        for period in [Duration::ZERO, SHORTEST_PERIOD / 2, LONGEST_PERIOD * 2] {
            assert!(Times::every(period, Duration::ZERO).check().is_err());
        }
        assert!(
            Times::every(SHORTEST_PERIOD, Duration::ZERO)
                .check()
                .is_ok()
        );
    }
}
