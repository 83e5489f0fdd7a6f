//! Locks with a minimum hold time: a lock that is released early stays held, without a holder.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{
    LockError, LockRequest, Locktopus, LostCause, Owner, SafetyMode, UnlessBusy as _, WaitStrategy,
};
use locktopus_memory::MemoryBackend;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

const LEAST: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// Two processes with the same locks.
fn two() -> (Locktopus, Locktopus) {
    let store = MemoryBackend::new();
    let locks = |backend| Locktopus::builder(backend).build().unwrap();
    (locks(store.another_client()), locks(store))
}

fn held_at_least(locks: &Locktopus) -> LockRequest {
    locks.lock("a").hold_at_least(LEAST)
}

/// Free for this process within a second after `LEAST` since `begun`, and not before.
async fn is_free_in_time(locks: &Locktopus, begun: Instant) {
    sleep((begun + LEAST - SECOND).saturating_duration_since(Instant::now())).await;
    assert!(
        locks.lock("a").try_acquire().await.unwrap().is_none(),
        "too early"
    );
    sleep(SECOND * 2).await;
    let guard = locks.lock("a").try_acquire().await.unwrap();
    guard.expect("free in time").release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn however_it_is_given_back() {
    for way in ["release", "drop", "cancelled release", "run", "shutdown"] {
        let (locks, others) = two();
        let begun = Instant::now();
        if way == "run" {
            held_at_least(&locks).run(|_| async {}).await.unwrap();
        } else {
            let guard = held_at_least(&locks).acquire().await.unwrap();
            sleep(SECOND).await;
            match way {
                "release" => guard.release().await.unwrap(),
                "drop" => drop(guard),
                "cancelled release" => {
                    let release = guard.release();
                    let _ = timeout(Duration::ZERO, release).await;
                }
                _ => {
                    let _ = locks.shutdown(SECOND).await;
                }
            }
        }
        println!("{way}");
        is_free_in_time(&others, begun).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_holds_it_for_longer_gives_it_back_at_once() {
    let (locks, others) = two();
    let guard = held_at_least(&locks).acquire().await.unwrap();
    sleep(LEAST + SECOND).await;
    guard.release().await.unwrap();
    assert!(others.lock("a").try_acquire().await.unwrap().is_some());
}

/// A turn that one task of a process has finished goes to no other task before its time, waiting or
/// not.
#[tokio::test(start_paused = true)]
async fn nobody_of_the_same_process_has_it_early() {
    let (locks, _) = two();
    let begun = Instant::now();
    let guard = held_at_least(&locks).acquire().await.unwrap();
    let waiting = tokio::spawn(held_at_least(&locks).into_future());
    // No time passes, so the local queue could pass the lease on: its time budget (20 ms) is not
    // used up.
    for _ in 0..100 {
        yield_now().await;
    }
    guard.release().await.unwrap();
    assert!(held_at_least(&locks).try_acquire().await.unwrap().is_none());
    let next = waiting.await.unwrap().unwrap();
    assert!(begun.elapsed() >= LEAST, "{:?}", begun.elapsed());
    assert!(
        begun.elapsed() <= LEAST + SECOND * 3,
        "{:?}",
        begun.elapsed()
    );
    // Passing it on started its time anew; a turn without a minimum time is passed on as usual.
    let third = tokio::spawn(locks.lock("a").into_future());
    sleep(LEAST * 2).await;
    next.release().await.unwrap();
    let third = third.await.unwrap().unwrap();
    assert!(begun.elapsed() <= LEAST * 3 + SECOND * 4);
    third.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cached_lease_is_none_of_it() {
    let store = MemoryBackend::new();
    let builder = Locktopus::builder(store.another_client()).lease_cache(SECOND);
    let locks = builder.build().unwrap();
    let others = Locktopus::builder(store).build().unwrap();
    let usual = locks.lock("a").acquire().await.unwrap();
    usual.release().await.unwrap();
    let begun = Instant::now();
    held_at_least(&locks).run(|_| async {}).await.unwrap();
    is_free_in_time(&others, begun).await;
}

#[tokio::test(start_paused = true)]
async fn entering_again_begins_the_time_anew() {
    let (locks, others) = two();
    let owner = Owner::new();
    let outer = locks.lock("a").owner(&owner).acquire().await.unwrap();
    sleep(LEAST).await;
    let begun = Instant::now();
    let inner = held_at_least(&locks).owner(&owner).acquire().await.unwrap();
    inner.release().await.unwrap();
    outer.release().await.unwrap();
    is_free_in_time(&others, begun).await;
}

#[tokio::test(start_paused = true)]
async fn several_are_held_together_or_leave_nothing() {
    let (locks, others) = two();
    let both = || locks.multi(["a", "b"]).hold_at_least(LEAST);
    let in_the_way = others.lock("b").acquire().await.unwrap();
    assert!(both().try_acquire().await.unwrap().is_none());
    let waited = both().wait_at_most(SECOND).acquire().await;
    assert!(waited.unless_busy().unwrap().is_none());
    // The locks taken while trying were never held.
    let mut free = others.lock("a").wait_at_most(SECOND).acquire().await;
    free.as_mut().unwrap().ensure_valid().unwrap();
    free.unwrap().release().await.unwrap();
    in_the_way.release().await.unwrap();
    let begun = Instant::now();
    both().acquire().await.unwrap().release().await.unwrap();
    assert!(others.lock("b").try_acquire().await.unwrap().is_none());
    is_free_in_time(&others, begun).await;
}

/// Locks of one store are taken together or not at all. With two stores, one lock is taken first,
/// and released.
#[tokio::test(start_paused = true)]
async fn several_of_two_stores_leave_nothing_either() {
    let ((here, others_here), (there, others_there)) = (two(), two());
    let both = || {
        here.multi(["a"])
            .add_on("there", there.lock("a"))
            .hold_at_least(LEAST)
    };
    for (in_the_way, free) in [(&others_here, &others_there), (&others_there, &others_here)] {
        let in_the_way = in_the_way.lock("a").acquire().await.unwrap();
        assert!(both().try_acquire().await.unwrap().is_none());
        let waited = both().wait_at_most(SECOND).acquire().await;
        assert!(waited.unless_busy().unwrap().is_none());
        let free = free.lock("a").wait_at_most(SECOND).acquire().await;
        free.unwrap().release().await.unwrap();
        in_the_way.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again() {
    let (script, locks) = Scripted::with_locks();
    let begun = Instant::now();
    let guard = held_at_least(&locks).acquire().await.unwrap();
    script.next("release", [Fate::LoseReply, Fate::Refuse]);
    guard.release().await.unwrap();
    is_free_in_time(&script.other(), begun).await;
}

/// A renewal under way must not prolong it.
#[tokio::test(start_paused = true)]
async fn a_late_renewal_changes_nothing() {
    let (script, locks) = Scripted::with_locks();
    script.always("extend", Fate::Late(SECOND * 30));
    let begun = Instant::now();
    let request = held_at_least(&locks).renewed_lease(LEAST * 10);
    let guard = request.acquire().await.unwrap();
    let extend = timeout(SECOND, guard.extend(LEAST * 10)).await;
    assert!(
        matches!(extend, Ok(Err(LockError::Backend { .. }))),
        "{extend:?}"
    );
    guard.release().await.unwrap();
    is_free_in_time(&script.other(), begun).await;
}

/// An attempt without an answer may arrive after the release, so the reaper releases a second time.
#[tokio::test(start_paused = true)]
async fn a_late_attempt_takes_nothing() {
    let (script, locks) = Scripted::with_locks();
    script.next("attempt", [Fate::Late(SECOND / 20)]);
    let begun = Instant::now();
    held_at_least(&locks).run(|_| async {}).await.unwrap();
    is_free_in_time(&script.other(), begun).await;
    until("nothing is left", || script.store.population() == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_over_sooner_stays_held_too() {
    let (locks, others) = two();
    let begun = Instant::now();
    let guard = held_at_least(&locks)
        .max_hold(SECOND)
        .acquire()
        .await
        .unwrap();
    assert_eq!(guard.lost().await, LostCause::MaxHold);
    drop(guard);
    is_free_in_time(&others, begun).await;
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    let store = MemoryBackend::new();
    let locks = Locktopus::builder(store.clone()).build().unwrap();
    let poll = WaitStrategy::Poll {
        min: SECOND,
        max: SECOND,
    };
    let fixed = held_at_least(&locks).fixed_lease(LEAST - SECOND);
    let too_long = locks.lock("a").hold_at_least(LEAST * 60 * 25);
    let requests = [
        (locks.rw_lock("a").read().hold_at_least(LEAST), "a `mutex`"),
        (
            locks.semaphore("a").permits(1).hold_at_least(LEAST),
            "a `mutex`",
        ),
        (
            locks.permit_semaphore("a").permits(1).hold_at_least(LEAST),
            "a `mutex`",
        ),
        (fixed, "fixed lease"),
        (too_long, "at most 1d"),
        (held_at_least(&locks).lease_cache(SECOND), "lease_cache"),
    ];
    for (request, part) in requests {
        let error = request.strategy(poll).acquire().await.unwrap_err();
        assert!(matches!(error, LockError::Option(_)), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let write = locks.rw_lock("a").write().hold_at_least(LEAST);
    assert!(matches!(write.acquire().await, Err(LockError::Option(_))));
    assert_eq!(store.population(), (0, 0));
    let fits = held_at_least(&locks).fixed_lease(LEAST);
    fits.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_backend_may_be_unable_to_or_have_a_longest_lease() {
    for (script, part) in [
        (Scripted::new().without_linger(), "cannot leave"),
        (
            Scripted::new().with_safety(SafetyMode::Quarantine {
                max_lease: LEAST / 2,
            }),
            "30s",
        ),
    ] {
        let error = held_at_least(&script.locks()).acquire().await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(script.calls("attempt").len(), 0);
    }
}
