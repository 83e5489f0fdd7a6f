//! The local queue is closed while its members come, wait, are handed something and go. That loom finds nobody who can go on is
//! how a wait shows that a shutdown forgot.

use std::future::poll_fn;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::{JoinHandle, spawn};

use super::local_queue::{Arrival, LocalQueue};
use super::slot::{Slot, Turned};
use super::sync::Arc;
use super::{Asker, BootInstant, Lease, begin, cancel, held, leave, may, model, pass};

/// What a shutdown does with a local queue.
fn close(queue: &LocalQueue) {
    queue.close().iter().for_each(|slot| slot.wake());
}

fn at_once(queue: &Arc<LocalQueue>, work: impl FnOnce(&LocalQueue) + 'static) -> JoinHandle<()> {
    let queue = Arc::clone(queue);
    spawn(move || work(&queue))
}

/// Waits for as long as it takes, and passes on what it is handed.
fn wait(queue: &LocalQueue, slot: &Arc<Slot>) {
    match loom::future::block_on(poll_fn(|cx| slot.poll_turn(cx))) {
        Turned::Taken(_) => {
            if let Some(lease) = begin(queue, slot) {
                pass(queue, &lease);
            }
        }
        Turned::Dismissed => {}
        Turned::Revoked => panic!("nobody looks after it"),
    }
}

fn is_over(queue: &LocalQueue, lease: &Lease) {
    assert_eq!(lease.given_back.load(Ordering::SeqCst), 1);
    assert!(queue.is_empty(), "something is left in the line");
    let late = queue.arrive(|| Asker, BootInstant::now, may);
    assert!(matches!(late, Arrival::Closed), "{late:?}");
}

#[test]
fn a_shutdown_ends_a_wait_or_it_had_its_turn() {
    model(|| {
        let lease = Lease::new();
        let (queue, slots) = held(&lease, 1);
        let closes = at_once(&queue, close);
        let waits = at_once(&queue, {
            let slot = Arc::clone(&slots[0]);
            move |queue| wait(queue, &slot)
        });
        pass(&queue, &lease);
        closes.join().unwrap();
        waits.join().unwrap();
        is_over(&queue, &lease);
    });
}

#[test]
fn whoever_comes_to_a_shutdown_is_turned_away_or_told() {
    model(|| {
        let lease = Lease::new();
        let (queue, _) = held(&lease, 0);
        let closes = at_once(&queue, close);
        let comes = at_once(&queue, |queue| {
            match queue.arrive(|| Asker, BootInstant::now, may) {
                Arrival::Waits { slot, .. } => wait(queue, &slot),
                Arrival::Leads { number, kept } => {
                    assert!(kept.is_none());
                    leave(queue, number);
                }
                Arrival::Holds(_) => panic!("nothing is kept"),
                Arrival::Closed => {}
            }
        });
        pass(&queue, &lease);
        closes.join().unwrap();
        comes.join().unwrap();
        is_over(&queue, &lease);
    });
}

/// Its future is dropped while the shutdown tells it to stop: the lease must not stay with it.
#[test]
fn a_dropped_future_loses_no_lease_in_a_shutdown() {
    model(|| {
        let lease = Lease::new();
        let (queue, slots) = held(&lease, 1);
        let closes = at_once(&queue, close);
        let drops = at_once(&queue, {
            let slot = Arc::clone(&slots[0]);
            move |queue| cancel(queue, &slot)
        });
        pass(&queue, &lease);
        closes.join().unwrap();
        drops.join().unwrap();
        is_over(&queue, &lease);
    });
}

/// After a shutdown nothing is kept for whoever comes next: nobody does, and nobody would give it back.
#[test]
fn a_lease_is_not_kept_after_a_shutdown() {
    model(|| {
        let lease = Lease::kept();
        let (queue, _) = held(&lease, 0);
        let closed = Arc::new(AtomicBool::new(false));
        let closes = at_once(&queue, {
            let closed = Arc::clone(&closed);
            move |queue| {
                close(queue);
                closed.store(true, Ordering::SeqCst);
            }
        });
        let before = closed.load(Ordering::SeqCst);
        pass(&queue, &lease);
        closes.join().unwrap();
        if queue.let_go(&lease) {
            assert!(!before, "kept after the end");
            // What was kept before is the watchdog's, which gives back all that it watches.
            lease.give_back();
        }
        is_over(&queue, &lease);
    });
}
