//! Features that only one library has.

use std::time::Duration;

use locktopus::{Locktopus, MultiLock};
use tokio::time::{Instant, timeout};

use crate::At;
use crate::both_ways::{LONG, waits};
use crate::common::raw::{Raw, Value};
use crate::common::{ONLY_MESSAGES, PATIENT, close, connect, eventually, plain_url_for, url};
use crate::worker::Worker;

/// node-redlock acquires several resources as one lock; for us they are that many mutexes.
pub(crate) async fn several(at: At) -> String {
    let (locks, mut theirs) = (at.locks().await, at.theirs().await);
    let names = [at.name(), at.name()];
    let both = names.join(",");
    theirs.does(&format!("acquire {both} {LONG}")).await;
    for name in &names {
        assert!(
            at.request(&locks, name)
                .try_acquire()
                .await
                .unwrap()
                .is_none()
        );
    }
    theirs.does("release").await;
    let ours = MultiLock::new()
        .add(at.request(&locks, &names[0]))
        .add(at.request(&locks, &names[1]));
    let guard = ours.acquire().await.unwrap();
    theirs.cannot(&format!("try {both} {LONG}")).await;
    theirs.cannot(&format!("try {} {LONG}", names[1])).await;
    guard.release().await.unwrap();
    // We hold one of them, so they get none.
    let one = at.request(&locks, &names[1]).acquire().await.unwrap();
    theirs.cannot(&format!("try {both} {LONG}")).await;
    let other = at.request(&locks, &names[0]).try_acquire().await.unwrap();
    other.expect("free").release().await.unwrap();
    one.release().await.unwrap();
    close(locks).await;
    both
}

/// With default settings they do not wait forever.
pub(crate) async fn gives_up(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let guard = at.request(&locks, &name).acquire().await.unwrap();
    let begun = Instant::now();
    let why = theirs
        .cannot(&format!("acquire-by-default {name} {LONG}"))
        .await;
    let waited = begun.elapsed();
    // Ten pauses of at least 100 ms, or 31 of 50 ms.
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
    close(locks).await;
    format!("after {waited:.1?}: {why}")
}

/// redsync with `SetNXOnExtend`: an extension acquires a lock that is gone.
pub(crate) async fn revived(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let mut raw = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    for (verb, revives) in [("try", false), ("try-reviving", true)] {
        theirs.does(&format!("{verb} {name} {LONG}")).await;
        // Deletes the key, as the end of its lease would.
        assert_eq!(raw.say(&["DEL", &name]).await.int(), 1, "{verb}");
        let extended = theirs.ask(&format!("extend {LONG}")).await;
        assert_eq!(extended.is_ok(), revives, "{verb}: {extended:?}");
    }
    close(locks).await;
    "taken again by an extension".to_owned()
}

/// redis-py without `timeout`: held until it is released, or until someone deletes the key.
pub(crate) async fn without_expiry(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    theirs.does(&format!("acquire {name} 0")).await;
    let state = at.request(&locks, &name).inspect().await.unwrap();
    assert_eq!(state.holder().unwrap().remaining, None);
    // Kills its process.
    drop(theirs);
    let state = at.request(&locks, &name).inspect().await.unwrap();
    assert_eq!(state.holder().unwrap().remaining, None);
    assert!(
        at.request(&locks, &name)
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    let waiter = waits(at.request(&locks, &name));
    let broken = at.request(&locks, &name).force_release("test").await;
    assert_eq!(broken.unwrap().evicted.len(), 1);
    waiter.await.unwrap().release().await.unwrap();
    close(locks).await;
    "kept by the dead".to_owned()
}

/// Other functions of redis-py: `owned`, `reacquire`, `blocking_timeout`, and the error of a late
/// release.
pub(crate) async fn owned(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let mut other = at.theirs().await;
    theirs.does(&format!("try {name} {LONG}")).await;
    theirs.does("owned").await;
    theirs.does("reacquire").await;
    other.cannot(&format!("try-for {name} {LONG} 100")).await;
    let broken = at.request(&locks, &name).force_release("test").await;
    assert_eq!(broken.unwrap().evicted.len(), 1);
    let guard = at.request(&locks, &name).acquire().await.unwrap();
    theirs.cannot("owned").await;
    theirs.cannot("reacquire").await;
    let why = theirs.cannot("release").await;
    assert!(why.starts_with("LockNotOwnedError"), "{why}");
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
    close(locks).await;
    why
}

/// A library's defaults, and the words for them on its page in `docs/book/from`.
pub(crate) async fn defaults(
    at: At,
    said: &'static str,
    page: &'static str,
    words: &'static [&'static str],
) -> String {
    defaults_of(at.theirs().await, said, page, words).await
}

pub(crate) async fn defaults_of(
    mut theirs: Worker,
    said: &'static str,
    page: &'static str,
    words: &'static [&'static str],
) -> String {
    assert_eq!(theirs.does("defaults").await, said);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/from");
    let text = std::fs::read_to_string(format!("{folder}/{page}")).unwrap();
    for quoted in words {
        assert!(text.contains(quoted), "{page} does not say {quoted:?}");
    }
    said.to_owned()
}

/// The number at the end of a `PUBSUB` answer.
async fn listeners(raw: &mut Raw, words: &[&str]) -> i64 {
    match raw.say(words).await {
        Value::List(items) => items[1].int(),
        number => number.int(),
    }
}

/// Connects as a user that may listen to other libraries' channels; the suite's user may not.
async fn may_listen(at: &At) -> Locktopus {
    connect(&url(&plain_url_for(&at.place, at.client), "timeout=5s")).await
}

/// Spring with `PUB_SUB_LOCK`: each side announces its releases as the other side expects. Without
/// the message, neither would poll again before the test gives up.
pub(crate) async fn announced(at: At) -> String {
    let (locks, mut theirs, name) = (may_listen(&at).await, at.theirs().await, at.name());
    let mut raw = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    let request = at.request(&locks, &name).strategy(ONLY_MESSAGES);
    let request = request.fixed_lease(Duration::from_millis(LONG));
    let guard = request.clone().acquire().await.unwrap();
    theirs
        .tell(&format!("acquire-listening {name} {LONG}"))
        .await;
    // It subscribes to all channels of its registry by a pattern, as the only one on this server.
    eventually("Spring listens", PATIENT, async || {
        let patterns = listeners(&mut raw, &["PUBSUB", "NUMPAT"]).await;
        (patterns > 0).then_some(()).ok_or(patterns)
    })
    .await;
    guard.release().await.unwrap();
    theirs.answer().await.unwrap();

    let waiter = tokio::spawn(async move { request.acquire().await.unwrap() });
    let channel = format!("orders-channel:{}", at.key(&name));
    eventually("ours listens", PATIENT, async || {
        let ours = listeners(&mut raw, &["PUBSUB", "NUMSUB", &channel]).await;
        (ours > 0).then_some(()).ok_or(ours)
    })
    .await;
    theirs.does("release").await;
    let served = timeout(PATIENT, waiter).await;
    let guard = served.expect("the message wakes it").unwrap();
    guard.release().await.unwrap();
    close(locks).await;
    channel
}

/// ShedLock's late release of a lock that expired and is now ours. Without `safeUpdate`, the
/// default, it deletes the key unconditionally.
pub(crate) async fn late_release(at: At, safe: bool) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let verb = if safe { "try" } else { "try-unsafe" };
    theirs.does(&format!("{verb} {name} 100")).await;
    let guard = waits(at.request(&locks, &name)).await.unwrap();
    theirs.cannot("release").await;
    let state = at.request(&locks, &name).inspect().await.unwrap();
    assert_eq!(state.holder().is_some(), safe, "{state:?}");
    let released = guard.release().await;
    assert_eq!(released.is_ok(), safe, "{released:?}");
    close(locks).await;
    format!("still ours: {safe}")
}
