//! A Java machine that is killed while it holds a lock.

use std::time::Duration;

use locktopus_testbed::peers::redisson::{Jar, JavaThread, Redisson, Reply};
use tokio::time::{Instant, timeout};

use crate::common::{ONLY_MESSAGES, SOON, close, eventually, locks, unique, url};
use crate::{At, ask, listeners};

/// Java's watchdog lease.
const LEASE: Duration = Duration::from_secs(3);
/// What clocks and rounding may take away from a lease.
const SLACK: Duration = Duration::from_millis(50);

/// A lease that Java's watchdog renews stays closed to us; after kill -9 it runs out, and we get the lock
/// then and not before.
pub(crate) async fn holder(at: At, jar: Jar) -> String {
    let name = unique("java-crashes");
    let locks = locks(&at.place, at.client).await;
    let watchdog = format!("renewed_lease={}s", LEASE.as_secs());
    let url = url(&at.place.url(), &watchdog);
    let java = Redisson::start(&jar, &url).await.unwrap();
    let mut thread = java.thread();
    assert_eq!(
        ask(&mut thread, &["lock", "lock", &name]).await,
        Reply::Done
    );

    let mut least = LEASE;
    let renewed = eventually("a renewal by Java", LEASE + SOON, async || {
        let left = remaining(&mut thread, &name).await;
        if left > least {
            return Ok(left);
        }
        least = left;
        Err(left)
    })
    .await;
    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());

    let request = locks.lock(&name).strategy(ONLY_MESSAGES);
    let waiter = tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) });
    listeners(&at.place, &name, 1).await;
    let left = remaining(&mut thread, &name).await;
    let killed = Instant::now();
    java.kill().await.unwrap();
    let (guard, woken) = timeout(LEASE + SOON, waiter).await.unwrap().unwrap();
    let took = woken - killed;
    assert!(took + SLACK > left, "{took:?}, and {left:?} were left");
    guard.release().await.unwrap();
    close(locks).await;
    format!("renewed to {renewed:.1?}; {left:.2?} were left, got it after {took:.2?}")
}

async fn remaining(thread: &mut JavaThread, name: &str) -> Duration {
    let left = ask(thread, &["lock", "remaining", name]).await.number();
    let left = left.and_then(|left| u64::try_from(left).ok());
    Duration::from_millis(left.expect("Java holds it"))
}
