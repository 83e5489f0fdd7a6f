//! Members of the local queue whose tasks do not run: the others wait for them no longer than the
//! time that they announced.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{CohortSettings, LockError, LockGuard, LockRequest, Locktopus, WaitStrategy};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep, timeout};

/// How long a turn waits to be picked up, plus the timer's resolution.
const PATIENCE: Duration = Duration::from_millis(50);
const SLACK: Duration = Duration::from_millis(5);
const HOUR: Duration = Duration::from_secs(3600);

type Acquiring = Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send>>;

/// Polls once, without a task to wake.
fn poll(future: &mut Acquiring) -> Poll<Result<LockGuard, LockError>> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

fn asleep(request: LockRequest) -> Acquiring {
    let mut future: Acquiring = Box::pin(request.acquire());
    assert!(poll(&mut future).is_pending());
    future
}

fn process(store: &MemoryBackend) -> Locktopus {
    let cohort = CohortSettings {
        turns: 64,
        budget: HOUR,
    };
    let builder = Locktopus::builder(store.another_client()).cohort(cohort);
    builder.max_lease(HOUR * 2).build().unwrap()
}

/// A leader announces how long it may be silent; that says nothing about the tasks after it.
#[tokio::test(start_paused = true)]
async fn a_turn_is_looked_after_whatever_the_leader_before_it_said() {
    for heartbeat in [1, 60].map(Duration::from_secs) {
        for handed in ["the lease", "the way to the backend"] {
            let store = MemoryBackend::new();
            let (locks, remote) = (process(&store), process(&store));
            let strategy = WaitStrategy::HandOff {
                heartbeat,
                confirm: false,
            };
            let request = || locks.lock("a").renewed_lease(HOUR).strategy(strategy);
            let held = remote.lock("a").acquire().await.unwrap();
            let leader = tokio::spawn(request().acquire());
            sleep(Duration::from_millis(10)).await;
            let _asleep = asleep(request());
            let next = tokio::spawn(request().acquire());
            // A check has run, and knows how long the leader may be silent.
            sleep(PATIENCE * 4).await;
            let begun = if handed == "the lease" {
                held.release().await.unwrap();
                let leader = leader.await.unwrap().unwrap();
                let begun = Instant::now();
                leader.release().await.unwrap();
                begun
            } else {
                leader.abort();
                assert!(leader.await.unwrap_err().is_cancelled());
                let begun = Instant::now();
                held.release().await.unwrap();
                begun
            };
            let next = timeout(HOUR * 9, next).await.unwrap().unwrap().unwrap();
            let late = begun.elapsed();
            assert!(
                late <= PATIENCE + SLACK,
                "{handed}, heartbeat {heartbeat:?}: kept for {late:?} by a task that does not run"
            );
            next.release().await.unwrap();
        }
    }
}

/// Each step of a leader has its own time, even a short step after a long one.
#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_in_a_short_step_is_deposed_after_that_step() {
    let script = Scripted::with_call_timeout(HOUR);
    let locks = script.locks();
    let held = script.other().lock("a").acquire().await.unwrap();
    let slow = PATIENCE * 3;
    script.next("attempt", [Fate::SlowReply(slow)]);
    let mut leader = asleep(locks.lock("a"));
    let follower = tokio::spawn(locks.lock("a").acquire());
    // The check runs during the attempt, which may take an hour. Then the leader sleeps for a
    // second.
    sleep(slow * 2).await;
    assert!(poll(&mut leader).is_pending());
    held.release().await.unwrap();
    let begun = Instant::now();
    let follower = timeout(HOUR * 9, follower).await.unwrap();
    let late = begun.elapsed();
    assert!(late < Duration::from_secs(5), "after {late:?}");
    follower.unwrap().unwrap().release().await.unwrap();
}

/// A leader that stops is deposed, in every call of an acquisition, the first time and the second
/// time.
#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_anywhere_is_deposed() {
    for (call, skip, keep) in [
        ("attempt", 0, Duration::ZERO),
        ("attempt", 1, Duration::ZERO),
        ("subscribe", 0, Duration::ZERO),
        ("subscribe", 0, PATIENCE),
        ("attempt", 0, PATIENCE),
    ] {
        let (script, locks) = Scripted::with_locks();
        let held = script.other().lock("a").acquire().await.unwrap();
        let fates = std::iter::repeat_n(Fate::Pass, skip).chain([Fate::Hang]);
        script.next(call, fates);
        let request = || locks.lock("a").lease_cache(keep);
        let leader = asleep(request());
        assert_eq!(script.calls(call).len(), skip + 1, "it is elsewhere");
        let follower = tokio::spawn(request().acquire());
        tokio::task::yield_now().await;
        held.release().await.unwrap();
        let begun = Instant::now();
        let follower = timeout(HOUR, follower).await;
        let late = begun.elapsed();
        let follower = follower.unwrap_or_else(|_| {
            panic!("the leader hangs in {call} ({skip} before), the lock is free, and nobody has it after {late:?}")
        });
        // Two heartbeats, the longest call, and the retries of a place that was lost.
        assert!(late < Duration::from_secs(5), "{call}: after {late:?}");
        follower.unwrap().unwrap().release().await.unwrap();
        drop(leader);
        until("nothing is left", || script.store.population() == (0, 0)).await;
        until("nothing to do", || locks.background_tasks() == 0).await;
    }
}

/// It was granted the lock and slept, so another task leads. It does not wait behind that one, and
/// its limit has not passed.
#[tokio::test(start_paused = true)]
async fn one_that_does_not_wait_and_is_deposed_finds_the_lock_free_or_busy() {
    let (script, locks) = Scripted::with_locks();
    script.next("attempt", [Fate::SlowReply(SLACK)]);
    let mut trying = Box::pin(locks.lock("a").try_acquire());
    let mut unwoken = Context::from_waker(Waker::noop());
    assert!(trying.as_mut().poll(&mut unwoken).is_pending());
    let follower = tokio::spawn(locks.lock("a").acquire());
    until("another one leads", || script.calls("attempt").len() > 1).await;
    let tried = timeout(HOUR, trying).await.unwrap();
    let guard = tried.expect("busy is no error");
    drop(guard);
    let follower = timeout(HOUR, follower).await.unwrap().unwrap();
    follower.unwrap().release().await.unwrap();
    until("nothing is left", || script.store.population() == (0, 0)).await;
}
