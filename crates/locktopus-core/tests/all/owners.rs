//! Owners: re-entry by handle and by scope.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{LockError, Locktopus, LostCause, Owner};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

fn locks() -> Locktopus {
    Locktopus::builder(MemoryBackend::new()).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_scope_makes_an_owner_of_whatever_runs_in_it() {
    let (script, locks) = Scripted::with_locks();
    assert!(Owner::current().is_none());
    let me = Owner::new();
    me.scope(async {
        assert!(Owner::current().is_some());
        let outer = locks.lock("a").acquire().await.unwrap();
        let inner = locks.lock("a").try_acquire().await.unwrap().unwrap();
        assert_eq!((outer.hold_count(), inner.token()), (2, outer.token()));
        let fair = locks.fair_lock("b").acquire().await.unwrap();
        let again = locks.fair_lock("b").acquire().await.unwrap();
        assert_eq!(again.hold_count(), 2);
        outer.release().await.unwrap();
        inner.ensure_valid().unwrap();
        // Tasks do not inherit the scope. An owner that is named explicitly wins.
        let request = locks.lock("a");
        let task = tokio::spawn(async move { request.try_acquire().await.unwrap().is_none() });
        assert!(task.await.unwrap());
        let other = Owner::new();
        let request = locks.lock("a").owner(&other);
        assert!(request.try_acquire().await.unwrap().is_none());
        fair.release().await.unwrap();
        again.release().await.unwrap();
        // The handle and its scope are the same owner.
        let by_handle = locks.lock("a").owner(&me).acquire().await.unwrap();
        assert_eq!(by_handle.hold_count(), 2);
        by_handle.release().await.unwrap();
        inner.release().await.unwrap();
    })
    .await;
    assert!(Owner::current().is_none());
    let asked = script.calls("attempt");
    assert_eq!(
        asked.len(),
        2,
        "two grants, and what is held here is known: {asked:?}"
    );
    assert_eq!(script.store.population(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_inner_scope_counts() {
    let locks = locks();
    let (outer, inner) = (Owner::new(), Owner::new());
    let guard = locks.lock("a").owner(&outer).acquire().await.unwrap();
    let request = || locks.lock("a").try_acquire();
    let nested = outer.scope(async { inner.scope(request()).await });
    assert!(nested.await.unwrap().is_none());
    assert!(outer.scope(request()).await.unwrap().is_some());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn entering_again_after_a_loss_is_an_error() {
    let store = MemoryBackend::new();
    let locks = Locktopus::builder(store.clone()).build().unwrap();
    let rw = locks.rw_lock("b");
    Owner::new()
        .scope(async {
            let lease = Duration::from_secs(1);
            let lost = locks.lock("a").fixed_lease(lease).acquire().await.unwrap();
            let reading = rw.read().fixed_lease(lease).acquire().await.unwrap();
            sleep(lease * 2).await;
            for error in [
                locks.lock("a").acquire().await.unwrap_err(),
                rw.read().acquire().await.unwrap_err(),
            ] {
                let LockError::Lost { cause, .. } = error else {
                    panic!("{error}")
                };
                assert_eq!(cause, LostCause::Expired);
            }
            drop((lost, reading));
            // Once the guards are dropped, the owner may start again.
            let guard = locks.lock("a").acquire().await.unwrap();
            assert_eq!(guard.hold_count(), 1);
            guard.release().await.unwrap();
            rw.write().acquire().await.unwrap().release().await.unwrap();
        })
        .await;
    until("nothing is left", || store.population() == (0, 0)).await;
}

/// A longer fixed lease asks the backend to extend the shared one. A shorter one does not.
#[tokio::test(start_paused = true)]
async fn entering_again_lengthens_a_fixed_lease_and_never_shortens_one() {
    let second = Duration::from_secs(1);
    let (script, me) = (Scripted::new(), Owner::new());
    let (locks, extends) = (script.locks(), || script.calls("extend").len());
    let request = || locks.lock("a").owner(&me);
    let fixed = |lease| request().fixed_lease(lease).acquire();
    let outer = fixed(2 * second).await.unwrap();
    let short = (fixed(second / 2).await.unwrap(), request().acquire().await);
    assert_eq!((extends(), outer.hold_count()), (0, 3));
    sleep(second / 10).await;
    drop(fixed(2 * second).await.unwrap());
    assert_eq!(extends(), 0, "as long as it was taken for");
    let long = fixed(10 * second).await.unwrap();
    assert!(
        outer.remaining() > 9 * second && extends() == 1,
        "{outer:?}"
    );
    script.next("extend", [Fate::Refuse]);
    let failed = fixed(20 * second).await;
    assert!(
        matches!(failed, Err(LockError::Backend { .. })),
        "{failed:?}"
    );
    // The wait ends when the caller says so, even if the backend does not answer.
    script.next("extend", [Fate::Hang, Fate::Hang]);
    let cancel = CancellationToken::new();
    let (limited, cancelled) = (request().fixed_lease(20 * second), cancel.child_token());
    let cancelled = limited.clone().cancel_on(cancelled).acquire();
    let limited = limited.wait_at_most(Duration::ZERO).acquire();
    let begun = Instant::now();
    let limited = limited.await.unwrap_err();
    assert!(
        matches!(limited, LockError::WaitTimeout { .. }),
        "{limited}"
    );
    let (cancelled, ()) = tokio::join!(cancelled, async { cancel.cancel() });
    let cancelled = cancelled.unwrap_err();
    assert!(
        matches!(cancelled, LockError::Cancelled { .. }),
        "{cancelled}"
    );
    assert!(begun.elapsed() < second / 10, "{:?}", begun.elapsed());
    assert_eq!(outer.hold_count(), 3 + 1);
    sleep(5 * second).await;
    drop((short, long));
    outer.release().await.unwrap();

    // The watchdog renews it while there is a guard, up to the maximum hold time.
    let renewed = request().max_hold(8 * second).acquire().await.unwrap();
    let inner = fixed(60 * second).await.unwrap();
    assert_eq!((extends(), renewed.hold_count()), (4, 2));
    assert!(inner.remaining() <= 8 * second);
}

/// Releasing the guard of a lost lease would end a new hold under the same id.
#[tokio::test(start_paused = true)]
async fn a_writer_may_read_again_once_it_has_dropped_the_guard_of_a_lost_reading() {
    let (rw, me) = (locks().rw_lock("a"), Owner::new());
    let writing = rw.write().owner(&me).acquire().await.unwrap();
    let lease = Duration::from_secs(1);
    let reading = rw.read().owner(&me).fixed_lease(lease).acquire().await;
    let reading = reading.unwrap();
    sleep(2 * lease).await;
    let error = writing.read().await.unwrap_err();
    assert!(
        error.is_lost() && error.to_string().contains("read_lock"),
        "{error}"
    );
    writing.ensure_valid().unwrap();
    drop(reading);
    let reading = writing.downgrade().await.unwrap();
    reading.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mutex_tells_its_owner_instead_of_waiting_for_ever() {
    let locks = locks();
    Owner::new()
        .scope(async {
            let guard = locks.mutex("a").acquire().await.unwrap();
            let again = locks.mutex("a").wait_at_most(Duration::from_secs(1));
            let error = again.acquire().await.unwrap_err();
            assert!(matches!(error, LockError::NotReentrant { .. }), "{error}");
            guard.release().await.unwrap();
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn tasks_of_one_owner_do_not_race_for_both_halves() {
    let locks = locks();
    let (rw, me) = (locks.rw_lock("a"), Owner::new());
    let other = rw.read().acquire().await.unwrap();
    let writer = tokio::spawn(rw.write().owner(&me).acquire());
    sleep(Duration::from_millis(20)).await;
    let limit = Duration::from_millis(30);
    let reader = rw.read().owner(&me).wait_at_most(limit).acquire().await;
    let error = reader.unwrap_err();
    assert!(matches!(error, LockError::WaitTimeout { .. }), "{error}");
    let reader = tokio::spawn(rw.read().owner(&me).acquire());
    sleep(Duration::from_millis(20)).await;
    other.release().await.unwrap();
    let writer = writer.await.unwrap().unwrap();
    let reader = reader.await.unwrap().unwrap();
    assert_eq!(reader.owner_id(), writer.owner_id());
    writer.release().await.unwrap();
    reader.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_guards_share_does_not_travel() {
    let locks = locks();
    let first = locks.lock("shared").acquire().await.unwrap();
    let second = first.reenter().unwrap();
    let Err(first) = first.into_ticket() else {
        panic!("the other guard would hold what another process has");
    };
    assert_eq!(first.hold_count(), 2);
    for guard in [&first, &second] {
        guard.ensure_valid().unwrap();
    }
    second.release().await.unwrap();
    let ticket = first.into_ticket().unwrap();
    let adopted = locks.lock("shared").adopt(&ticket).await.unwrap();
    adopted.release().await.unwrap();
}
