//! Faults that have stopped Redisson's fair locks for minutes, and must not stop ours.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus::{LockRequest, WaitStrategy};
use tokio::time::Instant;

use crate::common::raw::Value;
use crate::common::{LONG, SOON, close, eventually, unique};
use crate::wire_objects::ear::Ear;
use crate::wire_objects::java::Java;
use crate::wire_objects::{At, soon, waiting};

/// How long a free lock may be left to a waiter that does not come: its turn, a heartbeat, and the
/// delay of a busy machine.
const TURN: Duration = Duration::from_secs(3 + 2 + 5);

/// An entry without a deadline, which Redisson never removes.
pub(crate) async fn head_without_a_deadline(at: At) -> String {
    let name = unique("orphan");
    let locks = at.locks().await;
    let mut java = Java::on(&at, &name, 1).await;
    let queue = java.side("redisson_lock_queue");
    let orphan = "11111111-2222-4333-8444-555555555555:9";
    java.raw().say(&["RPUSH", &queue, orphan]).await;
    assert!(java.fair_lock(1_000).await.is_some(), "it blocks them");
    let begun = Instant::now();
    let guard = locks.fair_lock(&name).acquire().await.unwrap();
    let took = begun.elapsed();
    assert!(took < SOON, "{took:?}");
    guard.release().await.unwrap();
    // Two seconds after it was first seen, it is gone for good.
    eventually("an empty queue", SOON * 2, async || {
        let guard = locks.fair_lock(&name).try_acquire().await.unwrap();
        if let Some(guard) = guard {
            guard.release().await.unwrap();
        }
        let left = java.raw().say(&["LRANGE", &queue, "0", "-1"]).await;
        match left.list().iter().any(|owner| owner.text() == orphan) {
            false => Ok(()),
            true => Err(left),
        }
    })
    .await;
    close(locks).await;
    format!("taken after {took:.2?}")
}

/// Two hundred dead waiters, whose clocks were an hour ahead, cost no more than one.
pub(crate) async fn many_dead_heads(at: At) -> String {
    let name = unique("dead");
    let locks = at.locks().await;
    let mut java = Java::on(&at, &name, 0).await;
    let (queue, deadlines) = (
        java.side("redisson_lock_queue"),
        java.side("redisson_lock_timeout"),
    );
    assert_eq!(java.fair_lock(80_000).await, None);
    let ahead = (java.now() + 3_600_000).to_string();
    for number in 1..=200 {
        let dead = format!("11111111-2222-4333-8444-555555555555:{number}");
        java.raw().say(&["RPUSH", &queue, &dead]).await;
        java.raw().say(&["ZADD", &deadlines, &ahead, &dead]).await;
    }
    let request = locks.fair_lock(&name);
    let waiter = tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) });
    eventually("ours in the queue", SOON, async || {
        match java.raw().say(&["LLEN", &queue]).await.int() {
            201.. => Ok(()),
            length => Err(length),
        }
    })
    .await;
    let begun = Instant::now();
    assert_eq!(java.fair_unlock().await, Some(1));
    let (guard, served) = waiter.await.unwrap();
    let took = served - begun;
    assert!(took < TURN, "{took:?}");
    guard.release().await.unwrap();
    // The cost is paid only once.
    let begun = Instant::now();
    let again = locks.fair_lock(&name).acquire().await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    again.release().await.unwrap();
    close(locks).await;
    format!("served after {took:.2?}")
}

/// Waiters whose clocks are an hour behind or ahead are still served in order. Those ahead believe
/// that ours are dead and do not call them; then the heartbeat finds out.
pub(crate) async fn clocks_apart(at: At) -> String {
    let mut seen = Vec::new();
    for ahead in [-3_600_000, 3_600_000] {
        let name = unique("skewed");
        let locks = at.locks_apart().await;
        let guard = locks.fair_lock(&name).acquire().await.unwrap();
        let mut java = Java::on(&at, &name, 7).await;
        java.clock_ahead = ahead;
        assert!(java.fair_lock(80_000).await.is_some());
        let mut ear = Ear::to(&at, &name, &[java.own_channel()]).await;
        let request = locks.fair_lock(&name);
        let waiter = match ahead {
            0.. => tokio::spawn(async { (request.acquire().await.unwrap(), Instant::now()) }),
            _ => waiting(request),
        };
        crate::wire_objects::fair::lined_up(&at, &mut java, 2).await;
        guard.release().await.unwrap();
        assert_eq!(ear.next().await.1, "0");
        assert!(!waiter.is_finished(), "overtaken");
        assert_eq!(java.fair_lock(80_000).await, None);
        let begun = Instant::now();
        assert_eq!(java.fair_unlock().await, Some(1));
        let (guard, served) = waiter.await.unwrap();
        seen.push(soon(begun, served));
        guard.release().await.unwrap();
        close(locks).await;
    }
    format!("{seen:.2?}")
}

/// One of theirs, whose clock is an hour ahead, believes that all of ours are dead. Ours take their
/// places again, in their order of arrival.
pub(crate) async fn order_outlasts_a_fast_clock(at: At) -> String {
    let name = unique("order");
    let locks = at.locks_apart().await;
    let mut java = Java::on(&at, &name, 7).await;
    let guard = locks.fair_lock(&name).acquire().await.unwrap();
    let line = Line::default();
    for number in 1..=5 {
        line.join(locks.fair_lock(&name), number);
        natives(&mut java, number).await;
    }
    java.clock_ahead = 3_600_000;
    assert!(java.fair_lock(80_000).await.is_some(), "ours holds it");
    natives(&mut java, 5).await;
    guard.release().await.unwrap();
    let order = line.order(5).await;
    assert_eq!(order, [1, 2, 3, 4, 5]);
    close(locks).await;
    format!("{order:?}")
}

/// A spinning waiter gets the lock in its turn like any other.
pub(crate) async fn who_spins_is_not_overtaken(at: At) -> String {
    let name = unique("spinning");
    let locks = at.locks_apart().await;
    let mut java = Java::on(&at, &name, 7).await;
    let guard = locks.fair_lock(&name).acquire().await.unwrap();
    let line = Line::default();
    let spins = WaitStrategy::Poll {
        min: Duration::from_millis(100),
        max: Duration::from_millis(200),
    };
    for (number, strategy) in [(1, spins), (2, WaitStrategy::default()), (3, spins)] {
        line.join(locks.fair_lock(&name).strategy(strategy), number);
        natives(&mut java, number).await;
    }
    guard.release().await.unwrap();
    let order = line.order(3).await;
    assert_eq!(order, [1, 2, 3]);
    close(locks).await;
    format!("{order:?}")
}

/// The grants, in order.
#[derive(Clone, Default)]
struct Line(Arc<Mutex<Vec<usize>>>);

impl Line {
    fn join(&self, request: LockRequest, number: usize) {
        let line = self.clone();
        tokio::spawn(async move {
            let guard = request.acquire().await.unwrap();
            line.0.lock().unwrap().push(number);
            guard.release().await.unwrap();
        });
    }

    async fn order(&self, length: usize) -> Vec<usize> {
        eventually("everybody's turn", LONG, async || {
            let order = self.0.lock().unwrap().clone();
            if order.len() == length {
                Ok(order)
            } else {
                Err(order)
            }
        })
        .await
    }
}

/// Waits until this many of ours are queued.
async fn natives(java: &mut Java, count: usize) {
    let queue = java.side("redisson_lock_queue");
    eventually("ours in the queue", LONG, async || {
        let waiters = java.raw().say(&["LRANGE", &queue, "0", "-1"]).await;
        let waiters = waiters.list().iter().map(Value::text);
        match waiters
            .filter(|owner| owner.get(14..23) == Some("8c70-a705"))
            .count()
        {
            there if there == count => Ok(()),
            there => Err(there),
        }
    })
    .await;
}

/// Three of theirs listen and do not come, as in a stopped process: a free lock is left to them
/// once.
pub(crate) async fn called_but_not_coming(at: At) -> String {
    let name = unique("stopped");
    let locks = at.locks_apart().await;
    let guard = locks.fair_lock(&name).acquire().await.unwrap();
    let mut stopped = Vec::new();
    for thread in 1..=3 {
        let mut java = Java::on(&at, &name, thread).await;
        assert!(java.fair_lock(80_000).await.is_some());
        let ear = Ear::to(&at, &name, &[java.own_channel()]).await;
        stopped.push((java, ear));
    }
    let begun = Instant::now();
    guard.release().await.unwrap();
    assert_eq!(stopped[0].1.next().await.1, "0");
    locks
        .fair_lock(&name)
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let first = begun.elapsed();
    assert!(first > Duration::from_millis(2_500), "they had their turn");
    assert!(first < TURN, "{first:?}");
    let begun = Instant::now();
    for _ in 0..5 {
        let guard = locks.fair_lock(&name).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    let later = begun.elapsed();
    assert!(later < Duration::from_secs(2), "{later:?}");
    // The one that comes after all still has its place.
    let (java, _ear) = &mut stopped[0];
    assert_eq!(java.fair_lock(80_000).await, None);
    assert_eq!(java.fair_unlock().await, Some(1));
    assert_eq!(stopped[1].1.next().await.1, "0");
    close(locks).await;
    format!("left to them for {first:.2?}, then five times in {later:.2?}")
}
