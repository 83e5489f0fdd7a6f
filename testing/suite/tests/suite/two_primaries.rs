//! Two primaries at once: a sentinel promotes a replica while the old primary is well, and the
//! sentinels tell the old one only about ten seconds later. Connected clients leave it as soon as
//! the sentinels name another one.

use crate::common;

use std::time::Duration;

use common::{CLIENTS, LONG, SOON, close, connect, eventually, locks, servers, unique, url_for};
use locktopus::Locktopus;
use locktopus_servers::topology::{Deployment, Node, Role, TopologyKind};
use tokio::time::Instant;

const WATCHED: TopologyKind = TopologyKind::Sentinel {
    replicas: 1,
    sentinels: 3,
};

/// A lease that outlives the test.
const LEASE: Duration = Duration::from_secs(60);

/// Makes the first sentinel promote the replica, without any agreement. Returns the old primary and
/// the new one once the new one accepts writes.
async fn promote(place: &Deployment) -> (&Node, &Node) {
    let old = place.primary().await.unwrap();
    let new = place
        .nodes()
        .iter()
        .find(|node| node.addr() != old.addr())
        .unwrap();
    let order = ["SENTINEL", "FAILOVER", place.master_name()];
    place.sentinels()[0].command(&order).await.unwrap();
    place.wait_role(new, Role::Primary, SOON).await.unwrap();
    (old, new)
}

/// Fails as long as `locks` does not see that `name` is held.
async fn is_held(locks: &Locktopus, name: &str) -> Result<(), &'static str> {
    match locks.lock(name).fixed_lease(LEASE).try_acquire().await {
        Ok(Some(guard)) => {
            // Lost, if it has moved on to the new primary meanwhile.
            let _gone = guard.release().await;
            Err("two holders")
        }
        Ok(None) => Ok(()),
        Err(_) => Err("no answer"),
    }
}

/// Users of the sentinels with fewer rights than recommended: they may not subscribe, or not even
/// ask how new an address is.
const USERS: [(&str, &str); 2] = [
    (
        "asker",
        "+sentinel|get-master-addr-by-name +sentinel|master",
    ),
    ("deaf", "+sentinel|get-master-addr-by-name"),
];

async fn connected_clients_follow(client: &str, place: &Deployment) {
    let before = [
        locks(place, client).await,
        connect(&as_user_url(place, client, USERS[0].0)).await,
    ];
    let stays = connect(&as_user_url(place, client, USERS[1].0)).await;
    for locks in before.iter().chain([&stays]) {
        let warm = locks.lock(unique("warm")).acquire().await.unwrap();
        warm.release().await.unwrap();
    }
    let (old, new) = promote(place).await;
    let promoted = Instant::now();
    let (after, name, guard) = eventually("a lock on the new primary", SOON, async || {
        let after = locks(place, client).await;
        let name = unique("split");
        let request = after.lock(&name).fixed_lease(LEASE);
        let guard = request.acquire().await.unwrap();
        let key = new.command(&["EXISTS", &name]).await.unwrap().text();
        // A request before the sentinels know of the promotion reaches the old primary, as the
        // others did. If the client then moves, its lock stays there.
        if key == "1" {
            Ok((after, name, guard))
        } else {
            Err(key)
        }
    })
    .await;
    for (locks, who) in before.iter().zip(["hears", "asks"]) {
        eventually("the old clients to follow", SOON, async || {
            is_held(locks, &name).await
        })
        .await;
        let took = promoted.elapsed();
        println!("      {client} that {who} of it followed within {took:?}");
    }
    // Without the right to ask how new an address is, there are two holders until the old primary
    // is told. That has not happened yet, so it cannot be what drove the clients away.
    let twice = unique("twice");
    let request = |locks: &Locktopus| locks.lock(&twice).fixed_lease(LEASE).try_acquire();
    let one = request(&stays).await.unwrap().expect("the old one is free");
    let two = request(&after).await.unwrap().expect("the new one, too");
    one.ensure_valid().unwrap();
    two.release().await.unwrap();
    one.release().await.unwrap();
    assert_eq!(old.role().await.unwrap(), Role::Primary);
    eventually("one primary", LONG, async || match old.role().await {
        Ok(Role::Primary) => Err(Role::Primary),
        _ => Ok(()),
    })
    .await;
    println!(
        "      there were two primaries for {:?}",
        promoted.elapsed()
    );
    eventually("the last client to follow", SOON, async || {
        is_held(&stays, &name).await
    })
    .await;
    guard.release().await.unwrap();
    for locks in before.into_iter().chain([stays, after]) {
        close(locks).await;
    }
}

fn as_user_url(place: &Deployment, client: &str, user: &str) -> String {
    let url = url_for(place, client);
    let (url, _) = url.split_once("&sentinel_user").unwrap();
    format!("{url}&sentinel_user={user}&sentinel_password=secret")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connected_clients_leave_a_primary_that_was_replaced() {
    let places = [servers(WATCHED).await, servers(WATCHED).await];
    for sentinel in places.iter().flat_map(Deployment::sentinels) {
        for (user, rights) in USERS {
            let words = format!("ACL SETUSER {user} on >secret resetchannels -@all {rights}");
            let words: Vec<_> = words.split(' ').collect();
            sentinel.command(&words).await.unwrap();
        }
    }
    let [one, other] = CLIENTS;
    tokio::join!(
        connected_clients_follow(one, &places[0]),
        connected_clients_follow(other, &places[1]),
    );
}
