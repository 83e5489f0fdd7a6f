//! The server is stopped for a while and comes back empty.

use std::time::Duration;

use locktopus::{BackendErrorKind, LockError};
use tokio::time::{Instant, sleep, timeout};

use crate::common::{LONG, SOON, close, locks, unique, url_for};
use crate::failover::At;
use crate::failover::holder::Holder;

const DOWN_FOR: Duration = Duration::from_secs(3);
const IMPATIENT: Duration = Duration::from_millis(600);
const WAITERS: usize = 10;

pub(crate) async fn while_waiting((place, client): At) -> String {
    let holding = locks(&place, client).await;
    let waiting = locks(&place, client).await;
    let url = url_for(&place, client);
    let hasty = locktopus::connect_with(&url, |builder| builder.tolerate_outage(IMPATIENT))
        .await
        .unwrap();
    let node = &place.nodes()[0];

    let lease = Duration::from_secs(2);
    let mut holders = Vec::new();
    for _ in 0..WAITERS {
        holders.push(Holder::of(&holding, unique("restart"), lease).await);
    }
    let waiters: Vec<_> = holders
        .iter()
        .map(|holder| tokio::spawn(waiting.lock(&holder.name).acquire()))
        .collect();
    let hasty_waiter = tokio::spawn(hasty.lock(&holders[0].name).acquire());
    // Both kinds of waiters know that the lock is held, and listen for the hand-off.
    crate::common::eventually("waiters", SOON, async || {
        // Excludes the connect-time probes.
        let listed = ["PUBSUB", "CHANNELS", "locktopus_inbox:{restart-*"];
        let subscribed = node.command(&listed).await.unwrap();
        (subscribed.items().len() == WAITERS + 1)
            .then_some(())
            .ok_or(subscribed)
    })
    .await;

    node.stop(SOON).await.unwrap();
    let stopped = Instant::now();
    let failed = timeout(DOWN_FOR, hasty_waiter)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    let gave_up = stopped.elapsed();
    let LockError::Backend { source, .. } = &failed else {
        panic!("{failed:?}");
    };
    assert!(
        matches!(
            source.kind(),
            BackendErrorKind::Unavailable | BackendErrorKind::Timeout
        ),
        "{failed:?}"
    );
    for holder in &holders {
        holder.loses(SOON).await;
    }
    sleep(DOWN_FOR.saturating_sub(stopped.elapsed())).await;
    node.start().await.unwrap();
    let started = Instant::now();
    for (waiter, holder) in waiters.into_iter().zip(&holders) {
        let guard = timeout(LONG, waiter).await.unwrap().unwrap().unwrap();
        assert!(
            guard.token().unwrap() > holder.token,
            "the counter was lost"
        );
        guard.release().await.unwrap();
    }
    let served = started.elapsed();
    assert!(served < SOON, "{served:?}");
    drop(holders);
    for locks in [holding, waiting, hasty] {
        close(locks).await;
    }
    format!(
        "{WAITERS} waiters survived {DOWN_FOR:?} and were served {served:.2?} after the start; with an \
         outage of {IMPATIENT:?}: {gave_up:.2?}"
    )
}
