//! The watchdog: when it renews, which calls it saves, and when it declares a lock lost.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{LockGuard, Locktopus, LostCause};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(3);

async fn hold(script: &Scripted, name: &str) -> (LockGuard, Locktopus) {
    let locks = script.locks();
    (hold_renewed(&locks, name).await, locks)
}

async fn hold_renewed(locks: &Locktopus, name: &str) -> LockGuard {
    let request = locks.lock(name).renewed_lease(LEASE);
    request.acquire().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn renews_after_a_third_of_the_lease() {
    let script = Scripted::new();
    let begun = Instant::now();
    let (guard, _locks) = hold(&script, "a").await;
    sleep(LEASE * 5).await;
    guard.ensure_valid().unwrap();
    let mut before = begun;
    let renewals = script.calls("extend");
    assert!(
        (14..=16).contains(&renewals.len()),
        "{} renewals",
        renewals.len()
    );
    for renewal in renewals {
        let pause = renewal.at - before;
        // Rounded down by at most a 32nd of the period, and up to the timer's millisecond.
        assert!(
            pause > LEASE / 3 - LEASE / 90 && pause <= LEASE / 3 + Duration::from_millis(2),
            "{pause:?}"
        );
        before = renewal.at;
    }
    guard.release().await.unwrap();
    let count = script.calls("extend").len();
    sleep(LEASE * 3).await;
    assert_eq!(
        script.calls("extend").len(),
        count,
        "renewed after the release"
    );
}

async fn many(locks: &Locktopus, count: u32) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for i in 0..count {
        guards.push(hold_renewed(locks, &format!("a{i}")).await);
    }
    guards
}

#[tokio::test(start_paused = true)]
async fn neighbours_are_renewed_in_one_call() {
    let (script, locks) = Scripted::with_locks();
    let _guards = many(&locks, 50).await;
    sleep(LEASE / 2).await;
    let renewals = script.calls("extend");
    let renewed: usize = renewals.iter().map(|call| call.names.len()).sum();
    assert_eq!(renewed, 50);
    assert_eq!(renewals.len(), 1, "one shard, one moment, one call");
}

#[tokio::test(start_paused = true)]
async fn large_batches_are_split() {
    let (script, locks) = Scripted::with_locks();
    let _guards = many(&locks, 1_250).await;
    sleep(LEASE / 2).await;
    let sizes: Vec<_> = script
        .calls("extend")
        .iter()
        .map(|call| call.names.len())
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), 1_250);
    assert!(sizes.iter().all(|&size| size <= 100), "{sizes:?}");
    assert_eq!(sizes.len(), 13, "batches are full: {sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_hangs_delays_no_other() {
    let (script, locks) = Scripted::with_locks();
    let stuck = hold_renewed(&locks, "a").await;
    let fine = hold_renewed(&locks, "b").await;
    script.hang_shard(Some(u32::from(b'a')));
    let deadline = stuck.valid_until();
    let cause = stuck.lost().await;
    assert!(matches!(cause, LostCause::Unreachable { .. }), "{cause:?}");
    let late = Instant::now().saturating_duration_since(deadline);
    assert!(
        late <= Duration::from_millis(2),
        "told {late:?} after the deadline"
    );
    sleep(LEASE * 3).await;
    fine.ensure_valid().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_on_time_though_the_backend_never_answers() {
    // Even its own call timeout is longer than the lease.
    let script = Scripted::with_call_timeout(LEASE * 10);
    let (guard, _locks) = hold(&script, "a").await;
    script.always("extend", Fate::Hang);
    let deadline = guard.valid_until();
    let cause = guard.lost().await;
    assert!(matches!(cause, LostCause::Unreachable { .. }), "{cause:?}");
    assert!(Instant::now() <= deadline + Duration::from_millis(2));
    assert!(guard.ensure_valid().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_second_try_saves_the_lease() {
    for first in [Fate::Refuse, Fate::LoseReply, Fate::Hang] {
        let script = Scripted::with_call_timeout(LEASE * 10);
        let (guard, _locks) = hold(&script, "a").await;
        script.next("extend", [first]);
        sleep(LEASE * 3).await;
        guard
            .ensure_valid()
            .unwrap_or_else(|error| panic!("{first:?}: {error}"));
        let calls = script.calls("extend");
        let again = calls[1].at - calls[0].at;
        assert!(
            again <= LEASE / 3 + Duration::from_millis(100),
            "{first:?}: after {again:?}"
        );
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn many_failures_in_a_row_are_survived() {
    let script = Scripted::new();
    let (guard, _locks) = hold(&script, "a").await;
    script.next("extend", [Fate::Refuse; 6]);
    sleep(LEASE * 2).await;
    guard.ensure_valid().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_and_a_taken_lock_are_told_apart() {
    let script = Scripted::new();
    let (deleted, locks) = hold(&script, "a").await;
    let taken = hold_renewed(&locks, "b").await;
    script.store.clear();
    let _other = script.other().lock("b").acquire().await.unwrap();
    let (one, two) = tokio::join!(deleted.lost(), taken.lost());
    assert_eq!((one, two), (LostCause::Missing, LostCause::TakenOver));
    until("leases that are lost are forgotten", || locks.held() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_renewal_counts_from_its_sending() {
    let script = Scripted::with_call_timeout(LEASE);
    let (guard, _locks) = hold(&script, "a").await;
    let delay = LEASE / 4;
    script.always("extend", Fate::SlowReply(delay));
    until("renewed", || !script.calls("extend").is_empty()).await;
    let sent = script.calls("extend")[0].at;
    sleep(delay + Duration::from_millis(5)).await;
    assert!(
        guard.valid_until() < sent + LEASE,
        "counted from the answer"
    );
    assert!(guard.valid_until() > sent + LEASE * 9 / 10);
}

#[tokio::test(start_paused = true)]
async fn a_maximum_hold_ends_renewal() {
    let (script, locks) = Scripted::with_locks();
    let begun = Instant::now();
    let request = locks.lock("a").renewed_lease(LEASE).max_hold(LEASE * 2);
    let guard = request.acquire().await.unwrap();
    assert_eq!(guard.lost().await, LostCause::MaxHold);
    let held = begun.elapsed();
    assert!(
        held >= LEASE * 2 && held <= LEASE * 2 + Duration::from_millis(2),
        "{held:?}"
    );
    // The work hangs and drops nothing, so the lock must expire on the store, and soon.
    let next = timeout(LEASE / 4, script.other().lock("a").acquire()).await;
    assert!(next.is_ok(), "the last renewals were longer than needed");
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn leases_of_years_do_not_stop_the_watchdog() {
    let script = Scripted::new();
    let years = Duration::from_secs(10 * 365 * 24 * 60 * 60);
    let locks = script.builder().max_lease(years).build().unwrap();
    let explicit = locks.lock("a").fixed_lease(years).acquire().await.unwrap();
    let request = locks.lock("b").renewed_lease(years).max_hold(Duration::MAX);
    let renewed = request.acquire().await.unwrap();
    let ordinary = hold_renewed(&locks, "c").await;
    sleep(LEASE * 4).await;
    for guard in [&explicit, &renewed, &ordinary] {
        guard.ensure_valid().unwrap();
    }
    assert!(explicit.remaining() > years / 2);
}

#[test]
fn a_lock_acquired_on_a_short_lived_runtime_is_renewed() {
    let main = tokio::runtime::Runtime::new().unwrap();
    let script = Scripted::new();
    // Long enough for an overloaded machine: this test does not run in paused time.
    let lease = Duration::from_secs(2);
    let locks = {
        let _runtime = main.enter();
        script.locks()
    };
    let other = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let guard = other
        .block_on(locks.lock("a").renewed_lease(lease).acquire())
        .unwrap();
    drop(other);
    main.block_on(async {
        let end = Instant::now() + lease;
        while Instant::now() < end || script.calls("extend").len() < 3 {
            guard.ensure_valid().unwrap();
            sleep(lease / 20).await;
        }
    });
}

/// The slot of a released lease goes to the next lease, while the answer to the first one's renewal
/// is still under way. That answer must not count for the new lease.
#[tokio::test(start_paused = true)]
async fn a_late_answer_does_not_renew_the_lease_that_took_the_place() {
    let script = Scripted::new();
    let (first, locks) = hold(&script, "a").await;
    script.next("extend", [Fate::SlowReply(Duration::from_millis(500))]);
    until("a renewal is under way", || {
        !script.calls("extend").is_empty()
    })
    .await;
    first.release().await.unwrap();
    let fixed = locks.lock("b").fixed_lease(LEASE).acquire().await.unwrap();
    let begun = Instant::now();
    assert_eq!(
        timeout(LEASE * 2, fixed.lost()).await,
        Ok(LostCause::Expired)
    );
    assert!(begun.elapsed() <= LEASE);
    let renewed: Vec<_> = script
        .calls("extend")
        .into_iter()
        .flat_map(|call| call.names)
        .collect();
    assert!(
        !renewed.contains(&"b".to_owned()),
        "a fixed lease was renewed"
    );
}

/// A timer that has fired is dead. Removing its lease must not disarm the timer that came after it.
#[tokio::test(start_paused = true)]
async fn leases_that_come_and_go_leave_the_others_watched() {
    let script = Scripted::new();
    let (kept, locks) = hold(&script, "kept").await;
    let begun = Instant::now();
    let mut number = 0;
    while begun.elapsed() < LEASE * 4 {
        // Some are due just when they are released, some are not.
        let lease = Duration::from_millis(60 + number % 7 * 10);
        let request = locks.lock(format!("brief-{number}")).renewed_lease(lease);
        let guard = request.acquire().await.unwrap();
        sleep(lease / 3 + Duration::from_millis(number % 3)).await;
        drop(guard);
        number += 1;
    }
    kept.ensure_valid().unwrap();
    assert_eq!(locks.held(), 1);
    kept.release().await.unwrap();
}

/// A lost lock is given back only when its guard is dropped, unless it was held too long.
#[tokio::test(start_paused = true)]
async fn only_what_is_held_too_long_is_given_back_before_its_guard_is() {
    let (script, locks) = Scripted::with_locks();
    let expired = locks.lock("expired").fixed_lease(SECOND).acquire().await;
    let too_long = locks.lock("too-long").max_hold(SECOND).acquire().await;
    let (expired, too_long) = (expired.unwrap(), too_long.unwrap());
    sleep(5 * SECOND).await;
    assert_eq!(expired.lost().await, LostCause::Expired);
    assert_eq!(too_long.lost().await, LostCause::MaxHold);
    let released = |name: &str| {
        let calls = script.calls("release");
        let of_it = |call: &&common::Call| call.names.iter().any(|known| known == name);
        calls.iter().filter(of_it).count()
    };
    assert_eq!((released("expired"), released("too-long")), (0, 1));
    drop((expired, too_long));
    sleep(SECOND).await;
    assert_eq!((released("expired"), released("too-long")), (1, 1));
}

/// An extension counts as a renewal: the next one is due after a third of the lease from then on.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_extended_is_renewed_a_third_of_it_later() {
    let script = Scripted::new();
    let lease = 30 * SECOND;
    let locks = script.locks();
    let request = locks.lock("a").renewed_lease(lease);
    let guard = request.acquire().await.unwrap();
    sleep(9 * SECOND).await;
    guard.extend(lease).await.unwrap();
    let extended = script.calls("extend").len();
    sleep(9 * SECOND).await;
    assert_eq!(script.calls("extend").len(), extended, "not due yet");
    sleep(2 * SECOND).await;
    assert_eq!(script.calls("extend").len(), extended + 1);
    guard.ensure_valid().unwrap();
}
