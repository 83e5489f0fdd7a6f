//! Manual failovers, which lose no data: two owners must never hold a lock at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use locktopus::Locktopus;
use locktopus_servers::topology::{Deployment, Role};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::common::{LONG, eventually, servers, unique_of, url_for};
use crate::replica::{SHARDS_WITH_REPLICAS, replica_of};

const PROCESSES: usize = 3;
const TASKS: usize = 2;
/// Hand-offs of each lock before its failover and after it.
const BETWEEN: u64 = 150;

#[derive(Debug, Default)]
struct Seen {
    inside: AtomicUsize,
    grants: AtomicU64,
    twice: AtomicU64,
    over: AtomicBool,
}

/// One failover for each primary, with pauses: orders in quick succession confuse servers.
pub(crate) async fn of_a_cluster(client: &'static str) -> String {
    let place = Arc::new(servers(SHARDS_WITH_REPLICAS).await);
    let mut said = Vec::new();
    for shard in 0..3 {
        said.push(of_a_shard(&place, client, shard).await);
    }
    said.join(", ")
}

async fn of_a_shard(place: &Deployment, client: &str, shard: usize) -> String {
    let (name, seen) = (unique_of(3, shard, "in-order"), Arc::new(Seen::default()));
    let mut workers = JoinSet::new();
    for _ in 0..PROCESSES {
        let url = url_for(place, client);
        let locks = locktopus::connect_with(&url, |builder| builder.tolerate_outage(LONG));
        let locks = locks.await.unwrap();
        for _ in 0..TASKS {
            let (name, seen) = (name.clone(), Arc::clone(&seen));
            workers.spawn(enter_again_and_again(locks.clone(), name, seen));
        }
    }
    progress(&seen).await;
    change_places(place, &name).await;
    progress(&seen).await;
    seen.over.store(true, Ordering::SeqCst);
    timeout(LONG, workers.join_all()).await.expect("all leave");
    let counts = [&seen.grants, &seen.twice].map(|count| count.load(Ordering::SeqCst));
    let [grants, twice] = counts;
    assert_eq!(
        twice, 0,
        "entered {twice} times of {grants} while somebody was inside"
    );
    format!("{grants} grants")
}

async fn enter_again_and_again(locks: Locktopus, name: String, seen: Arc<Seen>) {
    while !seen.over.load(Ordering::SeqCst) {
        let Ok(guard) = locks.lock(&name).acquire().await else {
            continue;
        };
        let others = seen.inside.fetch_add(1, Ordering::SeqCst);
        if others > 0 && guard.ensure_valid().is_ok() {
            seen.twice.fetch_add(1, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        seen.inside.fetch_sub(1, Ordering::SeqCst);
        seen.grants.fetch_add(1, Ordering::SeqCst);
        // The backend repeats a failed release in the background.
        let _ = guard.release().await;
    }
}

/// Waits for [`BETWEEN`] more hand-offs.
async fn progress(seen: &Seen) {
    let from = seen.grants.load(Ordering::SeqCst);
    eventually("hand-offs", LONG, async || {
        match seen.grants.load(Ordering::SeqCst) - from {
            many if many >= BETWEEN => Ok(()),
            few => Err(few),
        }
    })
    .await;
}

/// The replica of the lock's primary takes over, once it has all data.
async fn change_places(place: &Deployment, name: &str) {
    let primary = place.primary_for(name).await.unwrap();
    let replica = replica_of(place, primary).await;
    let asked = replica.command(&["CLUSTER", "FAILOVER"]).await.unwrap();
    assert_eq!(asked.text(), "OK");
    place.wait_role(replica, Role::Primary, LONG).await.unwrap();
    place
        .wait_role(primary, Role::Replica { linked: true }, LONG)
        .await
        .unwrap();
}
