//! A shutdown closes a cohort while its members come, wait, take turns and go. If it forgets a
//! waiter, loom reports a deadlock.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};

use super::stage::Step;
use super::{BackendLease, Cohort, at_once, model};

/// Closes a cohort as a shutdown does.
fn close(cohort: &Cohort) {
    let effects = cohort.queue().close();
    cohort.carry_out(effects);
}

/// Waits without a limit, and passes on the lease that it gets.
fn wait(cohort: &Cohort, number: u64) {
    let step = cohort.wait(number);
    assert!(!matches!(step, Step::QueueAgain), "nobody looks after it");
    cohort.go(number, step);
}

fn is_over(cohort: &Cohort, lease: &BackendLease) {
    assert_eq!(lease.was_given_back(), 1);
    assert!(cohort.is_empty(), "something is left in the line");
    let late = cohort.arrive();
    assert!(matches!(late.step, Some(Step::Stop(None))), "{late:?}");
}

#[test]
fn a_shutdown_ends_a_wait_or_it_had_its_turn() {
    model(|| {
        let lease = BackendLease::new();
        let (cohort, waiting) = Cohort::held(&lease, 1);
        let waiter = waiting[0];
        let closes = at_once(&cohort, close);
        let waits = at_once(&cohort, move |cohort| wait(cohort, waiter));
        cohort.pass(&lease);
        closes.join().unwrap();
        waits.join().unwrap();
        is_over(&cohort, &lease);
    });
}

#[test]
fn whoever_comes_to_a_shutdown_is_turned_away_or_told() {
    model(|| {
        let lease = BackendLease::new();
        let (cohort, _) = Cohort::held(&lease, 0);
        let closes = at_once(&cohort, close);
        let comes = at_once(&cohort, |cohort| {
            let arrival = cohort.arrive();
            match arrival.step {
                None => wait(cohort, arrival.number),
                Some(Step::Hold(..)) => panic!("nothing is kept"),
                Some(step) => {
                    cohort.go(arrival.number, step);
                }
            }
        });
        cohort.pass(&lease);
        closes.join().unwrap();
        comes.join().unwrap();
        is_over(&cohort, &lease);
    });
}

/// Its future is dropped during the notification of a shutdown: the lease must not stay with it.
#[test]
fn a_dropped_future_loses_no_lease_in_a_shutdown() {
    model(|| {
        let lease = BackendLease::new();
        let (cohort, waiting) = Cohort::held(&lease, 1);
        let waiter = waiting[0];
        let closes = at_once(&cohort, close);
        let drops = at_once(&cohort, move |cohort| cohort.drop_future(waiter));
        cohort.pass(&lease);
        closes.join().unwrap();
        drops.join().unwrap();
        is_over(&cohort, &lease);
    });
}

/// After a shutdown no lease is kept: no member will come, and none would give it back.
#[test]
fn a_lease_is_not_kept_after_a_shutdown() {
    model(|| {
        let lease = BackendLease::kept();
        let (cohort, _) = Cohort::held(&lease, 0);
        let closed = Arc::new(AtomicBool::new(false));
        let closes = at_once(&cohort, {
            let closed = Arc::clone(&closed);
            move |cohort| {
                close(cohort);
                closed.store(true, Ordering::SeqCst);
            }
        });
        let before = closed.load(Ordering::SeqCst);
        cohort.pass(&lease);
        closes.join().unwrap();
        let given_back = lease.was_given_back();
        // The watchdog gives back a lease that was kept before, as it does with all that it
        // watches.
        cohort.end_keeping(&lease);
        assert!(given_back == 1 || !before, "kept after the end");
        is_over(&cohort, &lease);
    });
}
