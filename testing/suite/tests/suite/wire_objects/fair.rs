//! `fair_lock` and Redisson's `RFairLock`: one queue that calls each waiter by name.

use crate::common::raw::Value;
use crate::common::{SOON, close, eventually, unique};
use crate::wire_objects::ear::listeners;
use crate::wire_objects::java::Java;
use crate::wire_objects::{At, waiting};

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
