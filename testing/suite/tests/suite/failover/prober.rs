//! A prober that keeps acquiring and releasing locks and records the results.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use locktopus::{BackendErrorKind, LockError, LockRequest};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Longest time for one call: the backend's own limit and the delay of a busy machine.
const CALL_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Prober {
    stop: watch::Sender<bool>,
    task: JoinHandle<Record>,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    errors: BTreeMap<String, u32>,
    outage: Option<(Instant, Instant)>,
    slowest: Duration,
    successes: u32,
}

impl Prober {
    /// Starts probing with this request, one attempt after the other.
    pub(crate) fn start(request: LockRequest) -> Self {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut record = Record::default();
            while !*stopped.borrow() {
                record.probe(&request).await;
                sleep(Duration::from_millis(20)).await;
            }
            record
        });
        Self { stop, task }
    }

    pub(crate) async fn stop(self) -> Record {
        self.stop.send(true).unwrap();
        self.task.await.unwrap()
    }
}

impl Record {
    async fn probe(&mut self, request: &LockRequest) {
        let begun = Instant::now();
        let outcome = match request.clone().try_acquire().await {
            Ok(Some(guard)) => guard.release().await,
            // The clean-up of an earlier attempt whose answer was lost is still running.
            Ok(None) => Err(LockError::ShutDown),
            Err(error) => Err(error),
        };
        let now = Instant::now();
        self.slowest = self.slowest.max(now - begun);
        assert!(self.slowest < CALL_WITHIN, "a call took {:?}", self.slowest);
        let what = match outcome {
            Ok(()) => {
                self.successes += 1;
                return;
            }
            Err(LockError::ShutDown) => "held by an earlier attempt".to_owned(),
            Err(LockError::Backend { source, phase, .. }) => {
                let known = [BackendErrorKind::Unavailable, BackendErrorKind::Timeout];
                assert!(known.contains(&source.kind()), "{source:?}");
                format!("{phase} {:?} {:?}", source.kind(), source.executed())
            }
            Err(LockError::Lost { cause, .. }) => format!("lost, {cause}"),
            Err(other) => panic!("{other:?}"),
        };
        *self.errors.entry(what).or_default() += 1;
        let from = self.outage.map_or(begun, |(from, _)| from);
        self.outage = Some((from, now));
    }

    /// The time between the first and the last failure.
    pub(crate) fn outage(&self) -> Duration {
        self.outage.map_or(Duration::ZERO, |(from, to)| to - from)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "out for {:.2?}, slowest call {:.2?}, {} good, errors {:?}",
            self.outage(),
            self.slowest,
            self.successes,
            self.errors
        )
    }
}
