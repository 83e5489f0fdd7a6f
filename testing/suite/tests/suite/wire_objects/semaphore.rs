//! `semaphore` and Redisson's `RSemaphore`.

use std::time::Duration;

use tokio::time::Instant;

use crate::common::{SOON, close, eventually, unique};
use crate::wire_objects::At;
use crate::wire_objects::ear::Spy;
use crate::wire_objects::java::Java;
use crate::wire_objects::lock::{queued, soon, waiting};

pub(crate) async fn both_ways(at: At) -> String {
    let name = unique("sem");
    let locks = at.locks().await;
    let semaphore = locks.semaphore(&name);
    let mut java = Java::on(&at, &name, 1).await;
    let mut spy = Spy::on(&at, &name).await;
    assert!(java.set_permits(3).await);
    assert_eq!(spy.next().await, 3);
    assert!(!semaphore.initialise(9).await.unwrap(), "set already");

    // We hold, they wait: they hear how many are free.
    let guard = semaphore.permits(2).acquire().await.unwrap();
    assert!(!java.take_permits(2).await);
    assert!(java.take_permits(1).await);
    assert_eq!(semaphore.available().await.unwrap(), Some(0));
    guard.release().await.unwrap();
    assert_eq!(spy.next().await, 2);
    assert!(java.take_permits(2).await);

    // They hold, we wait.
    let waiter = waiting(semaphore.permits(2));
    let channel = java.side("redisson_sc");
    queued(&at, &mut java, 1, &channel, 2).await;
    assert_eq!(java.give_permits(1).await, 1);
    assert_eq!(spy.next().await, 1);
    assert!(!waiter.is_finished(), "one is not enough");
    let begun = Instant::now();
    assert_eq!(java.give_permits(1).await, 2);
    assert_eq!(spy.next().await, 2);
    let (guard, served) = waiter.await.unwrap();
    let took = soon(begun, served);
    assert!(!java.take_permits(1).await);
    guard.release().await.unwrap();
    assert_eq!(spy.next().await, 2);
    // Two of ours at once, by one message of theirs.
    assert!(java.take_permits(2).await);
    let waiters = [waiting(semaphore.permits(1)), waiting(semaphore.permits(1))];
    queued(&at, &mut java, 2, &channel, 2).await;
    assert_eq!(java.give_permits(3).await, 3);
    for waiter in waiters {
        waiter.await.unwrap().0.release().await.unwrap();
    }
    eventually("all are back", SOON, async || {
        match semaphore.available().await.unwrap() {
            Some(3) => Ok(()),
            other => Err(other),
        }
    })
    .await;
    close(locks).await;
    assert!(spy.numbers().iter().all(|number| (1..=3).contains(number)));
    format!("served in {took:.2?}")
}

/// Permits of our crashed holder come back when any client of ours checks, and they are notified.
pub(crate) async fn crashed_holders_come_back(at: At) -> String {
    let name = unique("sem");
    let locks = at.locks().await;
    let semaphore = locks.semaphore(&name);
    let mut java = Java::on(&at, &name, 1).await;
    assert!(java.set_permits(2).await);
    let lost = semaphore
        .permits(2)
        .fixed_lease(Duration::from_secs(600))
        .acquire()
        .await
        .unwrap();
    assert!(!java.take_permits(1).await);
    let mut spy = Spy::on(&at, &name).await;
    // Its lease ends.
    let holders = java.side("locktopus_holders");
    let member = java.raw().say(&["ZRANGE", &holders, "0", "0"]).await.list()[0].text();
    java.raw().say(&["ZADD", &holders, "1", &member]).await;
    assert!(semaphore.permits(3).try_acquire().await.unwrap().is_none());
    assert_eq!(spy.next().await, 2);
    assert!(java.take_permits(2).await);
    // The late release of a lost permit returns nothing.
    assert!(lost.release().await.is_err());
    assert!(!java.take_permits(1).await);
    close(locks).await;
    assert!(spy.numbers().is_empty(), "{:?}", spy.numbers());
    "2 came back".to_owned()
}
