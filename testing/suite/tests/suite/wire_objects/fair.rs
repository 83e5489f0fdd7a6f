//! `fair_lock` and Redisson's `RFairLock`: one queue that calls each waiter by name.

use tokio::time::Instant;

use crate::common::raw::Value;
use crate::common::{SOON, close, eventually, unique};
use crate::wire_objects::At;
use crate::wire_objects::ear::{Ear, listeners};
use crate::wire_objects::java::Java;
use crate::wire_objects::lock::{soon, waiting};

/// Returns once the list has this many waiters and the last of them listens to its own channel.
pub(crate) async fn lined_up(at: &At, java: &mut Java, length: usize) -> String {
    let (queue, channel) = (java.side("redisson_lock_queue"), java.channel());
    eventually("somebody in the list", SOON, async || {
        let waiters = java.raw().say(&["LRANGE", &queue, "0", "-1"]).await;
        let waiters: Vec<_> = waiters.list().iter().map(Value::text).collect();
        if waiters.len() != length {
            return Err(format!("{} waiters", waiters.len()));
        }
        let last = waiters.last().unwrap();
        match listeners(at, java.raw(), &format!("{channel}:{last}")).await {
            1 => Ok(last.clone()),
            count => Err(format!("{count} listen to the last one's channel")),
        }
    })
    .await
}

pub(crate) async fn they_hold(at: At) -> String {
    let name = unique("fair");
    let locks = at.locks().await;
    let mut java = Java::on(&at, &name, 1).await;
    assert_eq!(java.fair_lock(80_000).await, None);
    assert_eq!(java.fair_lock(80_000).await, None, "once more");
    let waiter = waiting(locks.fair_lock(&name));
    lined_up(&at, &mut java, 1).await;
    assert_eq!(java.fair_unlock().await, Some(0));
    assert!(
        locks
            .fair_lock(&name)
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    let begun = Instant::now();
    assert_eq!(java.fair_unlock().await, Some(1));
    let (guard, served) = waiter.await.unwrap();
    assert!(java.fair_lock(1_000).await.is_some());
    guard.release().await.unwrap();
    close(locks).await;
    format!("called and served in {:.2?}", soon(begun, served))
}

/// Theirs, then ours, wait for theirs: served in order of arrival, each woken at once.
pub(crate) async fn in_order(at: At) -> String {
    let name = unique("fair");
    let locks = at.locks().await;
    let mut holder = Java::on(&at, &name, 1).await;
    let mut next = Java::on(&at, &name, 2).await;
    let mut ear = Ear::to(&at, &name, &[next.own_channel()]).await;
    assert_eq!(holder.fair_lock(80_000).await, None);
    assert!(next.fair_lock(80_000).await.is_some());
    let waiter = waiting(locks.fair_lock(&name));
    lined_up(&at, &mut holder, 2).await;
    let mut last = Java::on(&at, &name, 3).await;
    assert!(last.fair_lock(80_000).await.is_some());
    let mut last_ear = Ear::to(&at, &name, &[last.own_channel()]).await;

    assert_eq!(holder.fair_unlock().await, Some(1));
    assert_eq!(ear.next().await.1, "0");
    // The lock is free, but it is neither our turn nor that of those behind us.
    assert!(
        locks
            .fair_lock(&name)
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    assert!(last.fair_lock(80_000).await.is_some());
    assert!(!waiter.is_finished());
    assert_eq!(next.fair_lock(80_000).await, None);

    let begun = Instant::now();
    assert_eq!(next.fair_unlock().await, Some(1));
    let (guard, served) = waiter.await.unwrap();
    let took = soon(begun, served);
    assert!(last.fair_lock(80_000).await.is_some());
    let begun = Instant::now();
    guard.release().await.unwrap();
    assert_eq!(last_ear.next().await.1, "0");
    let called = begun.elapsed();
    assert_eq!(last.fair_lock(80_000).await, None);
    assert_eq!(last.fair_unlock().await, Some(1));
    close(locks).await;
    format!("served in {took:.2?}, they were called in {called:.2?}")
}

/// We hold, they wait, another of ours comes later: the release calls theirs, and never grants it
/// to them.
pub(crate) async fn we_hold(at: At) -> String {
    let name = unique("fair");
    let locks = at.locks_apart().await;
    let mut java = Java::on(&at, &name, 1).await;
    let guard = locks.fair_lock(&name).acquire().await.unwrap();
    let left = java.fair_lock(80_000).await.unwrap();
    assert!((1..=30_000).contains(&left), "{left} ms");
    let mut ear = Ear::to(&at, &name, &[java.own_channel(), java.channel()]).await;
    let waiter = waiting(locks.fair_lock(&name));
    lined_up(&at, &mut java, 2).await;
    guard.release().await.unwrap();
    loop {
        let (channel, word) = ear.next().await;
        assert_eq!(word, "0");
        if channel == java.own_channel() {
            break;
        }
    }
    assert_eq!(java.fields().await.len(), 0, "nobody was made the holder");
    assert!(!waiter.is_finished());
    assert_eq!(java.fair_lock(80_000).await, None);
    assert_eq!(
        java.fields().await.get(&java.owner).map(String::as_str),
        Some("1"),
        "held once"
    );
    let begun = Instant::now();
    assert_eq!(java.fair_unlock().await, Some(1));
    let (guard, served) = waiter.await.unwrap();
    guard.release().await.unwrap();
    close(locks).await;
    format!("ours after theirs in {:.2?}", soon(begun, served))
}

/// Their lease ends, and their late unlock calls the head of the queue, which is us.
pub(crate) async fn expired_under_them(at: At) -> String {
    let name = unique("fair");
    let locks = at.locks().await;
    let mut java = Java::on(&at, &name, 1).await;
    assert_eq!(java.fair_lock(600_000).await, None);
    let waiter = waiting(locks.fair_lock(&name));
    lined_up(&at, &mut java, 1).await;
    let begun = Instant::now();
    assert_eq!(
        java.fair_unlock_too_late().await,
        Some(1),
        "Redisson does not mind"
    );
    let (guard, served) = waiter.await.unwrap();
    assert_eq!(java.fair_unlock().await, None, "now it is ours");
    guard.release().await.unwrap();
    close(locks).await;
    format!("served in {:.2?}", soon(begun, served))
}

/// However many of ours come and go while theirs wait, no subscription to a channel remains.
pub(crate) async fn channels_are_given_back(at: At) -> String {
    let name = unique("fair");
    let locks = at.locks_apart().await;
    let mut java = Java::on(&at, &name, 1).await;
    assert_eq!(java.fair_lock(80_000).await, None);
    let mut most = 0;
    for _ in 0..10 {
        let waiters: Vec<_> = (0..5).map(|_| waiting(locks.fair_lock(&name))).collect();
        lined_up(&at, &mut java, 5).await;
        most = most.max(own_channels(&at, &mut java).await);
        waiters.iter().for_each(tokio::task::JoinHandle::abort);
        eventually("an empty queue", SOON, async || {
            let queue = java.side("redisson_lock_queue");
            match java.raw().say(&["LLEN", &queue]).await.int() {
                0 => Ok(()),
                left => Err(left),
            }
        })
        .await;
    }
    assert!(most >= 5, "{most}");
    eventually("no channels", SOON, async || {
        match own_channels(&at, &mut java).await {
            0 => Ok(()),
            left => Err(left),
        }
    })
    .await;
    assert_eq!(java.fair_unlock().await, Some(1));
    close(locks).await;
    format!("at most {most} at a time")
}

async fn own_channels(at: &At, java: &mut Java) -> usize {
    let list = if at.is_sharded() {
        "SHARDCHANNELS"
    } else {
        "CHANNELS"
    };
    let pattern = format!("{}:*", java.channel());
    java.raw()
        .say(&["PUBSUB", list, &pattern])
        .await
        .list()
        .len()
}

/// A waiter of ours that gives up removes its entry from both; one that waits has a deadline that
/// theirs respect.
pub(crate) async fn list_and_deadlines_agree(at: At) -> String {
    let name = unique("fair");
    let locks = at.locks().await;
    let mut java = Java::on(&at, &name, 1).await;
    assert_eq!(java.fair_lock(80_000).await, None);
    let waiter = waiting(locks.fair_lock(&name));
    let owner = lined_up(&at, &mut java, 1).await;
    let deadlines = java.side("redisson_lock_timeout");
    let deadline: i64 = {
        let score = java.raw().say(&["ZSCORE", &deadlines, &owner]).await;
        score.text().parse().unwrap()
    };
    let ahead = deadline - java.now();
    assert!((200_000..=301_000).contains(&ahead), "{ahead} ms");
    waiter.abort();
    eventually("gone from both", SOON, async || {
        let queue = java.side("redisson_lock_queue");
        match java.raw().say(&["EXISTS", &queue, &deadlines]).await.int() {
            0 => Ok(()),
            left => Err(left),
        }
    })
    .await;
    assert_eq!(java.fair_unlock().await, Some(1));
    let free = locks.fair_lock(&name).try_acquire().await.unwrap();
    free.expect("nobody is in the way").release().await.unwrap();
    close(locks).await;
    format!("{ahead} ms ahead")
}
