//! Waits end when they should and report their progress; debts end with their lease.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted};
use locktopus_core::{LockError, LockRequest, Locktopus, WaitPosition, WaitStrategy};
use tokio::time::{Instant, sleep};

/// The time that the first attempt has for its answer, and the call timeout of a backend that does
/// not keep to its deadline.
const FIRST: Duration = Duration::from_millis(250 + 50);
const CALL: Duration = Duration::from_secs(5);

fn kinds(locks: &Locktopus) -> Vec<LockRequest> {
    vec![
        locks.lock("a"),
        locks.lock("a").lease_cache(Duration::from_millis(50)),
        locks.lock("a").strategy(WaitStrategy::Poll {
            min: Duration::from_millis(5),
            max: Duration::from_millis(5),
        }),
        locks.mutex("b"),
        locks.fair_lock("c"),
        locks.rw_lock("d").read(),
        locks.semaphore("e").permits(1),
        locks.permit_semaphore("f").permits(1),
    ]
}

fn timed_out(outcome: &LockError) {
    assert!(
        matches!(outcome, LockError::WaitTimeout { .. }),
        "{outcome}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_no_time_is_short_on_a_server_that_hangs() {
    let script = Scripted::with_call_timeout(CALL);
    let locks = script.locks();
    for call in ["attempt", "subscribe", "counter"] {
        script.always(call, Fate::Hang);
    }
    for limit in [Duration::ZERO, Duration::from_nanos(1)] {
        for request in kinds(&locks) {
            let (text, begun) = (format!("{request:?}"), Instant::now());
            timed_out(&request.wait_at_most(limit).acquire().await.unwrap_err());
            let took = begun.elapsed();
            assert!(took <= FIRST * 2, "{text}: {took:?}");
        }
        let begun = Instant::now();
        let write = locks.rw_lock("d").write().wait_at_most(limit).acquire();
        timed_out(&write.await.unwrap_err());
        let latch = locks.latch("g").wait().at_most(limit);
        timed_out(&latch.await.unwrap_err());
        let several = locks.multi(["h"]).wait_at_most(limit).acquire();
        timed_out(&several.await.unwrap_err());
        assert!(begun.elapsed() <= FIRST * 4, "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_no_time_is_long_enough_for_an_answer() {
    let script = Scripted::with_call_timeout(CALL);
    let locks = script.locks();
    locks.semaphore("e").initialise(1).await.unwrap();
    locks.permit_semaphore("f").initialise(1).await.unwrap();
    for call in ["attempt", "counter"] {
        script.always(call, Fate::SlowReplyInTime(Duration::from_millis(40)));
    }
    for request in kinds(&locks) {
        let text = format!("{request:?}");
        let guard = request.wait_at_most(Duration::ZERO).acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("{text}: {error}"));
        guard.release().await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    let open = locks.latch("g").wait().at_most(Duration::ZERO);
    open.await.unwrap();
}

/// Time that passes before a request is awaited counts too.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_deadline_whenever_it_began() {
    let locks = Scripted::new().locks();
    let _held = locks.lock("a").acquire().await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let one = locks.lock("a").wait_at_most(Duration::from_secs(60));
    let (one, both) = (
        one.wait_until(deadline),
        locks.multi(["a", "b"]).wait_until(deadline),
    );
    sleep(Duration::from_secs(3)).await;
    let (one, both) = tokio::join!(one.acquire(), both.acquire());
    timed_out(&one.unwrap_err());
    timed_out(&both.unwrap_err());
    let late = Instant::now() - deadline;
    assert!(late < Duration::from_millis(10), "{late:?}");
}

/// The progress of waiters behind others of the same process.
#[tokio::test(start_paused = true)]
async fn those_who_wait_behind_a_leader_are_told_how_it_goes_on() {
    let script = Scripted::new();
    let store = &script.store;
    let build = || {
        Locktopus::builder(store.another_client())
            .cohort(locktopus_core::CohortSettings {
                turns: 64,
                budget: Duration::from_secs(60),
            })
            .build()
            .unwrap()
    };
    let (locks, remote) = (build(), build());
    let held = remote.lock("a").acquire().await.unwrap();
    let mut waiting = Vec::new();
    let mut progress = Vec::new();
    for _ in 0..4 {
        let (request, watch) = locks.lock("a").with_progress();
        waiting.push(tokio::spawn(request.acquire()));
        progress.push(watch);
        sleep(Duration::from_millis(5)).await;
    }
    sleep(Duration::from_secs(2)).await;
    let ahead = |standing: Option<WaitPosition>| standing.map(|standing| standing.ahead);
    for (index, watch) in progress.iter().enumerate() {
        let standing = watch.latest();
        assert_eq!(
            ahead(standing),
            Some(Some(index as u64)),
            "behind {index} of the same process"
        );
        let standing = standing.unwrap();
        assert!(standing.holder_remaining.is_some() && standing.estimate.is_some());
        assert!(standing.seen_at.elapsed() <= Duration::from_millis(1500));
    }
    // It is passed on in the process, and progress reports that too.
    held.release().await.unwrap();
    let mut waiting = waiting.into_iter();
    let first = waiting.next().unwrap().await.unwrap().unwrap();
    sleep(Duration::from_millis(200)).await;
    for (index, watch) in progress[1..].iter().enumerate() {
        assert_eq!(ahead(watch.latest()), Some(Some(index as u64)));
        assert!(watch.latest().unwrap().holder_remaining.is_some());
    }
    first.release().await.unwrap();
    for waiter in waiting {
        waiter.await.unwrap().unwrap().release().await.unwrap();
    }
    for mut watch in progress {
        while watch.next().await.is_some() {}
    }
}

/// A task that arrives while a member holds the lock gets a report at once.
#[tokio::test(start_paused = true)]
async fn a_newcomer_behind_a_holder_of_its_process_is_told() {
    let locks = Scripted::new().locks();
    let held = locks.lock("a").acquire().await.unwrap();
    let (request, mut progress) = locks.lock("a").with_progress();
    let waiting = tokio::spawn(request.acquire());
    // Before the next check of the queue.
    let seen = tokio::time::timeout(Duration::from_millis(10), progress.next()).await;
    assert!(seen.unwrap().unwrap().holder_remaining.is_some());
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn debts_end_with_the_lease_they_are_owed_for() {
    let script = Scripted::with_call_timeout(CALL);
    let locks = script.locks();
    let lease = Duration::from_secs(10);
    let mut guards = Vec::new();
    for number in 0..3_000 {
        let name = format!("a{number}");
        guards.push(locks.lock(name).fixed_lease(lease).acquire().await.unwrap());
    }
    // All on one shard, which is dead from now on.
    script.always("release", Fate::Hang);
    drop(guards);
    sleep(lease / 2).await;
    assert_eq!(locks.background_tasks(), 3_000);
    sleep(lease / 2 + CALL + Duration::from_secs(1)).await;
    assert_eq!(locks.background_tasks(), 0, "their leases are over");
    assert!(script.calls("release").len() <= 3 * 64 + 64);
}

/// A release that was never answered is not followed by a second one, so an attempt without an
/// answer does not keep it longer.
#[tokio::test(start_paused = true)]
async fn debts_of_attempts_without_an_answer_end_with_their_lease_too() {
    let script = Scripted::with_call_timeout(CALL);
    let locks = script.locks();
    let lease = Duration::from_secs(20);
    script.always("attempt", Fate::LoseReply);
    script.always("release", Fate::Refuse);
    let request = locks.lock("a").fixed_lease(lease);
    let _unknown = request.try_acquire().await.unwrap_err();
    sleep(lease / 2).await;
    assert_eq!(locks.background_tasks(), 1, "it may hold the lock");
    sleep(lease / 2 + CALL + Duration::from_secs(1)).await;
    assert_eq!(locks.background_tasks(), 0, "the lease is over");
}
