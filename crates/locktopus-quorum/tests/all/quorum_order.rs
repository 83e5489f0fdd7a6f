//! RedLock with messages that overtake each other on the way to a node: no order leaves a hold
//! there for a whole lease.

use crate::quorum_common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, Executed,
    LockBackend, LockTarget, OwnerId, ReleaseOutcome, ReleaseRequest,
};
use locktopus_memory::MemoryBackend;
use locktopus_quorum::QuorumBackend;
use quorum_common::{mutex, until};
use tokio::time::{Instant, sleep};

const LEASE: Duration = Duration::from_secs(10);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// How long a request is on its way to a server, and its answer on the way back.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    there: Duration,
    back: Duration,
    /// The connection breaks this long after sending, but the request still arrives.
    breaks: Option<Duration>,
}

/// A server whose requests and answers are each as slow as the test says, independent of the
/// others.
#[derive(Debug, Clone)]
struct Distant {
    store: MemoryBackend,
    info: Arc<BackendInfo>,
    attempts: Arc<Mutex<Way>>,
    releases: Arc<Mutex<Way>>,
    sent: Arc<Mutex<Vec<&'static str>>>,
}

impl Distant {
    fn new(call_timeout: Duration) -> Self {
        Self {
            store: MemoryBackend::new(),
            info: Arc::new(BackendInfo::new("far", "far (test)", call_timeout)),
            attempts: Arc::default(),
            releases: Arc::default(),
            sent: Arc::default(),
        }
    }

    fn releases_sent(&self) -> usize {
        let sent = self.sent.lock().unwrap();
        sent.iter().filter(|what| **what == "release").count()
    }

    fn is_free(&self) -> bool {
        self.store.population().0 == 0
    }

    async fn travel<T: Send + 'static>(
        &self,
        what: &'static str,
        way: Way,
        run: impl Future<Output = Result<T, BackendError>> + Send + 'static,
    ) -> Result<T, BackendError> {
        self.sent.lock().unwrap().push(what);
        let arrival = tokio::spawn(async move {
            sleep(way.there).await;
            let answer = run.await;
            sleep(way.back).await;
            answer
        });
        let Some(breaks) = way.breaks else {
            return arrival.await.unwrap();
        };
        sleep(breaks).await;
        let (kind, executed) = (BackendErrorKind::Unavailable, Executed::Maybe);
        Err(BackendError::new("far", kind, executed, "it broke"))
    }
}

#[async_trait]
impl locktopus_contract::Layer for Distant {
    fn inner(&self) -> &dyn LockBackend {
        &self.store
    }

    fn info(&self) -> &BackendInfo {
        &self.info
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let (store, attempt, way) = (
            self.store.clone(),
            attempt.clone(),
            *self.attempts.lock().unwrap(),
        );
        let run = async move {
            // Like real servers (ADR 0011).
            if Instant::now() > attempt.deadline {
                let (kind, executed) = (BackendErrorKind::Timeout, Executed::No);
                return Err(BackendError::new("far", kind, executed, "too late"));
            }
            store.attempt(&attempt).await
        };
        self.travel("attempt", way, run).await
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let (store, request, way) = (
            self.store.clone(),
            request.clone(),
            *self.releases.lock().unwrap(),
        );
        let run = async move { store.release(&request).await };
        self.travel("release", way, run).await
    }
}

/// Two nodes that answer at once, one with the given delays, and their quorum.
fn two_and(slow: &Distant, node_timeout: Duration) -> QuorumBackend {
    QuorumBackend::builder()
        .node("a", Arc::new(MemoryBackend::new()))
        .node("b", Arc::new(MemoryBackend::new()))
        .node("slow", Arc::new(slow.clone()))
        .node_timeout(node_timeout)
        .build()
        .unwrap()
}

async fn take_and_give_back(quorum: &QuorumBackend, target: &LockTarget, pause: Duration) {
    let (owner, deadline) = (OwnerId::generate(), Instant::now() + Duration::from_secs(5));
    let attempt = AcquireAttempt::new(target.clone(), owner.clone(), LEASE, deadline);
    let granted = quorum.attempt(&attempt).await.unwrap();
    assert!(matches!(granted, AttemptOutcome::Granted { .. }));
    sleep(pause).await;
    let release = ReleaseRequest::new(target.clone(), owner, deadline);
    let released = quorum.release(&release).await.unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
}

/// Nothing is under way, no cleanup is left, and the node is free, long before a lease is over.
async fn ends_free(quorum: &QuorumBackend, slow: &Distant, what: &str) {
    let begun = Instant::now();
    until(what, || quorum.background_tasks() == 0).await;
    sleep(Duration::from_secs(1)).await;
    assert!(slow.is_free(), "held until its lease is over: {what}");
    assert!(begun.elapsed() < LEASE / 2, "lapsed: {what}");
}

/// The release leaves while the attempt is on its way. Either may arrive first, and either may be
/// answered first.
#[tokio::test(start_paused = true)]
async fn a_release_that_overtakes_an_attempt_is_followed_by_another() {
    let steps = [0, 10, 20, 40, 80].map(ms);
    let mut overtaken = 0;
    for there in steps {
        for back in steps {
            for release_there in steps {
                for release_back in steps {
                    let slow = Distant::new(ms(500));
                    let quorum = two_and(&slow, ms(500));
                    let way = |there, back| Way {
                        there,
                        back,
                        breaks: None,
                    };
                    *slow.attempts.lock().unwrap() = way(there, back);
                    *slow.releases.lock().unwrap() = way(release_there, release_back);
                    take_and_give_back(&quorum, &mutex("job"), ms(5)).await;
                    let what = format!("{there:?} {back:?} {release_there:?} {release_back:?}");
                    ends_free(&quorum, &slow, &what).await;
                    let in_flight = there + back > ms(5);
                    overtaken += usize::from(in_flight && ms(5) + release_there < there);
                    assert!(slow.releases_sent() <= 2, "{what}");
                }
            }
        }
    }
    assert!(overtaken > 50, "{overtaken}");
}

/// A release that arrived after the attempt says that it found it, so nothing needs to follow.
#[tokio::test(start_paused = true)]
async fn a_release_that_found_the_attempt_is_enough() {
    let slow = Distant::new(ms(500));
    let quorum = two_and(&slow, ms(500));
    *slow.attempts.lock().unwrap() = Way {
        there: ms(20),
        back: ms(20),
        breaks: None,
    };
    *slow.releases.lock().unwrap() = Way {
        there: ms(20),
        back: ms(20),
        breaks: None,
    };
    take_and_give_back(&quorum, &mutex("job"), ms(5)).await;
    ends_free(&quorum, &slow, "in order").await;
    assert_eq!(*slow.sent.lock().unwrap(), ["attempt", "release"]);
}

/// An attempt without an answer may run until its deadline, even if it is known earlier that no
/// answer will come.
#[tokio::test(start_paused = true)]
async fn what_may_still_arrive_is_released_after_its_deadline() {
    for arrives in [1, 50, 150, 250, 400, 800, 1900, 2100, 3000] {
        // A quarter of the lease is 2.5 s, and node_timeout is less: the attempt may run for 2 s.
        // Other calls take less.
        let slow = Distant::new(ms(100));
        let quorum = two_and(&slow, ms(2000));
        *slow.attempts.lock().unwrap() = Way {
            there: ms(arrives),
            back: ms(0),
            breaks: Some(ms(2)),
        };
        take_and_give_back(&quorum, &mutex("job"), ms(5)).await;
        ends_free(&quorum, &slow, &format!("arrives after {arrives} ms")).await;
        sleep(Duration::from_secs(4)).await;
        assert!(slow.is_free(), "arrived after {arrives} ms, and stayed");
    }
}
