//! Very many who ask at one moment: a bounded number of attempts is under way, and none waits for another shard's.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted};
use futures_util::FutureExt as _;
use locktopus_core::{LockError, LockGuard, Locktopus};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const MOMENT: Duration = Duration::from_millis(10);
const CROWD: usize = 2_000;
/// Of a shard: what is under way at once, and those that had to wait for a place in their shard.
const MOST: usize = 448 + 64;
/// Releases of a shard without an answer, beyond which attempts wait.
const OWED: usize = 1024;

type Crowd = JoinSet<Result<LockGuard, LockError>>;

/// So many that ask, each for a lock of its own, in the shard of this letter.
fn crowd(locks: &Locktopus, shard: char, many: usize) -> Crowd {
    let mut crowd = JoinSet::new();
    for number in 0..many {
        let request = locks.lock(format!("{shard}{number}"));
        crowd.spawn(async move { request.wait_at_most(MOMENT * 100).acquire().await });
    }
    crowd
}

#[tokio::test(start_paused = true)]
async fn a_crowd_is_served_a_bounded_number_at_a_time() {
    let script = Scripted::new();
    // All are served before the first of them has waited for a quarter of the call timeout, which is 100 ms here.
    let round_trip = MOMENT / 2;
    script.always("attempt", Fate::SlowReply(round_trip));
    let locks = script.locks();
    let many = MOST + 3 * 64;
    let mut crowd = crowd(&locks, 'a', many);
    let mut before = 0;
    while before < many {
        sleep(round_trip / 2).await;
        let under_way = script.calls("attempt").len() - before;
        assert!((1..=MOST).contains(&under_way), "{under_way}");
        before += under_way;
        sleep(round_trip / 2).await;
    }
    while let Some(guard) = crowd.join_next().await {
        guard.unwrap().unwrap().release().await.unwrap();
    }
    assert_eq!((locks.held(), locks.background_tasks()), (0, 0));
}

/// Whether the attempts before were answered or nobody waits for them any more.
#[tokio::test(start_paused = true)]
async fn as_many_are_under_way_in_each_crowd() {
    let script = Scripted::new();
    let round_trip = MOMENT / 2;
    script.always("attempt", Fate::SlowReply(round_trip));
    let locks = script.locks();
    for cancelled in [false, true, false] {
        let before = script.calls("attempt").len();
        let mut crowd = crowd(&locks, 'a', MOST);
        sleep(round_trip / 2).await;
        assert_eq!(script.calls("attempt").len() - before, MOST);
        if cancelled {
            crowd.shutdown().await;
        }
        while let Some(guard) = crowd.join_next().await {
            guard.unwrap().unwrap().release().await.unwrap();
        }
        sleep(MOMENT * 100).await;
        assert_eq!((locks.held(), locks.background_tasks()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_at_a_distant_server_is_delayed_and_not_refused() {
    let script = Scripted::new();
    let round_trip = MOMENT * 4;
    script.always("attempt", Fate::SlowReply(round_trip));
    let locks = script.locks();
    let begun = Instant::now();
    let mut crowd = JoinSet::new();
    for number in 0..5 * CROWD {
        let request = locks.lock(format!("a{number}"));
        crowd.spawn(async move { request.try_acquire().await });
    }
    while let Some(outcome) = crowd.join_next().await {
        outcome.unwrap().unwrap().unwrap().release().await.unwrap();
    }
    // Those whose turn has not come after a quarter of the call timeout ask all the same.
    let most = MOMENT * 10 / 4 + round_trip * 2;
    assert!(begun.elapsed() <= most, "{:?}", begun.elapsed());
    assert_eq!((locks.held(), locks.background_tasks()), (0, 0));
}

/// Attempts that were sent arrive late and are given back. Those that waited for a turn owe nothing.
#[tokio::test(start_paused = true)]
async fn futures_that_are_dropped_owe_a_bounded_number_and_hold_up_no_other_shard() {
    let script = Scripted::new();
    script.always("attempt", Fate::Late(MOMENT * 5));
    let locks = script.locks();
    for number in 0..10 * CROWD {
        let request = locks.lock(format!("a{number}"));
        assert!(request.acquire().now_or_never().is_none());
    }
    let sent = script.calls("attempt").len();
    assert_eq!((locks.background_tasks(), sent), (OWED, OWED));
    for name in ["b", "a"] {
        let guard = locks.lock(name).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    sleep(MOMENT * 100).await;
    assert_eq!((locks.held(), locks.background_tasks()), (0, 0));
    for call in script.calls("attempt") {
        let free = script.other().lock(&call.names[0]).try_acquire().await;
        free.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_at_a_dead_node_holds_up_nobody_else_and_ends_in_time() {
    let script = Scripted::new();
    script.hang_shard(Some(u32::from(b'a')));
    let locks = script.locks();
    let begun = Instant::now();
    let mut crowd = crowd(&locks, 'a', CROWD);
    sleep(MOMENT).await;
    assert_eq!(script.calls("attempt").len(), MOST);
    let other = locks.lock("b").acquire().await.unwrap();
    assert_eq!(begun.elapsed(), MOMENT, "the other node answers at once");
    other.release().await.unwrap();
    while let Some(outcome) = crowd.join_next().await {
        let error = outcome.unwrap().unwrap_err();
        assert!(matches!(error, LockError::WaitTimeout { .. }), "{error}");
    }
    assert!(begun.elapsed() <= MOMENT * 110, "{:?}", begun.elapsed());
    script.hang_shard(None);
    let passing = locks.lock("a").acquire().await.unwrap();
    passing.release().await.unwrap();
}
