//! `permit_semaphore` and Redisson's `RPermitExpirableSemaphore`.

use std::time::Duration;

use tokio::time::Instant;

use crate::common::raw::Value;
use crate::common::{close, unique};
use crate::wire_objects::At;
use crate::wire_objects::ear::Spy;
use crate::wire_objects::java::Java;
use crate::wire_objects::lock::{queued, soon, waiting};

const FIRST: [u8; 16] = *b"\x00\xff\r\n {java id}\x80\x01";
const SECOND: [u8; 16] = [7; 16];

pub(crate) async fn both_ways(at: At) -> String {
    let name = unique("permits");
    let locks = at.locks().await;
    let semaphore = locks.permit_semaphore(&name);
    let mut java = Java::on(&at, &name, 1).await;
    let mut spy = Spy::on(&at, &name).await;
    assert!(java.set_permits(2).await);
    assert_eq!(spy.next().await, 2);

    // We hold: our ids are sixteen bytes that they can read, each with its own end.
    let lease = Duration::from_secs(60);
    let guard = semaphore
        .permits(2)
        .fixed_lease(lease)
        .acquire()
        .await
        .unwrap();
    let held = format!("{{{name}}}:timeout");
    let entries = java
        .raw()
        .say(&["ZRANGE", &held, "0", "-1", "WITHSCORES"])
        .await;
    let entries = entries.list().to_vec();
    assert_eq!(entries.len(), 4, "{entries:?}");
    assert!(entries.iter().step_by(2).all(|id| id.bytes().len() == 16));
    let Err(Value::Bytes(until)) = java.take_permit(FIRST, 60_000).await else {
        panic!("they must be told when to look again");
    };
    assert_eq!(until, [b":", entries[1].bytes()].concat());
    guard.release().await.unwrap();
    assert_eq!(spy.next().await, 2);

    // They hold, we wait.
    assert_eq!(java.take_permit(FIRST, 60_000).await, Ok(()));
    assert_eq!(java.take_permit(SECOND, 60_000).await, Ok(()));
    assert_eq!(semaphore.available().await.unwrap(), Some(0));
    assert_eq!(semaphore.inspect().await.unwrap().holders.len(), 2);
    let waiter = waiting(semaphore.permits(1));
    let channel = java.side("redisson_sc");
    queued(&at, &mut java, 1, &channel, 2).await;
    let begun = Instant::now();
    assert!(java.give_permit(FIRST).await);
    let (guard, served) = waiter.await.unwrap();
    let took = soon(begun, served);
    assert_eq!(spy.next().await, 1);
    assert!(!java.give_permit(FIRST).await, "given back once");
    assert!(java.take_permit(FIRST, 60_000).await.is_err());

    // Theirs expires: ours get it, and only once.
    let score = java
        .raw()
        .ask(&[b"ZADD", held.as_bytes(), b"1", &SECOND])
        .await;
    assert_eq!(score.int(), 0, "its end was moved");
    let second = semaphore.permits(1).acquire().await.unwrap();
    assert!(!java.give_permit(SECOND).await);
    assert_eq!(semaphore.available().await.unwrap(), Some(0));
    // Ours expires, and they get it.
    let ours = second.owner().expose().to_vec();
    java.raw()
        .ask(&[b"ZADD", held.as_bytes(), b"1", &ours])
        .await;
    assert_eq!(java.take_permit(SECOND, 60_000).await, Ok(()));
    assert!(second.release().await.is_err());
    guard.release().await.unwrap();
    close(locks).await;
    assert!(spy.numbers().iter().all(|number| *number >= 1));
    format!("served in {took:.2?}")
}
