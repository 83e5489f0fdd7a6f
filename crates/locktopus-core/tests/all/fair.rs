//! Fair locks: order of arrival, leaving the queue, and what a waiter can know.

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::until;
use locktopus_core::{CancellationToken, LockError, Locktopus, WaitEstimate, WaitStrategy};
use locktopus_memory::MemoryBackend;
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// Clients of one store, like several processes.
fn clients<const N: usize>() -> (MemoryBackend, [Locktopus; N]) {
    let store = MemoryBackend::new();
    let client = |_| Locktopus::builder(store.another_client()).build().unwrap();
    let clients = std::array::from_fn(client);
    (store, clients)
}

#[tokio::test(start_paused = true)]
async fn the_lock_goes_round_in_order_of_arrival() {
    for strategy in [
        WaitStrategy::default(),
        WaitStrategy::Notify { heartbeat: SECOND },
        WaitStrategy::Poll {
            min: Duration::from_millis(1),
            max: Duration::from_millis(50),
        },
    ] {
        let (store, clients) = clients::<3>();
        let holder = clients[0].fair_lock("a").acquire().await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for turn in 0..9 {
            let request = clients[turn % 3].fair_lock("a").strategy(strategy);
            let order = Arc::clone(&order);
            tasks.push(tokio::spawn(async move {
                let guard = request.acquire().await.unwrap();
                order.lock().unwrap().push(turn);
                sleep(Duration::from_millis(3)).await;
                guard.release().await.unwrap();
            }));
            // Each has its place before the next one arrives.
            let queued = async {
                let waiters = async || {
                    let state = clients[0].fair_lock("a").inspect().await.unwrap();
                    state.waiters.len()
                };
                while waiters().await != turn + 1 {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            timeout(SECOND, queued).await.expect("it has a place");
        }
        holder.release().await.unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(
            *order.lock().unwrap(),
            (0..9).collect::<Vec<_>>(),
            "{strategy:?}"
        );
        until("nothing is left", || store.population() == (0, 0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_overtakes_the_queue() {
    let (_store, [a, b]) = clients();
    let holder = a.fair_lock("a").acquire().await.unwrap();
    let waiting = tokio::spawn(b.fair_lock("a").acquire());
    sleep(Duration::from_millis(10)).await;
    holder.release().await.unwrap();
    // Handed to the waiter by the release itself, even if it has not noticed yet.
    assert!(a.fair_lock("a").try_acquire().await.unwrap().is_none());
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_waiting_leaves_the_queue() {
    let (_store, [locks]) = clients();
    let holder = locks.fair_lock("a").acquire().await.unwrap();
    let waiters = async || {
        let state = locks.fair_lock("a").inspect().await.unwrap();
        state.waiters.len()
    };
    let cancel = CancellationToken::new();
    let cancelled = tokio::spawn(locks.fair_lock("a").cancel_on(cancel.clone()).acquire());
    let limited = tokio::spawn(locks.fair_lock("a").wait_at_most(SECOND).acquire());
    let dropped = tokio::spawn(locks.fair_lock("a").acquire());
    let last = tokio::spawn(locks.fair_lock("a").acquire());
    sleep(SECOND / 2).await;
    assert_eq!(waiters().await, 4);
    cancel.cancel();
    let error = cancelled.await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Cancelled { .. }));
    dropped.abort();
    let error = limited.await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::WaitTimeout { .. }));
    until("the reaper is done", || locks.background_tasks() == 0).await;
    assert_eq!(waiters().await, 1);
    holder.release().await.unwrap();
    last.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_crashed_waiter_is_passed_over() {
    let store = MemoryBackend::new();
    let locks = Locktopus::builder(store.another_client()).build().unwrap();
    let holder = locks.fair_lock("a").acquire().await.unwrap();
    let crashed = store.another_client();
    let doomed = Locktopus::builder(crashed.clone()).build().unwrap();
    let waiting = tokio::spawn(doomed.fair_lock("a").acquire());
    sleep(Duration::from_millis(10)).await;
    // It falls silent: its client is gone before it can leave the queue.
    locktopus_core::LockBackend::close(&crashed).await;
    waiting.abort();
    let last = tokio::spawn(locks.fair_lock("a").acquire());
    sleep(Duration::from_millis(10)).await;
    holder.release().await.unwrap();
    let guard = timeout(40 * SECOND, last).await.expect("passed over");
    guard.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_knows_its_place_and_guesses_its_time() {
    let (_store, [locks]) = clients();
    let lease = 20 * SECOND;
    let request = || locks.fair_lock("a").fixed_lease(lease);
    let holder = request().acquire().await.unwrap();
    let mut ahead = Vec::new();
    for _ in 0..2 {
        let request = request();
        ahead.push(tokio::spawn(async move {
            let guard = request.acquire().await.unwrap();
            sleep(4 * SECOND).await;
            guard.release().await.unwrap();
        }));
        sleep(Duration::from_millis(10)).await;
    }
    let (third, mut progress) = request().with_progress();
    assert_eq!(progress.latest(), None);
    let third = tokio::spawn(third.acquire());
    let standing = progress.next().await.unwrap();
    assert_eq!(standing.ahead, Some(2));
    let Some(WaitEstimate::Leases(guess)) = standing.estimate else {
        panic!("nothing moved yet: {standing:?}");
    };
    assert!(guess > 2 * lease && guess <= 3 * lease, "{guess:?}");
    sleep(4 * SECOND).await;
    holder.release().await.unwrap();
    let standing = loop {
        let standing = progress.next().await.unwrap();
        if standing.ahead == Some(0) {
            break standing;
        }
    };
    let Some(WaitEstimate::Observed(guess)) = standing.estimate else {
        panic!("two went: {standing:?}");
    };
    assert!(guess > 3 * SECOND && guess < 6 * SECOND, "{guess:?}");
    assert_eq!(progress.latest(), Some(standing));
    let guard = third.await.unwrap().unwrap();
    let over = async { while progress.next().await.is_some() {} };
    timeout(SECOND, over).await.expect("the wait is over");
    guard.release().await.unwrap();
    for task in ahead {
        task.await.unwrap();
    }
}
