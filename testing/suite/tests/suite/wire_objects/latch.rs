//! `latch` and Redisson's `RCountDownLatch`.

use std::time::Duration;

use locktopus::Latch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::common::{SOON, close, eventually, unique};
use crate::wire_objects::At;
use crate::wire_objects::ear::{Spy, listeners};
use crate::wire_objects::java::Java;
use crate::wire_objects::lock::soon;

/// A waiter that only a message can wake in time, and when that was.
fn opened(latch: &Latch) -> JoinHandle<Instant> {
    let wait = latch.wait().heartbeat(Duration::from_secs(90));
    tokio::spawn(async move {
        wait.await.unwrap();
        Instant::now()
    })
}

async fn listened(at: &At, java: &mut Java) {
    let channel = java.latch_channel();
    eventually("a listener", SOON, async || {
        match listeners(at, java.raw(), &channel).await {
            2.. => Ok(()),
            count => Err(count),
        }
    })
    .await;
}

pub(crate) async fn both_ways(at: At) -> String {
    let name = unique("latch");
    let locks = at.locks().await;
    let latch = locks.latch(&name);
    let mut java = Java::on(&at, &name, 1).await;
    let mut spy = Spy::on(&at, &name).await;

    // They count, all of ours wait.
    assert!(java.set_count(2).await);
    assert_eq!(spy.next().await, 1);
    assert!(!latch.initialise(5).await.unwrap(), "closed already");
    let waiters = [opened(&latch), opened(&latch)];
    listened(&at, &mut java).await;
    java.count_down().await;
    assert_eq!(latch.count().await.unwrap(), 1);
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    let begun = Instant::now();
    java.count_down().await;
    assert_eq!(spy.next().await, 0);
    let mut took = Duration::ZERO;
    for waiter in waiters {
        took = took.max(soon(begun, waiter.await.unwrap()));
    }

    // Both count, both hear.
    assert!(latch.initialise(2).await.unwrap());
    assert_eq!(spy.next().await, 1);
    assert!(!java.set_count(7).await);
    java.count_down().await;
    assert_eq!(latch.count_down().await.unwrap(), 0);
    assert_eq!(spy.next().await, 0);
    assert_eq!(java.raw().say(&["EXISTS", &name]).await.int(), 0);
    // An open latch stays open and silent, even if either side counts.
    java.count_down().await;
    latch.count_down().await.unwrap();
    assert_eq!(java.raw().say(&["EXISTS", &name]).await.int(), 0);
    assert!(java.set_count(1).await);
    assert_eq!(spy.next().await, 1);
    assert!(latch.delete().await.unwrap());
    assert_eq!(spy.next().await, 1, "gone, as Redisson says it");
    close(locks).await;
    assert!(spy.numbers().is_empty(), "{:?}", spy.numbers());
    format!("opened in {took:.2?}")
}
