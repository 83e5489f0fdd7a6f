//! `rw_lock` and Redisson's `RReadWriteLock`.

use std::time::Duration;

use locktopus::{Owner, RwLock, WriteGuard};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::common::{HANDED, HANDED_LEASE, PATIENT, close, eventually, unique};
use crate::wire_objects::At;
use crate::wire_objects::ear::Spy;
use crate::wire_objects::java::Java;
use crate::wire_objects::lock::{queued, soon, waiting};

fn writing(lock: &RwLock) -> JoinHandle<(WriteGuard, Instant)> {
    let request = lock.write().fixed_lease(HANDED_LEASE).strategy(HANDED);
    tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) })
}

async fn exists(java: &mut Java, key: &str) -> bool {
    java.raw().say(&["EXISTS", key]).await.int() == 1
}

async fn left(java: &mut Java, key: &str) -> i64 {
    java.raw().say(&["PTTL", key]).await.int()
}

/// They read twice, we read too, and one of ours wants to write.
pub(crate) async fn they_read(at: At) -> String {
    let name = unique("rw");
    let locks = at.locks().await;
    let rw = locks.rw_lock(&name);
    let mut java = Java::on(&at, &name, 1).await;
    assert_eq!(java.read_lock(20_000).await, None);
    let reader = rw
        .read()
        .fixed_lease(Duration::from_secs(60))
        .acquire()
        .await
        .unwrap();
    assert_eq!(java.read_lock(20_000).await, None);
    let ours = String::from_utf8(reader.owner().expose().to_vec()).unwrap();
    // Ours has its own expiry, and the lock lives as long as the longest.
    let timeout = format!("{{{name}}}:{ours}:rwlock_timeout:1");
    assert!(left(&mut java, &timeout).await > 50_000);
    assert!(left(&mut java, &name).await > 50_000);
    let state = rw.inspect().await.unwrap();
    assert_eq!(state.holders.len(), 2, "{state:?}");

    let writer = writing(&rw);
    let channel = java.side("redisson_rwlock");
    queued(&at, &mut java, 1, &channel, 1).await;
    // Theirs end: the lock is ours alone, for as long as ours lasts.
    assert_eq!(java.read_unlock().await, Some(0));
    assert_eq!(java.read_unlock().await, Some(0));
    let fields = java.fields().await;
    assert_eq!(fields.len(), 2, "{fields:?}");
    assert!(left(&mut java, &name).await > 50_000);
    // They come once more, and are the last to leave.
    assert_eq!(java.read_lock(20_000).await, None);
    reader.release().await.unwrap();
    assert!(!exists(&mut java, &timeout).await);
    let shortened = left(&mut java, &name).await;
    assert!((1..=20_000).contains(&shortened), "{shortened} ms");
    assert!(!writer.is_finished());
    let begun = Instant::now();
    assert_eq!(java.read_unlock().await, Some(1));
    let (guard, served) = writer.await.unwrap();
    assert!(java.read_lock(1_000).await.is_some());
    assert!(java.write_lock(1_000).await.is_some());
    guard.release().await.unwrap();
    close(locks).await;
    format!("the writer was served in {:.2?}", soon(begun, served))
}

/// Crashed readers keep a lock only until their own expiry, even if others still read.
pub(crate) async fn dead_readers(at: At) -> String {
    let name = unique("rw");
    let locks = at.locks().await;
    let rw = locks.rw_lock(&name);
    let mut dead = Java::on(&at, &name, 1).await;
    assert_eq!(dead.read_lock(30_000).await, None);
    let reader = rw
        .read()
        .fixed_lease(Duration::from_secs(40))
        .acquire()
        .await
        .unwrap();
    let timeout = format!("{{{name}}}:{}:rwlock_timeout:1", dead.owner);
    dead.raw().say(&["DEL", &timeout]).await;
    reader.release().await.unwrap();
    assert!(!exists(&mut dead, &name).await, "kept by a dead reader");

    // Our dead reader does not prolong their lock, nor does it cost them theirs.
    let lost = rw
        .read()
        .fixed_lease(Duration::from_secs(40))
        .acquire()
        .await
        .unwrap();
    let ours = String::from_utf8(lost.owner().expose().to_vec()).unwrap();
    let mut java = Java::on(&at, &name, 2).await;
    assert_eq!(java.read_lock(20_000).await, None);
    let timeout = format!("{{{name}}}:{ours}:rwlock_timeout:1");
    java.raw().say(&["DEL", &timeout]).await;
    assert_eq!(rw.inspect().await.unwrap().holders.len(), 1);
    assert_eq!(java.read_unlock().await, Some(1), "the last one alive");
    let guard = rw.write().try_acquire().await.unwrap().unwrap();
    drop(lost);
    guard.ensure_valid().unwrap();
    assert!(java.read_lock(1_000).await.is_some());
    guard.release().await.unwrap();
    close(locks).await;
    "neither kept it".to_owned()
}

/// They write twice; two of ours wait to read, and enter together.
pub(crate) async fn they_write(at: At) -> String {
    let name = unique("rw");
    let locks = at.locks().await;
    let rw = locks.rw_lock(&name);
    let mut java = Java::on(&at, &name, 1).await;
    assert_eq!(java.write_lock(60_000).await, None);
    assert_eq!(java.write_lock(60_000).await, None);
    assert!(rw.read().try_acquire().await.unwrap().is_none());
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    let readers = [waiting(rw.read()), waiting(rw.read())];
    let channel = java.side("redisson_rwlock");
    queued(&at, &mut java, 2, &channel, 1).await;
    assert_eq!(java.write_unlock().await, Some(0));
    let begun = Instant::now();
    assert_eq!(java.write_unlock().await, Some(1));
    let mut took = Vec::new();
    let mut guards = Vec::new();
    for reader in readers {
        let (guard, served) = reader.await.unwrap();
        took.push(soon(begun, served));
        guards.push(guard);
    }
    assert!(java.write_lock(1_000).await.is_some());
    assert_eq!(
        java.read_lock(20_000).await,
        None,
        "reading goes on together"
    );
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert_eq!(java.read_unlock().await, Some(1));
    close(locks).await;
    format!("both served in {took:.2?}")
}

/// The messages they hear when ours release: `1` lets all try, `0` one.
pub(crate) async fn we_hold(at: At) -> String {
    let name = unique("rw");
    let locks = at.locks().await;
    let rw = locks.rw_lock(&name);
    let mut java = Java::on(&at, &name, 1).await;
    let mut spy = Spy::on(&at, &name).await;

    let guard = rw.write().acquire().await.unwrap();
    assert!(java.read_lock(20_000).await.is_some());
    assert!(java.write_lock(20_000).await.is_some());
    assert_eq!(java.write_unlock().await, None, "not theirs");
    guard.release().await.unwrap();
    assert_eq!(spy.next().await, 1, "after writing");

    let guard = rw.write().acquire().await.unwrap();
    let reader = guard.downgrade().await.unwrap();
    assert_eq!(spy.next().await, 1, "after a downgrade");
    assert_eq!(java.read_lock(20_000).await, None);
    assert!(java.write_lock(20_000).await.is_some());
    assert_eq!(java.read_unlock().await, Some(0), "ours still reads");

    let second = rw.read().acquire().await.unwrap();
    reader.release().await.unwrap();
    second.release().await.unwrap();
    assert_eq!(spy.next().await, 0, "only after the last reader");
    assert_eq!(java.write_lock(20_000).await, None);
    assert_eq!(java.write_unlock().await, Some(1));
    assert_eq!(spy.next().await, 1, "their own");
    close(locks).await;
    assert!(spy.numbers().is_empty(), "{:?}", spy.numbers());
    "1, 1, 0".to_owned()
}

/// Ours writes, and still reads when its write lease has ended. Theirs find a read lock in their
/// own format.
pub(crate) async fn we_write_and_read(at: At) -> String {
    let name = unique("rw");
    let locks = at.locks().await;
    let rw = locks.rw_lock(&name);
    let mut java = Java::on(&at, &name, 1).await;
    let me = Owner::new();
    let lease = Duration::from_secs(2);
    let writing = rw.write().owner(&me).fixed_lease(lease);
    let writing = writing.acquire().await.unwrap();
    // Renewed every second, which also shows theirs that the writer is gone.
    let reading = rw.read().owner(&me).renewed_lease(Duration::from_secs(3));
    let reading = reading.acquire().await.unwrap();
    assert!(java.read_lock(20_000).await.is_some());
    assert_eq!(java.fields().await.len(), 3, "the fields that they count");
    let begun = Instant::now();
    eventually("theirs reads beside ours", PATIENT, async || {
        match java.read_lock(20_000).await {
            None => Ok(()),
            left => Err(left),
        }
    })
    .await;
    let waited = begun.elapsed();
    assert!(java.write_lock(1_000).await.is_some());
    assert!(writing.ensure_valid().is_err());
    reading.ensure_valid().unwrap();
    let values: Vec<_> = java.fields().await.into_values().collect();
    assert!(!values.contains(&"write".to_owned()), "{values:?}");
    reading.release().await.unwrap();
    assert!(java.write_lock(1_000).await.is_some());
    assert_eq!(java.read_unlock().await, Some(1), "the last one");
    drop(writing);

    // After ours stops writing, the lock lasts as long as its read lease.
    let writing = rw.write().fixed_lease(Duration::from_secs(60));
    let writing = writing.owner(&me).acquire().await.unwrap();
    let reading = rw.read().owner(&me).fixed_lease(Duration::from_secs(20));
    let reading = reading.acquire().await.unwrap();
    writing.release().await.unwrap();
    let left = left(&mut java, &name).await;
    assert!((1..=20_000).contains(&left), "{left} ms");
    assert_eq!(java.read_lock(5_000).await, None);
    assert_eq!(java.read_unlock().await, Some(0));
    reading.release().await.unwrap();
    assert!(!exists(&mut java, &name).await);
    close(locks).await;
    format!("theirs read after {waited:.2?}")
}

/// Theirs writes and reads. As a writer it has no expiry of its own: it writes as long as the lock
/// lasts.
pub(crate) async fn they_write_and_read(at: At) -> String {
    let name = unique("rw");
    let locks = at.locks().await;
    let rw = locks.rw_lock(&name);
    let mut java = Java::on(&at, &name, 1).await;
    assert_eq!(java.write_lock(1_000).await, None);
    assert_eq!(java.read_lock(60_000).await, None);
    let shown = rw.inspect().await.unwrap().holders;
    assert_eq!(shown.len(), 2, "{shown:?}");
    for holder in &shown {
        assert!(holder.remaining.unwrap() > Duration::from_secs(5));
    }
    assert!(rw.read().try_acquire().await.unwrap().is_none());
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    assert_eq!(java.write_unlock().await, Some(1));
    let guard = rw.read().try_acquire().await.unwrap().unwrap();
    assert_eq!(java.read_unlock().await, Some(0));
    guard.release().await.unwrap();
    assert!(!exists(&mut java, &name).await);
    close(locks).await;
    "ours read after theirs stopped to write".to_owned()
}
