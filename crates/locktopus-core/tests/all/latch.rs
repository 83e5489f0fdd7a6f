//! Latches: waiting for a count, with messages lost on the way.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{CancellationToken, LockError, Locktopus};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(20);

#[tokio::test(start_paused = true)]
async fn everybody_goes_at_zero() {
    let store = MemoryBackend::new();
    let client = || Locktopus::builder(store.another_client()).build().unwrap();
    let [one, two] = [client(), client()];
    let latch = one.latch("a");
    assert!(latch.initialise(2).await.unwrap());
    assert!(!latch.initialise(7).await.unwrap(), "it has a count");
    let waiting =
        [&one, &one, &two, &two].map(|locks| tokio::spawn(locks.latch("a").wait().into_future()));
    sleep(MOMENT).await;
    assert_eq!(latch.count_down().await.unwrap(), 1);
    sleep(3 * SECOND).await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    assert_eq!(two.latch("a").count_down().await.unwrap(), 0);
    let begun = Instant::now();
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    assert!(begun.elapsed() < MOMENT, "told, not found by looking");
    assert_eq!(latch.count().await.unwrap(), 0);
    assert_eq!(latch.count_down().await.unwrap(), 0, "an open latch");
    latch.wait().await.unwrap();
    assert!(latch.initialise(1).await.unwrap(), "it may be used again");
    assert!(latch.delete().await.unwrap());
    assert!(!latch.delete().await.unwrap());
    latch.wait().at_most(MOMENT).await.unwrap();
    until("nobody listens", || store.population() == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_message_costs_a_heartbeat() {
    let (script, locks) = Scripted::with_locks();
    script.deafen();
    for heartbeat in [SECOND, 10 * SECOND] {
        let latch = locks.latch("a");
        latch.initialise(1).await.unwrap();
        let waiting = tokio::spawn(latch.wait().heartbeat(heartbeat).into_future());
        sleep(MOMENT).await;
        latch.count_down().await.unwrap();
        let begun = Instant::now();
        waiting.await.unwrap().unwrap();
        let took = begun.elapsed();
        assert!(
            took > heartbeat / 2 && took <= heartbeat * 5 / 4,
            "{took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_looks_after_a_resync() {
    let (script, locks) = Scripted::with_locks();
    let group = script.deafen();
    let latch = locks.latch("a");
    latch.initialise(1).await.unwrap();
    let waiting = tokio::spawn(latch.wait().heartbeat(60 * SECOND).into_future());
    until("it listens", || group.len() == 1).await;
    latch.count_down().await.unwrap();
    group.resync();
    timeout(MOMENT, waiting).await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_subscribing_is_seen() {
    let script = Scripted::new();
    let latch = script.locks().latch("a");
    latch.initialise(1).await.unwrap();
    // Opened after the first check, before the subscription is ready.
    script.deafen();
    script.next("subscribe", [Fate::SlowReply(SECOND / 20)]);
    let waiting = tokio::spawn(latch.wait().heartbeat(60 * SECOND).into_future());
    until("it subscribes", || !script.calls("subscribe").is_empty()).await;
    latch.count_down().await.unwrap();
    timeout(SECOND, waiting).await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_cannot_listen_looks_by_itself() {
    let script = Scripted::new();
    let latch = script.locks().latch("a");
    latch.initialise(1).await.unwrap();
    script.always("subscribe", Fate::Refuse);
    let waiting = tokio::spawn(latch.wait().into_future());
    sleep(MOMENT).await;
    latch.count_down().await.unwrap();
    timeout(2 * SECOND, waiting)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(script.calls("subscribe").len() > 1, "it goes on trying");
}

#[tokio::test(start_paused = true)]
async fn a_count_whose_answer_is_lost_counts_once() {
    let script = Scripted::new();
    let latch = script.locks().latch("a");
    latch.initialise(3).await.unwrap();
    script.next("counter", [Fate::LoseReply, Fate::LoseReply, Fate::Pass]);
    assert_eq!(latch.count_down().await.unwrap(), 2);
    assert_eq!(latch.count().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn waiting_can_be_bounded_and_cancelled() {
    let locks = Scripted::new().locks();
    let latch = locks.latch("a");
    latch.initialise(1).await.unwrap();
    let begun = Instant::now();
    let error = latch.wait().at_most(3 * SECOND).await.unwrap_err();
    let LockError::WaitTimeout { waited, .. } = error else {
        panic!("{error}")
    };
    assert!(waited >= 3 * SECOND && begun.elapsed() < 4 * SECOND);
    let cancel = CancellationToken::new();
    let waiting = tokio::spawn(latch.wait().cancel_on(cancel.clone()).into_future());
    sleep(MOMENT).await;
    cancel.cancel();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Cancelled { .. }), "{error}");
    let waiting = tokio::spawn(latch.wait().into_future());
    sleep(MOMENT).await;
    let _ = locks.shutdown(SECOND).await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::ShutDown), "{error}");
    let error = latch.count_down().await.unwrap_err();
    assert!(matches!(error, LockError::ShutDown), "{error}");
}

#[tokio::test(start_paused = true)]
async fn impossible_values_are_refused() {
    let script = Scripted::new();
    let latch = script.locks().latch("a");
    for count in [0, 1 << 53] {
        let error = latch.initialise(count).await.unwrap_err();
        assert!(matches!(error, LockError::Option(_)), "{error}");
    }
    let error = latch.wait().heartbeat(Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, LockError::Option(_)), "{error}");
    assert!(script.calls("counter").is_empty());
}
