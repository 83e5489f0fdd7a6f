//! An address that leads to a replica for a while, as a virtual IP or a DNS name does after a
//! failover. Commands go to the primary over an older connection, and subscriptions to the replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locktopus::{CohortSettings, LockGuard, LockRequest, Locktopus};
use locktopus_servers::topology::{Deployment, Node, Vip};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::common::raw::Raw;
use crate::common::{At, HANDED, HANDED_LEASE, LONG, SOON, close, close_both, eventually, unique};
use crate::replica::replica_of;

/// A heartbeat of 1 s, so that waiters find out without a message.
const LEASE: Duration = Duration::from_secs(12);
const RELEASES: usize = 10;

pub(crate) async fn connect(address: impl ToString, client: &str, options: &str) -> Locktopus {
    let apart = CohortSettings {
        turns: 1,
        ..CohortSettings::default()
    };
    let url = format!(
        "redis://{}?client={client}&checks=off&timeout=5s&connect_timeout=2s{options}",
        address.to_string()
    );
    locktopus::connect_with(&url, |builder| builder.cohort(apart).tolerate_outage(LONG))
        .await
        .unwrap()
}

pub(crate) async fn by_its_address(
    place: Arc<Deployment>,
    client: &'static str,
    options: &'static str,
) -> String {
    let primary = place.primary().await.unwrap();
    let replica = replica_of(&place, primary).await;
    let vip = Vip::start(primary.addr()).await.unwrap();
    let misled = connect(vip.addr(), client, options).await;
    let direct = connect(primary.addr(), client, options).await;
    listens_once(&misled, primary).await;

    // The connection for messages breaks, and the address leads to the replica when the client
    // connects again.
    vip.point_at(replica.addr());
    let killed = Raw::to(primary)
        .await
        .say(&["CLIENT", "KILL", "TYPE", "pubsub"])
        .await;
    assert!(killed.int() >= 1, "{killed:?}");
    let mut twice = 0;
    for _ in 0..RELEASES {
        twice += usize::from(both_believe([&misled, &direct]).await);
    }
    assert_eq!(twice, 0, "two holders after {twice} of {RELEASES} releases");
    assert_eq!(inboxes(replica).await, 0, "still listens to the replica");

    // Once the address leads to the primary, grants are pushed again.
    vip.point_at(primary.addr());
    handed(&direct, &misled, primary).await;
    close_both(misled, direct).await;
    format!("one holder after each of {RELEASES} releases")
}

/// Makes a waiter subscribe, so that there is a connection for messages.
pub(crate) async fn listens_once(locks: &Locktopus, primary: &Node) {
    let name = unique("listens");
    let guard = locks.lock(&name).acquire().await.unwrap();
    let waiter = tokio::spawn(locks.lock(&name).strategy(HANDED).acquire());
    eventually("a subscription", SOON, async || {
        match inboxes(primary).await {
            0 => Err(0),
            _ => Ok(()),
        }
    })
    .await;
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}

/// How many inboxes on a server have a listener.
pub(crate) async fn inboxes(node: &Node) -> usize {
    let pattern = ["PUBSUB", "CHANNELS", "locktopus_inbox:*"];
    Raw::to(node).await.say(&pattern).await.list().len()
}

/// Releases a lock that two clients wait for, and returns whether both then believe that they hold
/// it.
async fn both_believe(clients: [&Locktopus; 2]) -> bool {
    let name = unique("believed");
    let request = |locks: &Locktopus| locks.lock(&name).fixed_lease(LEASE);
    let guard = request(clients[1]).acquire().await.unwrap();
    let inside = Arc::new(AtomicBool::new(false));
    let mut waiters = JoinSet::new();
    for (ahead, locks) in clients.into_iter().enumerate() {
        waiters.spawn(inside_alone(request(locks), Arc::clone(&inside)));
        // In this order, the one that listens to the replica comes first.
        eventually("a place in the queue", LONG, async || {
            let state = clients[1].lock(&name).inspect().await.unwrap();
            match state.waiters.len() {
                there if there > ahead => Ok(()),
                there => Err(there),
            }
        })
        .await;
    }
    guard.release().await.unwrap();
    let alone = timeout(LONG, waiters.join_all()).await.expect("served");
    alone.contains(&false)
}

/// Acquires the lock and holds it for a while. Returns false if another holder was inside.
async fn inside_alone(request: LockRequest<LockGuard>, inside: Arc<AtomicBool>) -> bool {
    let guard = request.acquire().await.unwrap();
    let alone = !inside.swap(true, Ordering::SeqCst);
    // Longer than any message takes to reach the other one.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let believes = guard.ensure_valid().is_ok();
    inside.store(false, Ordering::SeqCst);
    // A lock that was never granted to this owner is lost.
    let _ = guard.release().await;
    alone || !believes
}

/// One client hands a lock to another, which listens to this server by then.
pub(crate) async fn handed(from: &Locktopus, to: &Locktopus, server: &Node) {
    let name = unique("handed");
    let guard = from.lock(&name).acquire().await.unwrap();
    let request = to.lock(&name).strategy(HANDED).fixed_lease(LEASE);
    let waiter = tokio::spawn(request.acquire());
    eventually("a subscription on the primary", LONG, async || {
        let pattern = format!("locktopus_inbox:{{{name}}}:*");
        let listed = Raw::to(server)
            .await
            .say(&["PUBSUB", "CHANNELS", &pattern])
            .await;
        match listed.list().len() {
            1 => Ok(()),
            there => Err(there),
        }
    })
    .await;
    guard.release().await.unwrap();
    let guard = timeout(SOON, waiter).await.expect("told").unwrap().unwrap();
    guard.release().await.unwrap();
}

/// The release tells a waiter that it counted no listeners. The waiter's client then subscribes
/// over another connection, even if the server reports the right role.
pub(crate) async fn told_so((place, client): At) -> String {
    let node = place.primary().await.unwrap();
    let locks = connect(node.addr(), client, "").await;
    let (name, mut raw) = (unique("told-so"), Raw::to(node).await);
    let guard = locks.lock(&name).acquire().await.unwrap();
    let request = locks.lock(&name).strategy(HANDED).fixed_lease(HANDED_LEASE);
    let waiter = tokio::spawn(request.acquire());
    let pattern = format!("locktopus_inbox:{{{name}}}:*");
    let channels = async || {
        let listed = Raw::to(node)
            .await
            .say(&["PUBSUB", "CHANNELS", &pattern])
            .await;
        match listed.list() {
            [channel] => Ok(channel.text()),
            other => Err(other.len()),
        }
    };
    let inbox = eventually("a subscription", SOON, channels).await;
    let owner = eventually("a place in the queue", SOON, async || {
        let state = locks.lock(&name).inspect().await.unwrap();
        let first = state.waiters.into_iter().next();
        first.map(|waiter| waiter.owner).ok_or(())
    })
    .await;
    let before = subscribers(&mut raw).await;
    assert_eq!(before.len(), 1);

    let word = [b"d ", owner.expose()].concat();
    let heard = raw.ask(&[b"PUBLISH", inbox.as_bytes(), &word]).await;
    assert_eq!(heard.int(), 1);
    eventually("another connection", SOON, async || {
        let now = subscribers(&mut raw).await;
        let moved = !now.is_empty() && now.iter().all(|id| !before.contains(id));
        moved.then_some(()).ok_or(now)
    })
    .await;
    assert_eq!(eventually("its inbox", SOON, channels).await, inbox);
    guard.release().await.unwrap();
    let guard = timeout(SOON, waiter).await.expect("handed over");
    guard.unwrap().unwrap().release().await.unwrap();
    close(locks).await;
    "listens over another connection".to_owned()
}

/// The ids of connections with subscriptions.
async fn subscribers(raw: &mut Raw) -> Vec<String> {
    let list = raw.say(&["CLIENT", "LIST", "TYPE", "pubsub"]).await.text();
    let ids = list.lines().filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}
