//! The chaos layer follows its orders, and the library above it keeps its promises.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{BackendErrorKind, Executed};
use locktopus_core::{LockError, Locktopus, LostCause, WaitStrategy};
use locktopus_layers::{Call, Chaos, Fault};
use locktopus_memory::MemoryBackend;
use tokio::time::Instant;

const LEASE: Duration = Duration::from_secs(30);

fn chaotic() -> (Chaos, Locktopus, MemoryBackend) {
    let store = MemoryBackend::new();
    let chaos = Chaos::new(Arc::new(store.another_client()));
    let locks = Locktopus::builder(chaos.clone());
    (chaos, locks.build().unwrap(), store)
}

fn kind_and_executed(error: &LockError) -> (BackendErrorKind, Executed) {
    let LockError::Backend { source, .. } = error else {
        panic!("not an error of the backend: {error}");
    };
    (source.kind(), source.executed())
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_goes_to_the_next_and_its_holder_hears_of_it() {
    let (chaos, locks, store) = chaotic();
    let other = Locktopus::builder(store.another_client()).build().unwrap();
    let victim = locks.lock("a").acquire().await.unwrap();
    assert_eq!(chaos.lose("a").await.unwrap(), 1);
    victim.ensure_valid().unwrap();
    let next = other.lock("a").try_acquire().await.unwrap().unwrap();
    assert!(
        next.token() > victim.token(),
        "it can be told from the victim"
    );
    let started = Instant::now();
    assert_eq!(victim.lost().await, LostCause::TakenOver);
    assert!(started.elapsed() < LEASE / 2, "heard by a renewal");
    assert!(matches!(
        victim.release().await,
        Err(LockError::Lost { .. })
    ));
    assert_eq!(chaos.lose("never asked for").await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_a_name_can_be_lost() {
    let (chaos, locks, _store) = chaotic();
    let rw = locks.rw_lock("rw");
    let readers = [
        rw.read().acquire().await.unwrap(),
        rw.read().acquire().await.unwrap(),
    ];
    assert_eq!(chaos.lose("rw").await.unwrap(), 2);
    for reader in readers {
        assert_eq!(reader.lost().await, LostCause::Missing);
    }
    let mutex = locks.mutex("m").acquire().await.unwrap();
    assert_eq!(chaos.lose("m").await.unwrap(), 1);
    assert_eq!(mutex.lost().await, LostCause::Missing);
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_did_not_run() {
    let (chaos, locks, store) = chaotic();
    chaos.fail_times(Call::Attempt, Fault::Refuse, 1);
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(
        kind_and_executed(&error),
        (BackendErrorKind::Unavailable, Executed::No)
    );
    assert_eq!(store.population().0, 0);
    assert!(locks.lock("a").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_is_lost_ran_and_is_undone() {
    let (chaos, locks, store) = chaotic();
    chaos.fail_times(Call::Attempt, Fault::LoseAnswer, 1);
    let attempt = locks.lock("a").try_acquire();
    let error = attempt.await.unwrap_err();
    assert_eq!(
        kind_and_executed(&error),
        (BackendErrorKind::Timeout, Executed::Maybe)
    );
    let report = locks.shutdown(LEASE * 2).await;
    assert_eq!(report.abandoned, 0);
    assert_eq!(store.population().0, 0, "what was taken was given back");
}

#[tokio::test(start_paused = true)]
async fn renewals_that_are_refused_end_in_a_loss_on_time() {
    let (chaos, locks, _store) = chaotic();
    let guard = locks.lock("a").acquire().await.unwrap();
    chaos.fail(Call::Extend, Fault::Refuse);
    let started = Instant::now();
    let cause = guard.lost().await;
    assert!(matches!(cause, LostCause::Unreachable { .. }), "{cause:?}");
    assert!(started.elapsed() <= LEASE, "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn calm_ends_every_order() {
    let (chaos, locks, _store) = chaotic();
    for call in [Call::Attempt, Call::Extend, Call::Release] {
        chaos.fail(call, Fault::Refuse);
    }
    chaos.calm();
    let guard = locks.lock("a").try_acquire().await.unwrap().unwrap();
    tokio::time::sleep(LEASE * 2).await;
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn delayed_calls_arrive_late_and_held_up_calls_never() {
    let (chaos, locks, store) = chaotic();
    let late = Duration::from_millis(60);
    chaos.fail_times(Call::Attempt, Fault::Delay(late), 1);
    let started = Instant::now();
    let guard = locks.lock("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(started.elapsed(), late);
    guard.release().await.unwrap();
    for fault in [Fault::Delay(LEASE), Fault::Hang] {
        chaos.fail_times(Call::Attempt, fault, 1);
        let error = locks.lock("b").try_acquire().await.unwrap_err();
        assert_eq!(
            kind_and_executed(&error),
            (BackendErrorKind::Timeout, Executed::Maybe)
        );
        assert_eq!(store.population().0, 0);
    }
}

/// How long a waiter waits for a lock that is released after a second.
async fn waits(chaos: &Chaos, locks: &Locktopus, store: &MemoryBackend, deaf: bool) -> Duration {
    let strategy = WaitStrategy::HandOff {
        heartbeat: Duration::from_secs(20),
        confirm: false,
    };
    let other = Locktopus::builder(store.another_client()).build().unwrap();
    let holder = other.lock("a").acquire().await.unwrap();
    let waiter = locks.lock("a").fixed_lease(LEASE * 100).strategy(strategy);
    let waiter = tokio::spawn(async move { waiter.acquire().await.unwrap().release().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    if deaf {
        chaos.drop_notifications();
    }
    let released = Instant::now();
    holder.release().await.unwrap();
    waiter.await.unwrap().unwrap();
    released.elapsed()
}

#[tokio::test(start_paused = true)]
async fn without_notifications_waiters_find_out_by_looking() {
    let (chaos, locks, store) = chaotic();
    assert_eq!(waits(&chaos, &locks, &store, false).await, Duration::ZERO);
    let deaf = waits(&chaos, &locks, &store, true).await;
    assert!(deaf > Duration::from_secs(5), "{deaf:?}: it was told");
    assert!(deaf < Duration::from_secs(30), "{deaf:?}: it did not look");
    chaos.calm();
    assert_eq!(waits(&chaos, &locks, &store, false).await, Duration::ZERO);
}
