//! Redlock on three servers: a library with locks on several servers, and our quorum with a mutex
//! in its profile.

use std::time::Duration;

use locktopus::{LockGuard, Locktopus, MutexProfile, WaitStrategy, quorum_of};
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::time::timeout;

use crate::both_ways::LONG;
use crate::common::{CLIENTS, PATIENT, close, eventually, servers, unique, url};
use crate::install::Program;
use crate::worker::Worker;

/// Short, so that servers that were just started vote soon.
const LEASE: Duration = Duration::from_secs(2);

fn addresses(place: &Deployment) -> Vec<String> {
    let nodes = place.nodes().iter();
    nodes
        .map(|node| format!("redis://{}", node.addr()))
        .collect()
}

/// Our quorum; the clients alternate.
fn ours(addresses: &[String]) -> Locktopus {
    let each = addresses.iter().zip(CLIENTS.iter().cycle());
    let urls: Vec<_> = each
        .map(|(address, client)| url(address, &format!("client={client}")))
        .collect();
    let quorum = quorum_of(&urls, |builder| builder.max_lease(LEASE)).unwrap();
    let locks = Locktopus::builder(quorum).renewed_lease(LEASE);
    locks.max_lease(LEASE).build().unwrap()
}

/// While one side holds a majority, the other side cannot acquire the lock.
pub(crate) async fn on_three(program: Option<Program>, profile: fn() -> MutexProfile) {
    let Some(program) = program else { return };
    let place = servers(TopologyKind::Quorum { nodes: 3 }).await;
    let addresses = addresses(&place);
    let mut theirs = Worker::start(&program, &addresses.join(" ")).await;
    let (locks, name) = (ours(&addresses), unique(program.library));
    let asks = WaitStrategy::Poll {
        min: Duration::from_millis(5),
        max: Duration::from_millis(20),
    };
    let request = || locks.mutex_as(&name, profile()).strategy(asks);
    let guard: LockGuard = eventually("the servers vote", PATIENT, async || {
        match request().try_acquire().await {
            Ok(Some(guard)) => Ok(guard),
            other => Err(format!("{other:?}")),
        }
    })
    .await;

    theirs.cannot(&format!("try {name} {LONG}")).await;
    theirs.tell(&format!("acquire {name} {LONG}")).await;
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
    theirs.answer().await.unwrap();

    let busy = request().try_acquire().await.unwrap();
    assert!(busy.is_none(), "{busy:?}");
    theirs.does(&format!("extend {LONG}")).await;
    let waiting = request();
    let waiter = tokio::spawn(async move { waiting.acquire().await.unwrap() });
    theirs.does("release").await;
    let served = timeout(PATIENT, waiter).await;
    let guard = served.expect("ours is served").unwrap();
    theirs.cannot("release").await;
    theirs.cannot(&format!("try {name} {LONG}")).await;
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
    close(locks).await;
}
