//! Others get a kept lock long before its time is over.

use std::time::Duration;

use locktopus::{Locktopus, WaitStrategy};
use tokio::time::timeout;

use crate::common::raw::Raw;
use crate::common::{LONG, ONLY_MESSAGES, close, close_both, eventually, unique};
use crate::lease_cache::{At, KEEP, LEASE, locks, requests};

/// Acquires and releases the lock, so that it is kept.
async fn keep(locks: &Locktopus, name: &str) {
    for request in requests(locks, name) {
        let guard = request.lease_cache(KEEP).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    assert!(locks.held() >= 2, "nothing is kept");
}

pub(crate) async fn by_a_waiter(at: At) -> String {
    let (here, there) = (locks(&at).await, locks(&at).await);
    let name = unique("wanted");
    let queued = WaitStrategy::HandOff {
        heartbeat: LEASE,
        confirm: false,
    };
    for strategy in [queued, ONLY_MESSAGES] {
        for back in [false, true] {
            let (holder, waiter) = if back {
                (&there, &here)
            } else {
                (&here, &there)
            };
            keep(holder, &name).await;
            for request in requests(waiter, &name) {
                let waiting = request.strategy(strategy).acquire();
                let guard = timeout(LONG, waiting).await.expect("asked back").unwrap();
                guard.release().await.unwrap();
            }
        }
    }
    close_both(here, there).await;
    format!("eight waiters got what was kept for {KEEP:?}")
}

pub(crate) async fn by_one_attempt(at: At) -> String {
    let (here, there) = (locks(&at).await, locks(&at).await);
    let name = unique("tried");
    keep(&here, &name).await;
    for index in 0..2 {
        eventually("a second attempt", LONG, async || {
            let request = requests(&there, &name).into_iter().nth(index).unwrap();
            let guard = request.try_acquire().await.unwrap().ok_or("held")?;
            guard.release().await.unwrap();
            Ok::<_, &str>(())
        })
        .await;
    }
    close_both(here, there).await;
    "the attempt that failed made room for the next".to_owned()
}

pub(crate) async fn by_a_group(at: At) -> String {
    let (here, there) = (locks(&at).await, locks(&at).await);
    let name = unique("grouped");
    keep(&here, &name).await;
    eventually("the second attempt of a group", LONG, async || {
        let several = there.multi([name.clone(), format!("{name}-other")]);
        let guard = several.try_acquire().await.unwrap().ok_or("held")?;
        guard.release().await.unwrap();
        Ok::<_, &str>(())
    })
    .await;
    close_both(here, there).await;
    "a group got what was kept".to_owned()
}

pub(crate) async fn by_an_operator(at: At) -> String {
    let (here, there) = (locks(&at).await, locks(&at).await);
    let name = unique("evicted");
    keep(&here, &name).await;
    let kept = here.held();
    let evicted = there.lock(&name).force_release("a test").await.unwrap();
    assert_eq!(evicted.evicted.len(), 1);
    eventually("what was evicted is given up", LONG, async || {
        (here.held() < kept)
            .then_some(())
            .ok_or_else(|| here.held())
    })
    .await;
    let guard = here.lock(&name).acquire().await.unwrap();
    assert!(
        guard.token() > evicted.fence,
        "handed out after its eviction"
    );
    guard.release().await.unwrap();
    close_both(here, there).await;
    "an evicted lease is not handed out".to_owned()
}

pub(crate) async fn by_nobody(at: At) -> String {
    let (here, there) = (locks(&at).await, locks(&at).await);
    let name = unique("left");
    keep(&here, &name).await;
    close(here).await;
    for request in requests(&there, &name) {
        let guard = request.try_acquire().await.unwrap().expect("given back");
        guard.release().await.unwrap();
    }
    let short = Duration::from_millis(20);
    let request = there.lock(&name).lease_cache(short);
    request.acquire().await.unwrap().release().await.unwrap();
    // Once the lock is being given back, no holder is shown.
    eventually("its time is over", LONG, async || {
        let state = there.lock(&name).inspect().await.unwrap();
        let over = there.held() == 0 && state.holder().is_none();
        over.then_some(()).ok_or_else(|| (there.held(), state))
    })
    .await;
    close(there).await;
    "given back by a shutdown, and when its time was over".to_owned()
}

/// A message may have been lost, so the client gives the kept lease back.
pub(crate) async fn perhaps(at: At) -> String {
    let here = locks(&at).await;
    let name = unique("perhaps");
    keep(&here, &name).await;
    let mut raw = Raw::to(at.0.primary_for(&name).await.unwrap()).await;
    let killed = raw.say(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    assert!(killed.int() > 0, "somebody listened");
    eventually("what is kept goes back", LONG, async || {
        (here.held() == 0).then_some(()).ok_or_else(|| here.held())
    })
    .await;
    close(here).await;
    "gave back what nobody could have asked for".to_owned()
}
