//! Outside tokio every call returns an error that it needs a runtime, nothing panics, and held
//! locks are released.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::common::{SOON, unique};
use super::{LONG_LEASE, everywhere, is_free, single, threads};
use locktopus::{BackendErrorKind, ConnectError, Job, LeaderElection, LockError};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The simplest possible executor.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn refused<T: std::fmt::Debug>(what: &str, outcome: Result<T, LockError>) {
    match outcome {
        Err(error) if error.is_no_runtime() => {}
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn another_executor_is_refused_and_does_no_harm() {
    everywhere(|place, _| {
        let connected = block_on(locktopus::connect(&place.url));
        let Err(ConnectError::Backend { source, .. }) = connected else {
            panic!("{connected:?}");
        };
        assert_eq!(source.kind(), BackendErrorKind::NoRuntime);
        assert!(block_on(locktopus::connect_backend(&place.url)).is_err());
        assert!(block_on(locktopus::connect_client(&place.url)).is_err());

        let runtime = threads();
        let name = unique("foreign");
        let (locks, guard, other) = runtime.block_on(async {
            let locks = place.handle().await;
            let request = locks.lock(&name).fixed_lease(LONG_LEASE);
            let guard = request.acquire().await.unwrap();
            (locks, guard, place.handle().await)
        });
        refused("acquire", block_on(locks.lock("a").acquire()));
        refused("try", block_on(locks.lock("a").try_acquire()));
        let limited = locks.lock("a").wait_at_most(SOON);
        refused("limited", block_on(limited.acquire()));
        refused("run", block_on(locks.lock("a").run(|_| async {})));
        refused("fair", block_on(locks.fair_lock("a").acquire()));
        refused("mutex", block_on(locks.mutex("a").acquire()));
        refused("write", block_on(locks.rw_lock("a").write().acquire()));
        refused("read", block_on(locks.rw_lock("a").read().acquire()));
        refused("many", block_on(locks.multi(["a", "b"]).acquire()));
        refused(
            "permits",
            block_on(locks.semaphore("a").permits(1).acquire()),
        );
        refused("initialise", block_on(locks.semaphore("a").initialise(1)));
        refused("count", block_on(locks.latch("a").count()));
        refused("latch", block_on(async { locks.latch("a").wait().await }));
        refused("inspect", block_on(locks.lock(&name).inspect()));
        refused("force", block_on(locks.lock(&name).force_release("test")));
        let election = LeaderElection::new(&locks, "a");
        refused("leader", block_on(election.campaign()));
        let every = Job::new(&locks, "a").every(Duration::from_secs(60));
        refused("job", block_on(every.run(|_| async {})));
        refused("extend", block_on(guard.extend(LONG_LEASE)));
        guard.ensure_valid().unwrap();
        // The runtime reports the loss.
        let lease = guard.lease();
        refused("release", block_on(guard.release()));
        block_on(lease.lost());
        runtime.block_on(is_free(&other, &name));
        assert_eq!(block_on(locks.shutdown(SOON)).abandoned, 0);
        runtime.block_on(async {
            assert_eq!(other.shutdown(SOON).await.abandoned, 0);
        });
    });
}

/// A handle whose only runtime has ended, or is stopped.
#[test]
fn a_shutdown_without_any_runtime_ends_and_counts() {
    everywhere(|place, _| {
        for ends in [true, false] {
            let runtime = if ends { threads() } else { single() };
            let (locks, guard) = runtime.block_on(async {
                let locks = place.handle().await;
                let guard = locks.lock(unique("left")).acquire().await.unwrap();
                (locks, guard)
            });
            let _stands_still = (!ends).then_some(runtime);
            let begun = Instant::now();
            let shutdown = block_on(locks.shutdown(Duration::from_millis(100)));
            assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
            assert_eq!(shutdown.abandoned, 1);
            assert!(guard.ensure_valid().is_err());
        }
    });
}
