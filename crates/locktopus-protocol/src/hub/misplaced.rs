//! How often a subscription that is in the wrong place is given up.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::lock;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Bounds how often the client is told that it listens in the wrong place: a new subscription need not be in a better one,
/// if an address goes on leading to a replica, and each costs a connection and a look by every waiter.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    /// When the last one was made, and how long the next one must wait.
    last: Mutex<Option<(Instant, Duration)>>,
}

impl Complaints {
    /// Whether to complain now. The pause doubles as long as there is reason to complain right after it, and starts anew
    /// after a time without.
    pub(super) fn due(&self, now: Instant) -> bool {
        let mut last = lock(&self.last);
        let pause = match *last {
            None => FIRST_PAUSE,
            Some((at, pause)) if now.duration_since(at) < pause => return false,
            Some((at, pause)) if now.duration_since(at) < pause * 4 => {
                (pause * 2).min(LONGEST_PAUSE)
            }
            Some(_) => FIRST_PAUSE,
        };
        *last = Some((now, pause));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_become_rare_while_they_do_not_help() {
        let (complaints, begun) = (Complaints::default(), Instant::now());
        // Somebody is passed over every hundredth of a second for two minutes.
        let due = |tenth: u32| complaints.due(begun + Duration::from_millis(10) * tenth);
        let made = (0..12_000).filter(|tenth| due(*tenth)).count();
        assert!((8..=10).contains(&made), "{made}");

        let later = begun + Duration::from_secs(600);
        assert!(complaints.due(later));
        assert!(!complaints.due(later + FIRST_PAUSE / 2));
        assert!(complaints.due(later + FIRST_PAUSE));
    }
}
