//! Tells which cases do not end, while they still run.
//!
//! A case has a time limit. It is a timer of tokio, so it never fires if a backend or a hook blocks
//! every worker. A thread of its own then names the case on standard error.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// How often the thread looks.
const PERIOD: Duration = Duration::from_secs(5);
/// How much longer than its limit a case may run, so that its own timer comes first.
const GRACE: Duration = Duration::from_secs(5);

/// The cases that run now, in real time: a paused clock says nothing about blocked threads.
static RUNNING: Mutex<BTreeMap<u64, Running>> = Mutex::new(BTreeMap::new());

struct Running {
    name: String,
    since: Instant,
    limit: Duration,
    /// When it is reported next.
    next: Instant,
}

/// A case that runs, until this is dropped.
pub(crate) struct Watched(u64);

impl Watched {
    /// Watches a case that should end within `limit`.
    pub(crate) fn new(name: &str, limit: Duration) -> Self {
        static THREAD: Once = Once::new();
        THREAD.call_once(|| {
            let thread = std::thread::Builder::new().name("conformance".to_owned());
            // Without the thread the suite works, and says less.
            let _ = thread.spawn(|| {
                loop {
                    std::thread::park_timeout(PERIOD);
                    for line in overdue(Instant::now()) {
                        eprintln!("{line}");
                    }
                }
            });
        });
        let since = Instant::now();
        let mut running = running();
        let id = running.last_key_value().map_or(0, |(id, _)| id + 1);
        let case = Running {
            name: name.to_owned(),
            since,
            limit,
            next: since + limit + GRACE,
        };
        running.insert(id, case);
        Self(id)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        running().remove(&self.0);
    }
}

fn running() -> MutexGuard<'static, BTreeMap<u64, Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line for each case that is overdue and was not reported lately.
fn overdue(now: Instant) -> Vec<String> {
    let mut running = running();
    let late = running.values_mut().filter(|case| case.next <= now);
    late.map(|case| {
        let Running {
            name, since, limit, ..
        } = case;
        let ran = now.duration_since(*since);
        case.next = now + ran;
        format!(
            "conformance: case {name} has not ended for {} s, and its limit of {limit:?} has no \
             effect: the backend or a hook of the suite blocks the threads of the runtime",
            ran.as_secs()
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Suite;

    /// Each connection looks as the thread would an hour later, instead of blocking for an hour.
    #[tokio::test]
    async fn a_case_that_blocks_its_runtime_is_named() {
        let seen: std::sync::Arc<Mutex<Vec<String>>> = std::sync::Arc::default();
        let lines = std::sync::Arc::clone(&seen);
        let suite = Suite::new(move || {
            let now = Instant::now();
            lines.lock().unwrap().extend(overdue(now));
            let later = now + Duration::from_secs(3600);
            for _ in 0..2 {
                lines.lock().unwrap().extend(overdue(later));
            }
            async { panic!("no store") }
        });
        let suite = suite.flavours(&[crate::Flavour::Mutex]);
        let report = suite.only("one_owner_at_a_time").run().await;
        assert_eq!(report.failures().count(), 1, "{report}");
        let seen = seen.lock().unwrap();
        let [line] = &seen[..] else {
            panic!("not once: {seen:?}")
        };
        let expected = "one_owner_at_a_time[mutex] has not ended for 3600 s, and its limit of ";
        assert!(line.contains(expected), "{line}");
        assert!(running().is_empty(), "it goes on watching what has ended");
    }
}
