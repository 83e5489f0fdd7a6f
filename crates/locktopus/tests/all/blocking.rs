//! Locks for threads without a runtime.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use locktopus::blocking::{self, BlockingError, Locktopus};
use locktopus::{LockError, LostCause, Owner};

const SOON: Duration = Duration::from_secs(20);

fn locks() -> Locktopus {
    blocking::connect("memory:").unwrap()
}

#[test]
fn threads_exclude_each_other_and_a_drop_releases_before_it_returns() {
    let locks = locks();
    let (inside, entered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let guard = locks.lock("a").acquire().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    entered.fetch_add(1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(guard);
                }
            });
        }
    });
    assert_eq!(entered.load(Ordering::SeqCst), 100);
    for _ in 0..50 {
        // Nothing is left for the background, because a process may end right after the drop.
        drop(locks.mutex("b").try_acquire().unwrap().expect("free"));
        assert_eq!(locks.asynchronous().background_tasks(), 0);
    }
    assert_eq!(locks.shutdown(SOON).unwrap().abandoned, 0);
}

#[test]
fn leases_are_renewed_while_the_thread_does_something_else() {
    let locks = locks();
    let lease = Duration::from_millis(150);
    let guard = locks.lock("a").renewed_lease(lease).acquire().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < lease * 4 {
        thread::park_timeout(lease / 5);
        guard.ensure_valid().unwrap();
        assert!(locks.lock("a").try_acquire().unwrap().is_none());
    }
    let evicted = locks.asynchronous().lock("a").force_release("test");
    locks.wait_for(evicted).unwrap().unwrap();
    let cause = guard.lost_within(SOON).unwrap();
    assert!(
        matches!(cause, Some(LostCause::Evicted { .. })),
        "{cause:?}"
    );
    let error = guard.release().unwrap_err();
    assert!(matches!(error, BlockingError::Lock(LockError::Lost { .. })));
}

#[test]
fn waiting_ends_in_time() {
    let locks = locks();
    let guard = locks.fair_lock("a").acquire().unwrap();
    let error = locks.fair_lock("a").wait_at_most(Duration::from_millis(50));
    let error = error.acquire().unwrap_err();
    assert!(matches!(
        error,
        BlockingError::Lock(LockError::WaitTimeout { .. })
    ));
    assert!(guard.lost_within(Duration::ZERO).unwrap().is_none());
    guard.extend(Duration::from_secs(90)).unwrap();
    assert!(guard.remaining() > Duration::from_secs(60));
}

#[tokio::test]
async fn inside_a_runtime_calls_are_refused_and_drops_do_not_block() {
    let refused = blocking::connect("memory:");
    assert!(matches!(refused, Err(BlockingError::InsideRuntime)));
    let (locks, guard) = thread::spawn(|| {
        let locks = locks();
        let guard = locks.lock("a").acquire().unwrap();
        (locks, guard)
    })
    .join()
    .unwrap();
    let attempts = [
        locks.lock("b").acquire().map(drop),
        locks.lock("b").try_acquire().map(drop),
        locks.shutdown(SOON).map(drop),
        locks.latch("c").wait(),
        guard.extend(SOON),
        guard.lost_within(SOON).map(drop),
    ];
    for attempt in attempts {
        assert!(matches!(attempt, Err(BlockingError::InsideRuntime)));
    }
    drop(guard);
    // Dropped here, released there.
    let free = thread::spawn(move || {
        let again = locks.lock("a").wait_at_most(SOON).acquire();
        again.map(drop).map(|()| locks)
    });
    let locks = free.join().unwrap().unwrap();
    // The last user, and with it the thread.
    drop(locks);
}

#[test]
fn guards_outlive_what_they_came_from() {
    let locks = locks();
    let guard = locks.lock("a").acquire().unwrap();
    drop(locks);
    guard.ensure_valid().unwrap();
    guard.release().unwrap();
}

#[test]
fn owners_enter_again() {
    let (locks, owner) = (locks(), Owner::new());
    let outer = locks.lock("a").owner(&owner).acquire().unwrap();
    let inner = locks.lock("a").owner(&owner).acquire().unwrap();
    assert_eq!(outer.token(), inner.token());
    drop(outer);
    assert!(locks.lock("a").try_acquire().unwrap().is_none());
    drop(inner);
    assert!(locks.lock("a").try_acquire().unwrap().is_some());
}

#[test]
fn readers_permits_and_latches() {
    let locks = locks();
    let rw = locks.rw_lock("rw");
    let (first, second) = (rw.read().acquire().unwrap(), rw.read().acquire().unwrap());
    assert!(rw.write().try_acquire().unwrap().is_none());
    drop((first, second));
    let writer = rw.write().acquire().unwrap();
    assert!(rw.read().try_acquire().unwrap().is_none());
    drop(writer);

    for semaphore in [locks.semaphore("s"), locks.permit_semaphore("p")] {
        assert!(semaphore.initialise(3).unwrap());
        let two = semaphore.permits(2).acquire().unwrap();
        assert_eq!(
            (two.permits(), semaphore.available().unwrap()),
            (2, Some(1))
        );
        assert!(semaphore.permits(2).try_acquire().unwrap().is_none());
        drop(two);
        semaphore.permits(3).acquire().unwrap().release().unwrap();
        semaphore.resize(1).unwrap();
        assert_eq!(semaphore.available().unwrap(), Some(1));
        assert!(semaphore.delete().unwrap());
    }

    let limiter = locks.rate_limiter("r").wait_at_most(SOON / 1_000);
    assert!(limiter.initialise(3, SOON).unwrap());
    limiter.acquire().unwrap();
    limiter.acquire_many(2).unwrap();
    assert!(!limiter.try_acquire().unwrap());
    assert_eq!(limiter.set_rate(4, SOON).unwrap(), 1);
    assert_eq!(limiter.available().unwrap(), Some(1));
    limiter.acquire().unwrap();
    assert!(limiter.acquire().is_err());
    assert!(limiter.delete().unwrap());

    let latch = locks.latch("l");
    assert!(latch.initialise(2).unwrap());
    assert!(latch.wait_at_most(Duration::from_millis(20)).is_err());
    let waiter = thread::spawn({
        let latch = latch.clone();
        move || latch.wait()
    });
    assert_eq!(latch.count_down().unwrap(), 1);
    assert!(!waiter.is_finished());
    assert_eq!(latch.count_down().unwrap(), 0);
    waiter.join().unwrap().unwrap();
    assert_eq!(latch.count().unwrap(), 0);
}
