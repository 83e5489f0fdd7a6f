//! Every kind with every strategy: trying, waiting, giving up.

use crate::common;

use std::time::Duration;

use common::{Scripted, until};
use locktopus_core::{LockError, LockGuard, LockRequest, Locktopus, WaitStrategy};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn strategies() -> [WaitStrategy; 4] {
    [
        WaitStrategy::default(),
        WaitStrategy::HandOff {
            heartbeat: SECOND,
            confirm: true,
        },
        WaitStrategy::Notify { heartbeat: SECOND },
        WaitStrategy::Poll {
            min: Duration::from_millis(1),
            max: Duration::from_millis(64),
        },
    ]
}

const KINDS: [&str; 8] = [
    "lock", "fair", "mutex", "single", "write", "read", "permits", "ids",
];

/// A request of one kind that excludes others of its kind.
async fn request(locks: &Locktopus, kind: &str) -> LockRequest {
    match kind {
        "lock" => locks.lock(kind),
        "fair" => locks.fair_lock(kind),
        "mutex" => locks.mutex(kind),
        "single" => locks.mutex_as(kind, locktopus_core::MutexProfile::single_key()),
        "permits" => {
            let semaphore = locks.semaphore(kind);
            semaphore.initialise(2).await.unwrap();
            semaphore.permits(2)
        }
        "ids" => {
            let semaphore = locks.permit_semaphore(kind);
            semaphore.initialise(2).await.unwrap();
            semaphore.permits(2)
        }
        "read" => locks.rw_lock("rw").read(),
        other => panic!("{other}"),
    }
}

/// Takes the lock so that `wait` has to wait for it.
async fn hold(locks: &Locktopus, kind: &str) -> LockGuard {
    match kind {
        "read" | "write" => locks.rw_lock("rw").write().acquire().await.unwrap().into(),
        _ => request(locks, kind).await.acquire().await.unwrap(),
    }
}

async fn wait(
    locks: Locktopus,
    kind: &str,
    strategy: WaitStrategy,
    limit: Duration,
) -> Result<LockGuard, LockError> {
    if kind == "write" {
        let request = locks.rw_lock("rw").write().strategy(strategy);
        return Ok(request.wait_at_most(limit).acquire().await?.into());
    }
    let request = request(&locks, kind).await.strategy(strategy);
    request.wait_at_most(limit).acquire().await
}

async fn tries(locks: &Locktopus, kind: &str) -> bool {
    if kind == "write" {
        let request = locks.rw_lock("rw").write();
        return request.try_acquire().await.unwrap().is_some();
    }
    let request = request(locks, kind).await;
    request.try_acquire().await.unwrap().is_some()
}

async fn goes_round(holders: &Locktopus, waiters: &Locktopus, kind: &str, strategy: WaitStrategy) {
    let what = format!("{kind} {strategy:?}");
    let holder = hold(holders, kind).await;
    assert!(!tries(waiters, kind).await, "{what}");
    let limit = SECOND / 5;
    let begun = Instant::now();
    let error = wait(waiters.clone(), kind, strategy, limit).await;
    let error = error.map(|_| ()).unwrap_err();
    assert!(matches!(error, LockError::WaitTimeout { .. }), "{what}");
    assert!(begun.elapsed() >= limit && begun.elapsed() < 2 * limit);
    let kind_ = kind.to_owned();
    let locks = waiters.clone();
    let waiting = tokio::spawn(async move { wait(locks, &kind_, strategy, 20 * SECOND).await });
    sleep(SECOND * 3).await;
    assert!(!waiting.is_finished(), "{what}");
    let begun = Instant::now();
    holder.release().await.unwrap();
    let guard = timeout(5 * SECOND, waiting).await.expect(&what);
    let guard = guard.unwrap().unwrap();
    let took = begun.elapsed();
    assert!(took < SECOND / 5, "{what}: {took:?}");
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_kind_waits_in_every_way_also_without_a_queue() {
    let script = Scripted::new();
    let one = script.other();
    for two in [script.other(), script.locks()] {
        for kind in KINDS {
            for strategy in strategies() {
                goes_round(&one, &two, kind, strategy).await;
            }
        }
        until("nothing is left", || script.store.population() == (0, 0)).await;
    }
}

/// One release may make room for several; each of them notifies the next.
#[tokio::test(start_paused = true)]
async fn those_who_only_listen_go_together() {
    let store = MemoryBackend::new();
    let locks = Locktopus::builder(store.clone())
        .strategy(WaitStrategy::Notify {
            heartbeat: 60 * SECOND,
        })
        .build()
        .unwrap();
    let rw = locks.rw_lock("rw");
    let semaphore = locks.semaphore("s");
    semaphore.initialise(3).await.unwrap();
    let writer = rw.write().acquire().await.unwrap();
    let all = semaphore.permits(3).acquire().await.unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| tokio::spawn(rw.read().acquire())).collect();
    waiting.extend((0..3).map(|_| tokio::spawn(semaphore.permits(1).acquire())));
    sleep(SECOND).await;
    writer.release().await.unwrap();
    all.release().await.unwrap();
    let begun = Instant::now();
    let mut guards = Vec::new();
    for task in waiting {
        guards.push(task.await.unwrap().unwrap());
    }
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
}

/// Pauses grow from the shortest to the longest, and no two waiters stay in step.
#[tokio::test(start_paused = true)]
async fn spinning_backs_off() {
    let script = Scripted::new();
    let _holder = script.other().lock("a").acquire().await.unwrap();
    let (min, max) = (Duration::from_millis(2), Duration::from_millis(64));
    let request = script.locks().lock("a");
    let request = request.strategy(WaitStrategy::Poll { min, max });
    let _ = request.wait_at_most(2 * SECOND).acquire().await;
    let at: Vec<_> = script.calls("attempt").iter().map(|c| c.at).collect();
    let pauses: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The test clock counts whole milliseconds.
    let grain = Duration::from_millis(1);
    assert!(pauses[0] <= min + grain, "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= max + grain));
    assert!(pauses.iter().any(|pause| *pause > max / 2), "{pauses:?}");
    assert!(pauses.len() > 30, "up to the cap and not beyond");
    let distinct: std::collections::HashSet<_> = pauses.iter().skip(6).collect();
    assert!(distinct.len() > 5, "jitter: {pauses:?}");
}
