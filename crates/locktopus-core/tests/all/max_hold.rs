//! The maximum hold time begins when the lock can be used, however it was acquired.

use std::time::Duration;

use locktopus_core::{CohortSettings, Locktopus};
use locktopus_memory::MemoryBackend;
use tokio::time::{advance, sleep};

const HOLD: Duration = Duration::from_millis(200);
const MOMENT: Duration = Duration::from_millis(50);

/// The request waits at the backend, and the grant is pushed long after the attempt was sent.
#[tokio::test(start_paused = true)]
async fn a_pushed_grant_has_the_whole_of_it() {
    let store = MemoryBackend::new();
    let client = || Locktopus::builder(store.another_client()).build().unwrap();
    let (here, there) = (client(), client());
    let guard = here.lock("a").acquire().await.unwrap();
    let waiter = tokio::spawn(there.lock("a").max_hold(HOLD).acquire());
    // Less than the heartbeat, which would start it anew.
    sleep(HOLD * 4).await;
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert!(guard.remaining() > HOLD * 8 / 10, "{:?}", guard.remaining());
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
}

/// Passed on inside the process, to a task that is woken late.
#[tokio::test(start_paused = true)]
async fn a_turn_has_the_whole_of_it() {
    let locks = Locktopus::builder(MemoryBackend::new())
        .cohort(CohortSettings::default())
        .build()
        .unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let mut waiter = Box::pin(locks.lock("a").max_hold(MOMENT / 5).acquire());
    assert!(poll(&mut waiter).is_none());
    guard.release().await.unwrap();
    advance(MOMENT / 2).await;
    let guard = waiter.await.unwrap();
    guard.ensure_valid().unwrap();
    assert!(guard.remaining() > Duration::ZERO);
    guard.release().await.unwrap();
}

/// The output of the future, if it is ready.
fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
