//! `RReadWriteLock` and `rw_lock`. `objects` tests that writers exclude each other.

use std::time::Duration;

use locktopus::{Owner, WaitStrategy};
use tokio::time::{Instant, timeout};

use crate::common::{HANDED, HANDED_LEASE, PATIENT, close};
use crate::redisson_topology::ours::Ours;
use crate::redisson_topology::theirs::{LONG_LEASE, Theirs};
use crate::redisson_topology::{At, our_waiters};

/// Readers of both sides enter together. Our writer waits for the last of them, and theirs wait for
/// our writer.
pub(crate) async fn they_read(at: At) -> String {
    let locks = at.locks().await;
    let mut reads = Theirs::new(&at, "read");
    let name = reads.name.clone();
    let rw = locks.rw_lock(&*name);
    reads.does("lock", &[LONG_LEASE]).await;
    let ours = rw.read().fixed_lease(HANDED_LEASE).acquire().await.unwrap();
    reads.does("lock", &[LONG_LEASE]).await;
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    let writer = Ours::Write.waits(&locks, &name, HANDED);
    our_waiters(&at.place, &name, Ours::Write, 1).await;
    reads.does("unlock", &[]).await;
    ours.release().await.unwrap();
    assert!(!writer.is_finished(), "theirs still reads");
    reads.does("unlock", &[]).await;
    let held = timeout(PATIENT, writer)
        .await
        .expect("the last reader left");
    reads.cannot("try", &[]).await;
    reads.cannot_unlock().await;
    let mut other = reads.another();
    reads.waits("lock", &[LONG_LEASE]).await;
    other.waits("lock", &[LONG_LEASE]).await;
    held.unwrap().release().await.unwrap();
    // Both at once.
    reads.served().await;
    other.served().await;
    reads.does("unlock", &[]).await;
    other.does("unlock", &[]).await;
    close(locks).await;
    "readers together".to_owned()
}

/// Their writer blocks our readers and then lets both in; ours block it until the last one has
/// left.
pub(crate) async fn they_write(at: At) -> String {
    let locks = at.locks().await;
    let mut writes = Theirs::new(&at, "write");
    let name = writes.name.clone();
    let mut reads = Theirs::named(&at, "read", &name);
    let rw = locks.rw_lock(&*name);
    writes.does("lock", &[LONG_LEASE]).await;
    assert!(rw.read().try_acquire().await.unwrap().is_none());
    let waiting = || {
        let request = rw.read().strategy(HANDED).fixed_lease(HANDED_LEASE);
        tokio::spawn(request.acquire())
    };
    let readers = [waiting(), waiting()];
    our_waiters(&at.place, &name, Ours::Write, 2).await;
    writes.does("unlock", &[]).await;
    let mut guards = Vec::new();
    for reader in readers {
        let guard = timeout(PATIENT, reader).await.expect("the writer left");
        guards.push(guard.unwrap().unwrap());
    }
    reads.does("try", &["0", LONG_LEASE]).await;
    reads.does("unlock", &[]).await;
    writes.cannot("try", &[]).await;
    writes.waits("lock", &[LONG_LEASE]).await;
    guards.pop().unwrap().release().await.unwrap();
    writes.still_waits().await;
    guards.pop().unwrap().release().await.unwrap();
    writes.served().await;
    writes.does("unlock", &[]).await;
    close(locks).await;
    "both of ours, then theirs".to_owned()
}

/// Our downgrade lets their readers in, and no writer.
pub(crate) async fn we_downgrade(at: At) -> String {
    let locks = at.locks().await;
    let mut reads = Theirs::new(&at, "read");
    let name = reads.name.clone();
    let mut writes = Theirs::named(&at, "write", &name);
    let request = locks.rw_lock(&*name).write();
    let writer = request.strategy(WaitStrategy::default()).acquire();
    let writer = writer.await.unwrap();
    reads.waits("lock", &[LONG_LEASE]).await;
    let reader = writer.downgrade().await.unwrap();
    reads.served().await;
    writes.cannot("try", &[]).await;
    reader.release().await.unwrap();
    writes.cannot("try", &[]).await;
    reads.does("unlock", &[]).await;
    writes.does("try", &["0", LONG_LEASE]).await;
    writes.does("unlock", &[]).await;
    close(locks).await;
    "no writer in between".to_owned()
}

/// Ours writes, and still reads when its write lease has ended. Their readers, which wait for the
/// writer, get in, and no writer does.
pub(crate) async fn we_read_on(at: At) -> String {
    let locks = at.locks().await;
    let mut reads = Theirs::new(&at, "read");
    let name = reads.name.clone();
    let mut writes = Theirs::named(&at, "write", &name);
    let rw = locks.rw_lock(&*name);
    let me = Owner::new();
    let writing = rw.write().owner(&me).fixed_lease(Duration::from_secs(3));
    let writing = writing.acquire().await.unwrap();
    let reading = rw.read().owner(&me).renewed_lease(Duration::from_secs(3));
    let reading = reading.acquire().await.unwrap();
    // The writer's value is not a number now. They compare only the mode.
    writes.cannot("try", &[]).await;
    reads.cannot("try", &[]).await;
    // They check again when the expiry they saw has passed, in at most three seconds.
    let begun = Instant::now();
    reads.does("lock", &[LONG_LEASE]).await;
    let waited = begun.elapsed();
    assert!(writing.ensure_valid().is_err());
    reading.ensure_valid().unwrap();
    writes.cannot("try", &[]).await;
    reading.release().await.unwrap();
    writes.cannot("try", &[]).await;
    reads.does("unlock", &[]).await;
    writes.does("try", &["0", LONG_LEASE]).await;
    writes.does("unlock", &[]).await;
    drop(writing);
    close(locks).await;
    format!("theirs read after {waited:.1?}")
}

/// Theirs writes, and still reads when it has stopped writing: ours read beside it, and do not
/// write.
pub(crate) async fn they_read_on(at: At) -> String {
    let locks = at.locks().await;
    let mut writes = Theirs::new(&at, "write");
    let name = writes.name.clone();
    let rw = locks.rw_lock(&*name);
    writes.does("lock", &[LONG_LEASE]).await;
    writes.also("read", "lock", &[LONG_LEASE]).await;
    assert_eq!(rw.inspect().await.unwrap().holders.len(), 2);
    assert!(rw.read().try_acquire().await.unwrap().is_none());
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    writes.does("unlock", &[]).await;
    let guard = rw.read().try_acquire().await.unwrap();
    let guard = guard.expect("it reads only");
    assert!(rw.write().try_acquire().await.unwrap().is_none());
    writes.also("read", "unlock", &[]).await;
    guard.release().await.unwrap();
    let guard = rw.write().try_acquire().await.unwrap();
    guard.expect("free").release().await.unwrap();
    close(locks).await;
    "ours read beside it".to_owned()
}
