//! Features of python-redis-lock, sherlock, pottery and bsm/redislock.

use std::time::Duration;

use locktopus::{LockError, MutexProfile};
use tokio::time::Instant;

use crate::At;
use crate::both_ways::LONG;
use crate::common::raw::Raw;
use crate::common::{PATIENT, close, eventually};

/// Waiters of python-redis-lock block on a list, for as long as their own lease. Our release wakes
/// them, and so does a forced one.
pub(crate) async fn woken(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let mut raw = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    for forced in [false, true] {
        let request = at.request(&locks, &name);
        let guard = request.clone().acquire().await.unwrap();
        theirs
            .tell(&format!("acquire-blocking {name} {LONG}"))
            .await;
        // The name of its connection is the name of the lock.
        let own = format!(" name={name} ");
        eventually("theirs blocks", PATIENT, async || {
            let clients = raw.say(&["CLIENT", "LIST"]).await.text();
            let blocks = |line: &str| line.contains(&own) && line.contains(" flags=b ");
            let found = clients.lines().any(blocks);
            found.then_some(()).ok_or(clients)
        })
        .await;
        if forced {
            let broken = request.force_release("test").await.unwrap();
            assert_eq!(broken.evicted.len(), 1);
            drop(guard);
        } else {
            guard.release().await.unwrap();
        }
        theirs.answer().await.unwrap();
        theirs.does("release").await;
    }
    // The end of a lease wakes no waiter; theirs check again after as long as their own lease.
    let key = at.key(&name);
    let set = raw.say(&["SET", &key, "of the dead", "PX", "300"]).await;
    assert_eq!(set.text(), "OK");
    let begun = Instant::now();
    theirs.does(&format!("acquire-blocking {name} 3000")).await;
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(2), "{waited:?}");
    theirs.does("release").await;
    close(locks).await;
    format!("released and forced; {waited:.1?} after a death")
}

/// sherlock with `expire=None` sets a lease of -1 s, which deletes what it has just written: it
/// believes that it holds a lock that is free.
pub(crate) async fn holds_nothing(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let value = theirs.does(&format!("try-without-expiry {name}")).await;
    let guard = at.request(&locks, &name).try_acquire().await.unwrap();
    guard.expect("free").release().await.unwrap();
    close(locks).await;
    value
}

/// pottery extends a lock three times and no more.
pub(crate) async fn extends_thrice(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    theirs.does(&format!("try {name} {LONG}")).await;
    let extend = format!("extend {LONG}");
    for _ in 0..3 {
        theirs.does(&extend).await;
    }
    let why = theirs.cannot(&extend).await;
    assert!(why.starts_with("TooManyExtensions"), "{why}");
    theirs.does("release").await;
    close(locks).await;
    "three".to_owned()
}

/// redislock compares only its token when it re-acquires a lock, but token and metadata when it
/// releases one.
pub(crate) async fn tokens(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let mut raw = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    let with_metadata = MutexProfile::bsm_redislock_with_metadata("why:7");
    let request = locks.mutex_as(&name, with_metadata);
    let guard = request.clone().acquire().await.unwrap();
    let value = raw.say(&["GET", &name]).await.text();
    let (token, metadata) = value.split_at(22);
    assert!((at.form)(token) && metadata == "why:7", "{value}");
    let other = format!("try-with-metadata {name} {LONG} why:7");
    theirs.cannot(&other).await;

    // With our token it acquires our lock. Without the metadata, the lock is no longer ours.
    let theirs_now = theirs.does(&format!("try-as {name} {LONG} {token}")).await;
    assert_eq!(theirs_now, token);
    let late = guard.release().await;
    assert!(matches!(late, Err(LockError::Lost { .. })), "{late:?}");
    theirs.does("release").await;

    let value = theirs.does(&other).await;
    let state = request.inspect().await.unwrap();
    assert_eq!(at.shown(state.holder().unwrap().owner.expose()), value);
    assert!(value.ends_with("why:7"), "{value}");
    theirs.does("release").await;
    close(locks).await;
    value
}
