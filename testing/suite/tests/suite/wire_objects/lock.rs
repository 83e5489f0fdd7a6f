//! `lock` and Redisson's `RLock`, `RFencedLock` and `RSpinLock`.

use std::time::Duration;

use locktopus::{LockGuard, LockRequest, Locktopus};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::common::{HANDED, HANDED_LEASE, SOON, close, eventually, unique};
use crate::wire_objects::At;
use crate::wire_objects::ear::{Ear, Spy, listeners};
use crate::wire_objects::java::Java;

/// A waiter that only a message can serve in time, and when that was.
pub(crate) fn waiting(request: LockRequest) -> JoinHandle<(LockGuard, Instant)> {
    let request = request.fixed_lease(HANDED_LEASE).strategy(HANDED);
    tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) })
}

/// Returns once our own queue of a name has this many waiters and this many clients listen to
/// `channel`.
pub(crate) async fn queued(at: &At, java: &mut Java, waiters: i64, channel: &str, clients: i64) {
    let queue = java.side("locktopus_queue");
    eventually("somebody in the queue", SOON, async || {
        let listening = listeners(at, java.raw(), channel).await;
        let queue = java.raw().say(&["ZCARD", &queue]).await.int();
        if (queue, listening) == (waiters, clients) {
            return Ok(());
        }
        Err(format!("{queue} waiters, {listening} listeners"))
    })
    .await;
}

pub(crate) fn soon(since: Instant, served: Instant) -> Duration {
    let took = served.saturating_duration_since(since);
    assert!(took < SOON, "{took:?}");
    took
}

/// They hold twice: the first release frees nothing, the second lets us in by its message.
pub(crate) async fn they_hold(at: At) -> String {
    let name = unique("rlock");
    let locks = at.locks().await;
    let mut java = Java::on(&at, &name, 53).await;
    assert_eq!(java.lock(80_000).await, None);
    assert_eq!(java.lock(80_000).await, None);
    let state = locks.lock(&name).inspect().await.unwrap();
    assert_eq!(state.holder().unwrap().holds, 2);
    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());

    let waiter = waiting(locks.lock(&name));
    let channel = java.channel();
    queued(&at, &mut java, 1, &channel, 1).await;
    assert_eq!(java.unlock().await, Some(0));
    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());
    assert!(!waiter.is_finished());

    let begun = Instant::now();
    assert_eq!(java.unlock().await, Some(1));
    let (guard, served) = waiter.await.unwrap();
    // They cannot enter, and their second release is refused.
    assert!(java.lock(1_000).await.unwrap() > 1_000);
    assert_eq!(java.unlock().await, None);
    assert_eq!(java.fields().await.len(), 1);
    guard.release().await.unwrap();
    close(locks).await;
    format!("served {:.2?} after the message", soon(begun, served))
}

/// We hold: they see an ordinary holder, and hear exactly one `0` when it releases.
pub(crate) async fn we_hold(at: At) -> String {
    let name = unique("rlock");
    let locks = at.locks().await;
    let mut java = Java::on(&at, &name, -9).await;
    let guard = locks
        .lock(&name)
        .fixed_lease(SOON * 2)
        .acquire()
        .await
        .unwrap();
    let mut spy = Spy::on(&at, &name).await;
    let left = java.lock(30_000).await.unwrap();
    assert!((1..=10_000).contains(&left), "{left} ms");
    assert_eq!(java.unlock().await, None, "not theirs");
    guard.release().await.unwrap();
    assert_eq!(spy.next().await, 0);
    assert_eq!(java.lock(30_000).await, None);
    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());

    // Evicting them is a release too.
    let evicted = locks.lock(&name).force_release("test").await.unwrap();
    assert_eq!(evicted.evicted.len(), 1);
    assert_eq!(spy.next().await, 0);
    assert_eq!(java.unlock().await, None);
    // Only these two.
    close(locks).await;
    assert!(spy.numbers().is_empty(), "{:?}", spy.numbers());
    format!("{left} ms were left to them")
}

/// One counter for their fenced lock and our locks: tokens grow across both sides.
pub(crate) async fn tokens_are_shared(at: At) -> String {
    let name = unique("fenced");
    let locks = at.locks().await;
    let mut java = Java::on(&at, &name, 1).await;
    let mut tokens = vec![java.fenced(60_000).await.unwrap()];
    // Redisson counts re-entries.
    tokens.push(java.fenced(60_000).await.unwrap());
    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());
    assert_eq!(java.unlock().await, Some(0));
    assert_eq!(java.unlock().await, Some(1));
    for _ in 0..2 {
        let guard = locks.lock(&name).acquire().await.unwrap();
        tokens.push(i64::try_from(guard.token().unwrap().get()).unwrap());
        assert_eq!(java.fenced(60_000).await, None);
        guard.release().await.unwrap();
        tokens.push(java.fenced(60_000).await.unwrap());
        assert_eq!(java.unlock().await, Some(1));
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    close(locks).await;
    format!("{tokens:?}")
}

/// A spin lock announces no release: our heartbeat finds out. Ours announces it all the same.
pub(crate) async fn spin_locks_ring_no_bell(at: At) -> String {
    let name = unique("spin");
    let locks: Locktopus = at.locks().await;
    let mut java = Java::on(&at, &name, 1).await;
    assert_eq!(java.lock(80_000).await, None);
    let mut ear = Ear::to(&at, &name, &[java.channel()]).await;
    let request = locks.lock(&name);
    let waiter = tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) });
    let channel = java.channel();
    queued(&at, &mut java, 1, &channel, 2).await;
    let begun = Instant::now();
    assert_eq!(java.spin_unlock().await, Some(1));
    let (guard, served) = waiter.await.unwrap();
    let took = soon(begun, served);
    assert_eq!(ear.so_far(), []);
    assert!(java.lock(1_000).await.is_some());
    guard.release().await.unwrap();
    assert_eq!(ear.next().await.1, "0");
    assert_eq!(java.lock(1_000).await, None);
    close(locks).await;
    format!("noticed after {took:.2?}")
}
