//! Connections with subscriptions are killed.

use std::time::Duration;

use locktopus::{Locktopus, WaitStrategy};
use locktopus_servers::topology::Deployment;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::common::{
    HANDED, HANDED_LEASE, ONLY_MESSAGES, SOON, close_both, eventually, locks, unique,
};
use crate::wakeups::{At, channel, subscriptions};

const WAITERS: usize = 60;
const LEASE: Duration = Duration::from_secs(80);

pub(crate) async fn all((place, client): At) -> String {
    let (holders, waiting) = (locks(&place, client).await, locks(&place, client).await);
    let mut observed = Vec::new();
    // Long enough for clients that reconnect but forget their subscriptions.
    let second = Duration::from_secs(1);
    for (what, strategy, after_kill) in [
        ("released at once", ONLY_MESSAGES, Duration::ZERO),
        ("released after a second", ONLY_MESSAGES, second),
        // The hand-off skips waiters that do not listen at that moment; they keep their places and
        // try again.
        ("handed over at once", HANDED, Duration::ZERO),
        ("handed over after a second", HANDED, second),
    ] {
        let slowest = round(&place, (&holders, &waiting), strategy, after_kill).await;
        observed.push(format!(
            "{what}: slowest of {WAITERS} served after {slowest:.2?}"
        ));
    }
    close_both(holders, waiting).await;
    observed.join(", ")
}

async fn round(
    place: &Deployment,
    (holders, waiting): (&Locktopus, &Locktopus),
    strategy: WaitStrategy,
    after_kill: Duration,
) -> Duration {
    let names: Vec<_> = (0..WAITERS).map(|_| unique("killed")).collect();
    let channels: Vec<_> = names.iter().map(|name| channel(name)).collect();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(
            holders
                .lock(name)
                .fixed_lease(LEASE)
                .acquire()
                .await
                .unwrap(),
        );
    }
    let waiters: Vec<_> = names
        .iter()
        .map(|name| wait(waiting, name, strategy))
        .collect();
    eventually(
        "every waiter subscribed",
        SOON,
        async || match subscriptions(place, &channels).await {
            60 => Ok(()),
            fewer => Err(fewer),
        },
    )
    .await;
    let mut killed = 0;
    for node in place.nodes() {
        let reply = node.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        killed += reply.unwrap().text().parse::<u32>().unwrap();
    }
    assert!(killed > 0);
    // The test is about the state after this time.
    tokio::time::sleep(after_kill).await;
    let released = Instant::now();
    for guard in guards {
        guard.release().await.unwrap();
    }
    let mut slowest = Duration::ZERO;
    for waiter in waiters {
        slowest = slowest.max(waiter.await.unwrap().saturating_duration_since(released));
    }
    assert!(slowest < SOON, "{slowest:?}");
    slowest
}

fn wait(locks: &Locktopus, name: &str, strategy: WaitStrategy) -> JoinHandle<Instant> {
    let request = locks
        .lock(name)
        .strategy(strategy)
        .fixed_lease(HANDED_LEASE);
    let request = request.wait_at_most(LEASE);
    tokio::spawn(async move {
        let guard = request.acquire().await.unwrap();
        let served = Instant::now();
        guard.release().await.unwrap();
        served
    })
}
