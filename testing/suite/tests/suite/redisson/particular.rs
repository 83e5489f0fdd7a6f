//! Features that only one object of Redisson has: tokens, silence, several locks in one.

use std::time::Duration;

use locktopus::{LockError, WaitStrategy};
use tokio::time::timeout;

use crate::common::raw::{Raw, Value};
use crate::common::{PATIENT, close, eventually, unique};
use crate::redisson_topology::At;
use crate::redisson_topology::ours::Ours;
use crate::redisson_topology::theirs::{LONG_LEASE, Theirs};
use crate::redisson_topology::{publish, subscribe};

/// Redisson's own back-off of spin locks.
const SPIN: WaitStrategy = WaitStrategy::Poll {
    min: Duration::from_millis(1),
    max: Duration::from_millis(128),
};

/// A holder of an `RSpinLock` announces nothing; a waiter that polls as often as it does gets the
/// lock.
pub(crate) async fn spin_locks_say_nothing(at: At) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, "spin");
    let name = theirs.name.clone();
    theirs.does("lock", &[LONG_LEASE]).await;
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let node = at.place.primary_for(&name).await.unwrap();
    let (mut ear, mut raw) = (Raw::to(node).await, Raw::to(node).await);
    subscribe(&at.place, &mut ear, &channel).await;
    theirs.does("unlock", &[]).await;
    // The first message heard is the one published after the release.
    publish(&at.place, &mut raw, &channel, "said by the test").await;
    assert_eq!(ear.hear().await.list()[2].text(), "said by the test");
    theirs.does("lock", &[LONG_LEASE]).await;
    let asks = Ours::Lock.waits(&locks, &name, SPIN);
    theirs.does("unlock", &[]).await;
    let held = timeout(PATIENT, asks).await.expect("who asks gets it");
    held.unwrap().release().await.unwrap();
    // Our release is announced for every kind of waiter, or an `RLock` would not hear of it.
    assert_eq!(ear.hear().await.list()[2].text(), "0");
    close(locks).await;
    "nothing was announced".to_owned()
}

/// Tokens grow across both sides, if they are kept forever.
pub(crate) async fn tokens_grow(at: At) -> String {
    let locks = at.locks_with("timeout=5s&token_retention=forever").await;
    let mut theirs = Theirs::new(&at, "fenced");
    let name = theirs.name.clone();
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(theirs.does("lock", &[LONG_LEASE]).await.parse().unwrap());
        theirs.does("unlock", &[]).await;
        let guard = locks.lock(&*name).acquire().await.unwrap();
        tokens.push(guard.token().unwrap().get());
        guard.release().await.unwrap();
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert_eq!(end_of_token(&at, &name).await, -1, "no end");
    close(locks).await;
    format!("{tokens:?}")
}

/// By default tokens are forgotten after a day, and then Java starts again at one. Ours are never
/// below the server's clock.
pub(crate) async fn forgotten_tokens(at: At) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, "fenced");
    let name = theirs.name.clone();
    let guard = locks.lock(&*name).acquire().await.unwrap();
    let before = guard.token().unwrap().get();
    guard.release().await.unwrap();
    theirs.does("lock", &[LONG_LEASE]).await;
    theirs.does("unlock", &[]).await;
    let left = end_of_token(&at, &name).await;
    assert!((1..=86_400_000).contains(&left), "{left} ms");
    // Deletes the token, as the end of the day would.
    let mut raw = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    raw.say(&["DEL", &token_key(&name)]).await;
    assert_eq!(theirs.does("lock", &[LONG_LEASE]).await, "1");
    theirs.does("unlock", &[]).await;
    let guard = locks.lock(&*name).acquire().await.unwrap();
    assert!(guard.token().unwrap().get() > before);
    guard.release().await.unwrap();
    close(locks).await;
    format!("{before}, then 1")
}

/// Redisson 4.7 ignores the lease given to `lockAndGetToken`, and renews. It does use the one given
/// to `tryLockAndGetToken`.
pub(crate) async fn a_lease_that_is_ignored(at: At) -> String {
    let mut theirs = Theirs::new(&at, "fenced");
    theirs.does("lock", &["5000"]).await;
    let ignored = theirs.number("remaining").await;
    assert!(ignored > 5_000, "{ignored} ms");
    theirs.does("unlock", &[]).await;
    theirs.does("try", &["0", "5000"]).await;
    let kept = theirs.number("remaining").await;
    assert!(kept <= 5_000, "{kept} ms");
    theirs.does("unlock", &[]).await;
    format!("{ignored} ms and {kept} ms are left of 5 s")
}

fn token_key(name: &str) -> String {
    format!("redisson_lock_token:{{{name}}}")
}

async fn end_of_token(at: &At, name: &str) -> i64 {
    let mut raw = Raw::to(at.place.primary_for(name).await.unwrap()).await;
    raw.say(&["PTTL", &token_key(name)]).await.int()
}

/// Several locks in one, on both sides: each is an ordinary lock, and both or none are acquired.
pub(crate) async fn several_in_one(at: At) -> String {
    let locks = at.locks().await;
    let names = [unique("multi"), unique("multi")];
    let mut theirs = Theirs::named(&at, "multi", &names.join(","));
    let mut single = Theirs::named(&at, "lock", &names[1]);
    theirs.does("lock", &[LONG_LEASE]).await;
    for name in &names {
        assert!(locks.lock(&**name).try_acquire().await.unwrap().is_none());
    }
    let both = locks.multi(names.iter().map(String::as_str));
    let busy = both.try_acquire().await.unwrap();
    assert!(busy.is_none());
    theirs.does("unlock", &[]).await;
    let both = locks.multi(names.iter().map(String::as_str));
    let guard = both.acquire().await.unwrap();
    theirs.cannot("try", &[]).await;
    single.cannot("try", &[]).await;
    single.waits("lock", &[LONG_LEASE]).await;
    guard.release().await.unwrap();
    single.served().await;
    // One of the two is held, so a request for both keeps neither.
    theirs.cannot("try", &[]).await;
    eventually("the other one is free", PATIENT, async || {
        let guard = locks.lock(&*names[0]).try_acquire().await.unwrap();
        guard.ok_or("held")
    })
    .await
    .release()
    .await
    .unwrap();
    single.does("unlock", &[]).await;
    close(locks).await;
    names.join(" and ")
}

/// In Redisson `n` and `{n}` are two locks that share everything else. Here the second one is
/// refused.
pub(crate) async fn names_in_braces(at: At) -> String {
    let locks = at.locks().await;
    let name = unique("braces");
    let mut plain = Theirs::named(&at, "fenced", &name);
    let mut braces = Theirs::named(&at, "fenced", &format!("{{{name}}}"));
    assert_eq!(plain.does("lock", &[LONG_LEASE]).await, "1");
    assert_eq!(braces.does("lock", &[LONG_LEASE]).await, "2", "both hold");
    let refused = locks.lock(format!("{{{name}}}")).try_acquire().await;
    assert!(matches!(refused, Err(LockError::Name(_))), "{refused:?}");
    plain.does("unlock", &[]).await;
    braces.does("unlock", &[]).await;
    close(locks).await;
    "two holders, one counter".to_owned()
}

/// Redisson's lock and fair lock look the same, so use of a name as both goes unnoticed; it is one
/// lock all the same.
pub(crate) async fn lock_and_fair_lock_mixed(at: At) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, "fair");
    let name = theirs.name.clone();
    theirs.does("lock", &[LONG_LEASE]).await;
    assert!(locks.lock(&*name).try_acquire().await.unwrap().is_none());
    theirs.does("unlock", &[]).await;
    let guard = locks.lock(&*name).acquire().await.unwrap();
    theirs.cannot("try", &[]).await;
    guard.release().await.unwrap();
    let mut raw = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    assert_eq!(raw.say(&["EXISTS", &name]).await, Value::Int(0));
    close(locks).await;
    "one holder".to_owned()
}
