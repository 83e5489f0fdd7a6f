//! Work under a lock takes no step once the lease is over, even before the loss is noticed.

use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use locktopus_core::{Lease, LockError, LockRequest, Locktopus, LostCause};
use locktopus_memory::MemoryBackend;

/// Long enough for a busy machine.
const LIMIT: Duration = Duration::from_millis(500);

/// Counts its steps. Each takes until the lease is over.
fn stopped(lease: Lease, steps: &Arc<AtomicUsize>) -> impl Future<Output = ()> + use<> {
    let steps = Arc::clone(steps);
    poll_fn(move |_| {
        steps.fetch_add(1, Ordering::SeqCst);
        while !lease.remaining().is_zero() {
            std::thread::park_timeout(lease.remaining());
        }
        Poll::Pending
    })
}

/// A paused process continues: its clock says that the lease is over, and none of its tasks has
/// noticed yet. The work is polled by hand, so that nothing else of this runtime can run between
/// two steps.
fn takes_one_step<T: Debug>(
    working: impl Future<Output = Result<T, LockError>>,
    steps: &AtomicUsize,
) {
    let mut working = pin!(working);
    let mut context = Context::from_waker(Waker::noop());
    assert!(working.as_mut().poll(&mut context).is_pending());
    let ended = working.as_mut().poll(&mut context);
    let Poll::Ready(Err(LockError::Lost { cause, .. })) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(cause, LostCause::MaxHold);
    assert_eq!(steps.load(Ordering::SeqCst), 1);
}

fn request() -> LockRequest {
    let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
    locks.lock("a").max_hold(LIMIT)
}

#[tokio::test]
async fn of_run() {
    let steps = Arc::default();
    takes_one_step(request().run(|lease| stopped(lease, &steps)), &steps);
}

#[tokio::test]
async fn of_try_run() {
    let steps = Arc::default();
    takes_one_step(request().try_run(|lease| stopped(lease, &steps)), &steps);
}
