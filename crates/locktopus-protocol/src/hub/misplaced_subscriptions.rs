//! Limits how often the client replaces a subscription on the wrong server.

use std::sync::Mutex;
use std::time::Duration;

use locktopus_contract::lock;
use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Limits how often the hub tells the client that it is subscribed on the wrong server. If an
/// address keeps leading to a replica, the new subscription may be wrong again, and each one costs
/// a connection and a check by every waiter.
#[derive(Debug, Default)]
pub(super) struct MisplacedReports {
    /// When the last report was made, and how long the next one must wait.
    last: Mutex<Option<(Instant, Duration)>>,
}

impl MisplacedReports {
    /// Whether to report now. The pause doubles if the next report follows soon after it, and
    /// resets after a quiet period.
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
    fn reports_become_rare_while_they_do_not_help() {
        let (reports, begun) = (MisplacedReports::default(), Instant::now());
        // A waiter is passed over every 10 ms for two minutes.
        let due = |tenth: u32| reports.due(begun + Duration::from_millis(10) * tenth);
        let made = (0..12_000).filter(|tenth| due(*tenth)).count();
        assert!((8..=10).contains(&made), "{made}");

        let later = begun + Duration::from_secs(600);
        assert!(reports.due(later));
        assert!(!reports.due(later + FIRST_PAUSE / 2));
        assert!(reports.due(later + FIRST_PAUSE));
    }
}
