//! Requests for one lock are answered one at a time, and each way to fail has its own error.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use locktopus_core::{CancellationToken, Lease, LockError, Locktopus};
use locktopus_layers::{Call, Chaos, Fault};
use locktopus_memory::MemoryBackend;
use locktopus_tower::{LockLayer, LockedError};
use tokio::sync::Semaphore;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

const SECOND: Duration = Duration::from_secs(1);

/// A request: the lock that it needs, if any, and the lease that it gets.
#[derive(Debug, Clone, Default)]
struct Order {
    lock: Option<&'static str>,
    lease: Option<Lease>,
}

fn order(lock: &'static str) -> Order {
    Order {
        lock: Some(lock),
        lease: None,
    }
}

struct Shop {
    locks: Locktopus,
    chaos: Chaos,
    /// Each permit lets one order be answered.
    open: Arc<Semaphore>,
    /// Orders that have begun.
    begun: Arc<AtomicUsize>,
}

impl Shop {
    fn new() -> Self {
        let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
        Self {
            locks: Locktopus::builder(chaos.clone()).build().unwrap(),
            chaos,
            open: Arc::new(Semaphore::new(0)),
            begun: Arc::default(),
        }
    }

    fn layer(&self) -> LockLayer<Order> {
        let locks = self.locks.clone();
        LockLayer::new(move |order: &Order| Some(locks.lock(order.lock?)))
            .attach_lease(|order, lease| order.lease = Some(lease))
    }

    /// Answers with the fencing token, once it is allowed to.
    fn service(
        &self,
        layer: LockLayer<Order>,
    ) -> impl Service<Order, Response = Option<u64>, Error = LockedError<&'static str>, Future: Send>
    + Clone
    + use<> {
        let (open, begun) = (Arc::clone(&self.open), Arc::clone(&self.begun));
        layer.layer(service_fn(move |order: Order| {
            let (open, begun) = (Arc::clone(&open), Arc::clone(&begun));
            async move {
                begun.fetch_add(1, Ordering::Relaxed);
                open.acquire().await.unwrap().forget();
                let token = order.lease.and_then(|lease| lease.token());
                match order.lock {
                    Some("bad") => Err("a bad order"),
                    _ => Ok(token.map(|token| token.get())),
                }
            }
        }))
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn the_second_of_two_equal_requests_is_told_that_it_is() {
    let shop = Shop::new();
    let service = shop.service(shop.layer());
    let mut first = Box::pin(service.clone().oneshot(order("a")));
    assert!(first.as_mut().now_or_never().is_none());
    let error = service.clone().oneshot(order("a")).await.unwrap_err();
    assert!(matches!(error, LockedError::Busy), "{error}");
    assert_eq!((error.status(), shop.begun()), (409, 1));

    shop.open.add_permits(2);
    let others = service.clone().oneshot(order("b")).await.unwrap();
    assert!(others.is_some(), "another lock, with its token");
    assert!(first.await.unwrap().is_some());
    shop.open.add_permits(1);
    assert!(
        service.oneshot(order("a")).await.is_ok(),
        "it was given back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_lock_is_just_answered() {
    let shop = Shop::new();
    let service = shop.service(shop.layer());
    shop.open.add_permits(2);
    let free = Order::default;
    assert_eq!(service.clone().oneshot(free()).await.unwrap(), None);
    assert_eq!(service.oneshot(free()).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn work_stops_when_its_lock_is_lost() {
    let shop = Shop::new();
    let service = shop.service(shop.layer());
    let mut under_way = Box::pin(service.oneshot(order("a")));
    assert!(under_way.as_mut().now_or_never().is_none());
    assert_eq!(shop.chaos.lose("a").await.unwrap(), 1);
    let error = under_way.await.unwrap_err();
    assert!(
        matches!(error, LockedError::Lost(LockError::Lost { .. })),
        "{error}"
    );
    assert_eq!(error.status(), 423);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_is_away_is_no_conflict() {
    let shop = Shop::new();
    let service = shop.service(shop.layer());
    for fault in [Fault::Refuse, Fault::LoseAnswer] {
        shop.chaos.fail_times(Call::Attempt, fault, 1);
        let error = service.clone().oneshot(order("a")).await.unwrap_err();
        assert!(matches!(error, LockedError::Unavailable(_)), "{error}");
        assert_eq!(error.status(), 503);
    }
    let error = service.oneshot(order("")).await.unwrap_err();
    assert!(
        matches!(error, LockedError::Refused(LockError::Name(_))),
        "{error}"
    );
    assert_eq!((error.status(), shop.begun()), (500, 0));
}

/// The request has not begun, so clients may send it again: to this process, or to one that is not
/// shutting down.
#[tokio::test(start_paused = true)]
async fn locks_that_are_being_closed_are_away() {
    let shop = Shop::new();
    let (locks, stop) = (shop.locks.clone(), CancellationToken::new());
    let stopped = stop.clone();
    let cancelled = LockLayer::new(move |order: &Order| {
        let lock = locks.lock(order.lock?);
        Some(lock.cancel_on(stopped.clone()))
    });
    let service = shop.service(cancelled.waiting());
    let elsewhere = shop.locks.lock("a").acquire().await.unwrap();
    let waits = tokio::spawn(service.oneshot(order("a")));
    tokio::task::yield_now().await;
    stop.cancel();
    let error = waits.await.unwrap().unwrap_err();
    let LockedError::Unavailable(LockError::Cancelled { .. }) = error else {
        panic!("{error:?}");
    };
    elsewhere.release().await.unwrap();

    let service = shop.service(shop.layer());
    let _ = shop.locks.shutdown(SECOND).await;
    let error = service.oneshot(order("a")).await.unwrap_err();
    let LockedError::Unavailable(LockError::ShutDown) = error else {
        panic!("{error:?}");
    };
    assert_eq!((error.status(), shop.begun()), (503, 0));
}

/// Whether a failed lock request is temporary, or a mistake that sending it again does not fix.
#[tokio::test(start_paused = true)]
async fn what_passes_and_what_does_not_are_told_apart() {
    let shop = Shop::new();
    let locks = shop.locks.clone();
    let waiting = LockLayer::new(move |order: &Order| {
        let lock = locks.lock(order.lock?);
        Some(lock.wait_at_most(SECOND))
    });
    let service = shop.service(waiting.waiting());
    shop.chaos.fail(Call::Attempt, Fault::Refuse);
    let error = service.clone().oneshot(order("a")).await.unwrap_err();
    let LockedError::Unavailable(LockError::WaitTimeout { .. }) = error else {
        panic!("{error:?}");
    };
    shop.chaos.calm();
    // In use as another kind of lock: no waiter is going to get it.
    let _mutex = shop.locks.mutex("b").acquire().await.unwrap();
    let error = service.oneshot(order("b")).await.unwrap_err();
    let LockedError::Refused(LockError::Backend { .. }) = error else {
        panic!("{error:?}");
    };
    assert_eq!((error.status(), shop.begun()), (500, 0));
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_next_or_out_of_time() {
    let shop = Shop::new();
    let locks = shop.locks.clone();
    let waiting = LockLayer::new(move |order: &Order| {
        let lock = locks.lock(order.lock?);
        Some(lock.wait_at_most(SECOND))
    });
    let service = shop.service(waiting.waiting());
    let first = tokio::spawn(service.clone().oneshot(order("a")));
    let second = tokio::spawn(service.clone().oneshot(order("a")));
    tokio::task::yield_now().await;
    shop.open.add_permits(2);
    assert!(first.await.unwrap().is_ok());
    assert!(second.await.unwrap().is_ok());

    let slow = tokio::spawn(service.clone().oneshot(order("a")));
    tokio::task::yield_now().await;
    let error = service.oneshot(order("a")).await.unwrap_err();
    assert!(matches!(error, LockedError::Busy), "{error}");
    slow.abort();
}

#[tokio::test(start_paused = true)]
async fn the_lock_goes_with_a_dropped_call_and_with_an_error_of_the_service() {
    let shop = Shop::new();
    let service = shop.service(shop.layer());
    let mut call = Box::pin(service.clone().oneshot(order("bad")));
    assert!(call.as_mut().now_or_never().is_none());
    drop(call);
    shop.open.add_permits(1);
    let waited = shop.locks.lock("bad").wait_at_most(SECOND).acquire();
    waited.await.unwrap().release().await.unwrap();
    let error = service.oneshot(order("bad")).await.unwrap_err();
    assert!(
        matches!(error, LockedError::Inner("a bad order")),
        "{error}"
    );
    assert!(
        shop.locks
            .lock("bad")
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
}

/// Callers must not call a service before it says that it is ready.
#[tokio::test(start_paused = true)]
async fn the_service_that_was_ready_is_called() {
    #[derive(Debug, Default)]
    struct Wary {
        ready: bool,
    }

    impl Clone for Wary {
        fn clone(&self) -> Self {
            Self::default()
        }
    }

    impl Service<Order> for Wary {
        type Response = ();
        type Error = Infallible;
        type Future = std::future::Ready<Result<(), Infallible>>;

        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), Infallible>> {
            self.ready = true;
            std::task::Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Order) -> Self::Future {
            assert!(
                std::mem::take(&mut self.ready),
                "it was not asked whether it is ready"
            );
            std::future::ready(Ok(()))
        }
    }

    let shop = Shop::new();
    let mut service = shop.layer().layer(Wary::default());
    for request in [order("a"), Order::default()] {
        service.ready().await.unwrap().call(request).await.unwrap();
    }
}
