//! Very many requests at one moment: the number of attempts under way is limited, and no attempt
//! waits for another shard.

use crate::common;

use std::collections::HashMap;
use std::time::Duration;

use common::{Fate, Scripted, until};
use futures_util::FutureExt as _;
use locktopus_core::{LockError, LockGuard, Locktopus, SafetyMode};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

const MOMENT: Duration = Duration::from_millis(10);
const CROWD: usize = 2_000;
/// The most attempts of a shard: those under way, and those that waited for a slot in it.
const MOST: usize = 448 + 64;
/// Attempts wait while a shard has more releases without an answer than this.
const OWED: usize = 1024;

type Crowd = JoinSet<Result<LockGuard, LockError>>;

/// This many requests, each for its own lock, in the shard of this letter.
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
    // All are served before the first of them has waited for a quarter of the call timeout, which
    // is 100 ms here.
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

/// Whether the earlier attempts were answered or their futures were dropped.
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
    // Requests that had no turn after a quarter of the call timeout are sent anyway.
    let most = MOMENT * 10 / 4 + round_trip * 2;
    assert!(begun.elapsed() <= most, "{:?}", begun.elapsed());
    assert_eq!((locks.held(), locks.background_tasks()), (0, 0));
}

/// Drops futures of acquisitions until attempts wait.
fn owe_too_much(script: &Scripted, locks: &Locktopus) {
    script.always("attempt", Fate::Late(MOMENT * 5));
    let before = script.calls("attempt").len();
    for number in 0..2 * CROWD {
        let request = locks.lock(format!("a{number}"));
        assert!(request.acquire().now_or_never().is_none());
    }
    let sent = script.calls("attempt").len() - before;
    assert_eq!((locks.background_tasks(), sent), (OWED, OWED));
}

/// Attempts that were sent arrive late and are given back. Attempts that waited for a turn owe
/// nothing.
#[tokio::test(start_paused = true)]
async fn futures_that_are_dropped_owe_a_bounded_number_and_hold_up_no_other_shard() {
    let (script, locks) = Scripted::with_locks();
    let writing = locks.rw_lock("arw").write().acquire().await.unwrap();
    owe_too_much(&script, &locks);
    assert!(writing.read().now_or_never().is_none());
    assert_eq!(locks.background_tasks(), OWED);
    drop((writing.read().await.unwrap(), writing));
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

/// Answers to 64 releases let 64 attempts in. The wait does not shorten any lease.
#[tokio::test(start_paused = true)]
async fn those_who_waited_for_owed_releases_come_in_turn_and_get_whole_leases() {
    let script = Scripted::with_call_timeout(MOMENT * 100);
    let locks = script.locks();
    script.always("release", Fate::SlowReply(MOMENT * 30));
    owe_too_much(&script, &locks);
    script.always("attempt", Fate::Pass);
    let lease = MOMENT * 20;
    let one = locks.lock("a").fixed_lease(lease);
    let all = locks.multi(["ab", "ac"]).fixed_lease(lease);
    let (one, all) = tokio::join!(one.try_acquire(), all.try_acquire());
    let (one, all) = (one.unwrap().unwrap(), all.unwrap().unwrap());
    assert!(one.remaining() > lease / 2 && all.remaining() > lease / 2);

    script.always("attempt", Fate::Hang);
    script.always("release", Fate::Hang);
    let before = script.calls("attempt").len();
    let mut waiting = HashMap::new();
    for number in 0..CROWD {
        let name = format!("a{number}");
        let request = locks.lock(&name);
        waiting.insert(name, tokio::spawn(async move { request.acquire().await }));
    }
    // All attempts that are sent are dropped, and their releases get no answer.
    for _ in 0..50 {
        sleep(MOMENT / 10).await;
        for call in script.calls("attempt").split_off(before) {
            waiting[&call.names[0]].abort();
        }
    }
    let sent = script.calls("attempt").len() - before;
    assert!((1..=64).contains(&sent), "{sent}");
    waiting.values().for_each(JoinHandle::abort);
}

/// Waiters in the queue keep their place, and a shutdown ends every wait.
#[tokio::test(start_paused = true)]
async fn what_is_owed_holds_up_no_place_in_a_queue_and_no_shutdown() {
    let script = Scripted::new().with_safety(SafetyMode::default());
    let locks = script.locks();
    let holder = script.other().fair_lock("aq").acquire().await.unwrap();
    let request = locks.fair_lock("aq").renewed_lease(MOMENT * 30);
    let waiter = tokio::spawn(async move { request.acquire().await });
    let asked = || {
        let mut calls = script.calls("attempt");
        calls.retain(|call| call.names == ["aq"]);
        calls.len()
    };
    until("a place in the queue", || asked() > 1).await;
    script.always("release", Fate::Hang);
    owe_too_much(&script, &locks);
    script.always("attempt", Fate::Pass);
    let before = asked();
    sleep(MOMENT * 100).await;
    assert!(asked() > before + 3, "{before}, {}", asked());
    drop(holder);
    drop(waiter.await.unwrap().unwrap());
    let all = tokio::spawn(locks.multi(["ab", "ac"]).acquire());
    sleep(MOMENT * 2).await;
    assert!(!all.is_finished());
    let begun = Instant::now();
    let answer = async { (all.await.unwrap(), begun.elapsed()) };
    let ((answer, took), report) = tokio::join!(answer, locks.shutdown(MOMENT * 20));
    assert!(matches!(answer, Err(LockError::ShutDown)), "{answer:?}");
    // At once: otherwise it would be sent when the releases are abandoned.
    assert!(took < MOMENT, "{took:?}");
    assert!(report.abandoned > 0);
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
