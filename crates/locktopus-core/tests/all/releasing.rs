//! Releasing locks, with every accident to the release and to the guard.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{LockError, Locktopus, LostCause, MutexProfile, Phase};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_was_lost_is_good() {
    let (script, locks) = Scripted::with_locks();
    let guard = locks.lock("a").acquire().await.unwrap();
    script.next("release", [Fate::LoseReply]);
    guard.release().await.unwrap();
    assert_eq!(script.calls("release").len(), 2);
    assert_eq!(script.store.population().0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_release_goes_on_in_the_background_when_the_backend_does_not_answer() {
    for fate in [Fate::Refuse, Fate::Hang] {
        let (script, locks) = Scripted::with_locks();
        let guard = locks.lock("a").acquire().await.unwrap();
        script.always("release", fate);
        let begun = Instant::now();
        let outcome = guard.release().await;
        let told = matches!(
            outcome,
            Err(LockError::Backend {
                phase: Phase::Release,
                ..
            })
        );
        assert!(told, "{fate:?}: {outcome:?}");
        assert!(
            begun.elapsed() <= Duration::from_millis(200),
            "{fate:?}: {:?}",
            begun.elapsed()
        );
        script.always("release", Fate::Pass);
        until("released after all", || script.store.population().0 == 0).await;
        until("nothing is left to do", || locks.background_tasks() == 0).await;
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the lease merely lapsed"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_lost_lock_says_so() {
    let (script, locks) = Scripted::with_locks();
    let guard = locks.lock("a").acquire().await.unwrap();
    script.store.clear();
    let outcome = guard.release().await;
    let lost = matches!(
        outcome,
        Err(LockError::Lost {
            cause: LostCause::Missing,
            ..
        })
    );
    assert!(lost, "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_is_released_at_once_and_tried_until_its_lease_ends() {
    let (script, locks) = Scripted::with_locks();
    let lease = Duration::from_secs(10);
    let guard = locks.lock("a").fixed_lease(lease).acquire().await.unwrap();
    script.always("release", Fate::Refuse);
    drop(guard);
    assert_eq!(
        locks.held(),
        0,
        "renewal stops with the drop, not with the release"
    );
    until("it gives up in the end", || locks.background_tasks() == 0).await;
    assert_eq!(
        script.store.population().0,
        0,
        "it gave up before the lease had ended"
    );
    let tries = script.calls("release").len();
    assert!((8..40).contains(&tries), "{tries} tries in {lease:?}");
}

#[test]
fn a_guard_may_be_dropped_outside_any_runtime_and_after_its_runtime() {
    let store = MemoryBackend::new();
    let acquire = |runtime: &tokio::runtime::Runtime, name: &str| {
        runtime.block_on(async {
            let locks = Locktopus::builder(store.another_client()).build().unwrap();
            locks.lock(name).acquire().await.unwrap()
        })
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (outside, survivor) = (acquire(&runtime, "outside"), acquire(&runtime, "survivor"));
    drop(outside);
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while store.population().0 > 1 {
        assert!(
            std::time::Instant::now() < end,
            "not released from outside the runtime"
        );
        std::thread::yield_now();
    }
    drop(runtime);
    drop(survivor);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_may_be_dropped_on_a_thread_without_a_runtime() {
    let (script, locks) = Scripted::with_locks();
    // These leases continue, so a thread without a runtime must update the timers.
    let _others = [
        locks.lock("b").acquire().await.unwrap(),
        locks.lock("c").acquire().await.unwrap(),
    ];
    for lease in [1, 20, 60] {
        let request = locks.lock("a").renewed_lease(Duration::from_secs(lease));
        let guard = request.acquire().await.unwrap();
        std::thread::spawn(move || drop(guard)).join().unwrap();
        until("released", || script.store.population().0 == 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_moves_between_tasks_and_a_panic_gives_it_back() {
    let (script, locks) = Scripted::with_locks();
    let guard = locks.lock("a").acquire().await.unwrap();
    let moved = tokio::spawn(async move {
        guard.ensure_valid().unwrap();
        panic!(
            "the work failed, on purpose, with {:?} in hand",
            guard.name()
        );
    });
    assert!(moved.await.unwrap_err().is_panic());
    until("released", || script.store.population().0 == 0).await;
}

#[tokio::test(start_paused = true)]
async fn locks_are_given_back_in_the_order_of_dropping() {
    let (script, locks) = Scripted::with_locks();
    {
        let _first = locks.lock("first").acquire().await.unwrap();
        let _second = locks.lock("second").acquire().await.unwrap();
    }
    until("released", || script.store.population().0 == 0).await;
    let names: Vec<_> = script
        .calls("release")
        .into_iter()
        .flat_map(|call| call.names)
        .collect();
    assert_eq!(names, ["second", "first"]);
}

#[tokio::test(start_paused = true)]
async fn lost_tells_that_the_guard_is_gone() {
    let locks = Scripted::new().locks();
    let guard = locks.lock("a").acquire().await.unwrap();
    let (lease, token) = (guard.lease(), guard.lost_token());
    assert!(lease.remaining() > Duration::from_secs(20) && !token.is_cancelled());
    drop(guard);
    assert_eq!(lease.lost().await, LostCause::Released);
    assert!(token.is_cancelled() && lease.remaining().is_zero() && lease.ensure_valid().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_failed_extension_leaves_the_deadline() {
    let (script, locks) = Scripted::with_locks();
    let request = locks.lock("a").fixed_lease(Duration::from_secs(10));
    let guard = request.acquire().await.unwrap();
    let before = guard.valid_until();
    for fate in [Fate::Refuse, Fate::LoseReply, Fate::Hang] {
        script.next("extend", [fate]);
        let outcome = guard.extend(Duration::from_secs(60)).await;
        assert!(
            matches!(
                outcome,
                Err(LockError::Backend {
                    phase: Phase::Extend,
                    ..
                })
            ),
            "{outcome:?}"
        );
        assert_eq!(guard.valid_until(), before);
    }
    assert!(guard.extend(Duration::from_secs(60)).await.unwrap() > before);
    sleep(Duration::from_secs(30)).await;
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_twice_and_guards_after_it_are_fine() {
    let (script, locks) = Scripted::with_locks();
    let guard = locks.lock("a").acquire().await.unwrap();
    script.always("release", Fate::Refuse);
    let report = locks.shutdown(Duration::from_secs(1)).await;
    assert_eq!(report.abandoned, 1, "the release was never confirmed");
    assert_eq!(locks.held(), 0);
    assert_eq!(guard.lost().await, LostCause::ShutDown);
    let outcome = guard.release().await;
    assert!(
        matches!(
            outcome,
            Err(LockError::Lost {
                cause: LostCause::ShutDown,
                ..
            })
        ),
        "{outcome:?}"
    );
    until("what was abandoned ends", || locks.background_tasks() == 0).await;
    assert_eq!(locks.shutdown(Duration::ZERO).await.abandoned, 0);
}

/// Their guards are still there. But their holds are over, and no request is kept out by them once
/// the shutdown reports that nothing is left.
#[tokio::test(start_paused = true)]
async fn a_shutdown_leaves_nothing_of_what_was_held_for_too_long() {
    for told in [false, true] {
        let (script, locks) = Scripted::with_locks();
        let limit = Duration::from_secs(1);
        locks.semaphore("s").initialise(1).await.unwrap();
        let requests = [
            locks.lock("l"),
            locks.fair_lock("f"),
            locks.rw_lock("r").read(),
            locks.mutex_as("m", MutexProfile::redis_py()),
            locks.semaphore("s").permits(1),
        ];
        let mut guards = Vec::new();
        for request in requests {
            guards.push(request.max_hold(limit).acquire().await.unwrap());
        }
        if !told {
            sleep(limit * 2).await;
        } else {
            // A guard that checks finds it before the watchdog does.
            tokio::time::advance(limit * 2).await;
        }
        assert!(guards.iter().all(|guard| guard.ensure_valid().is_err()));
        if told {
            sleep(Duration::from_millis(5)).await;
        }
        let report = locks.shutdown(Duration::from_secs(5)).await;
        assert_eq!(
            (report.abandoned, script.store.population()),
            (0, (0, 0)),
            "{told}"
        );
        for guard in guards {
            let outcome = guard.release().await;
            let cause = LostCause::MaxHold;
            assert!(matches!(outcome, Err(LockError::Lost { cause: found, .. }) if found == cause));
        }
    }
}
