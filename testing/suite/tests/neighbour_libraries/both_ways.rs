//! The rules that hold with every library, in both roles.

use std::time::Duration;

use locktopus::{LockError, LockGuard, LockRequest, WaitStrategy};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::At;
use crate::common::raw::Raw;
use crate::common::{PATIENT, close};

/// Longer than any test, so that the end of a lease cannot be what frees the lock.
pub(crate) const LONG: u64 = 600_000;

/// A waiter of ours. It gets no wake-up, so it polls.
pub(crate) fn waits(request: LockRequest) -> JoinHandle<LockGuard> {
    let asks = WaitStrategy::Poll {
        min: Duration::from_millis(5),
        max: Duration::from_millis(20),
    };
    let request = request.strategy(asks);
    let request = request.fixed_lease(Duration::from_millis(LONG));
    tokio::spawn(async move { request.acquire().await.unwrap() })
}

async fn served(waiter: JoinHandle<LockGuard>) -> LockGuard {
    let served = timeout(PATIENT, waiter).await;
    served.expect("ours is served").unwrap()
}

/// Their hold blocks us until they release it. Then the lock is ours, and they cannot affect it.
pub(crate) async fn they_hold(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let request = || at.request(&locks, &name);
    let value = theirs.does(&format!("acquire {name} {LONG}")).await;
    assert!((at.form)(&value), "{value}");
    assert!(request().try_acquire().await.unwrap().is_none());
    let state = request().inspect().await.unwrap();
    assert_eq!(at.shown(state.holder().unwrap().owner.expose()), value);
    let brief = request().wait_at_most(Duration::from_millis(30));
    let brief = brief.acquire().await;
    assert!(
        matches!(brief, Err(LockError::WaitTimeout { .. })),
        "{brief:?}"
    );
    theirs.does(&format!("extend {LONG}")).await;
    let waiter = waits(request());
    theirs.does("release").await;
    let guard = served(waiter).await;
    theirs.cannot("release").await;
    theirs.cannot(&format!("extend {LONG}")).await;
    theirs.cannot(&format!("try {name} {LONG}")).await;
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
    theirs.does(&format!("try {name} {LONG}")).await;
    theirs.does("release").await;
    close(locks).await;
    format!("{value}, then ours")
}

/// Our hold looks like theirs, and blocks them until we release it.
pub(crate) async fn we_hold(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let guard = at.request(&locks, &name).acquire().await.unwrap();
    let key = at.key(&name);
    let mut raw = Raw::to(at.place.primary_for(&key).await.unwrap()).await;
    let value = at.shown(raw.say(&["GET", &key]).await.bytes());
    assert!((at.form)(&value), "{value}");
    theirs.cannot(&format!("try {name} {LONG}")).await;
    // If the test is killed, no waiting process stays behind.
    let mut left = at.theirs().await;
    left.tell(&format!("acquire {name} {LONG}")).await;
    left.ends_with_its_input().await;
    theirs.tell(&format!("acquire {name} {LONG}")).await;
    guard.extend(Duration::from_secs(60)).await.unwrap();
    guard.release().await.unwrap();
    theirs.answer().await.unwrap();
    assert!(
        at.request(&locks, &name)
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    theirs.does("release").await;
    let free = at.request(&locks, &name).try_acquire().await.unwrap();
    free.expect("free").release().await.unwrap();
    assert_eq!(raw.say(&["EXISTS", &key]).await.int(), 0);
    close(locks).await;
    format!("{value}, then theirs")
}

/// When a lease ends the other side gets in, and the former holder's late release is refused.
pub(crate) async fn leases_end(at: At) -> String {
    let (locks, mut theirs, name) = (at.locks().await, at.theirs().await, at.name());
    let lease = at.short_lease();
    let short = lease.as_millis();
    theirs.does(&format!("acquire {name} {short}")).await;
    let guard = served(waits(at.request(&locks, &name))).await;
    theirs.cannot(&format!("extend {short}")).await;
    theirs.cannot("release").await;
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();

    let request = at.request(&locks, &name).fixed_lease(lease);
    let guard = request.acquire().await.unwrap();
    let value = theirs.does(&format!("acquire {name} {LONG}")).await;
    let late = guard.release().await;
    assert!(matches!(late, Err(LockError::Lost { .. })), "{late:?}");
    theirs.does(&format!("extend {LONG}")).await;
    theirs.does("release").await;
    close(locks).await;
    format!("{value} after ours")
}
