//! A replica is promoted without its primary's last writes, while busy locks change hands. Some of
//! the lost writes are releases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use locktopus::{LockRequest, Locktopus};
use locktopus_servers::topology::{Deployment, Node, Role, TopologyKind};
use tokio::time::{Instant, sleep};

use crate::common::{LONG, close, close_both, connect, eventually, locks_apart, unique, unique_of};
use crate::failover::At;

/// Every kind of lock is used with each of these leases.
const LEASES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(5),
    Duration::from_secs(30),
];
/// The longest outage of a promotion on a busy machine.
const OUTAGE: Duration = Duration::from_secs(8);
/// How long the locks are used after the promotion. A lost release would block for a whole lease.
const USED: Duration = Duration::from_secs(12);
const HOLD: Duration = Duration::from_millis(5);

/// Clients of each lock. They share neither a connection nor a local queue.
const CROWD: usize = 3;

const KINDS: [fn(&Locktopus, &str) -> LockRequest; 4] = [
    |locks, name| locks.lock(name),
    |locks, name| locks.mutex(name),
    |locks, name| locks.fair_lock(name),
    |locks, name| locks.semaphore(name).permits(1),
];

/// Promotes the replica at once: neither side waits for the last writes.
async fn promote(place: &Deployment, name: &str) {
    let old = place.primary_for(name).await.unwrap();
    let new = replica_of(place, old).await;
    match place.kind() {
        TopologyKind::Sentinel { .. } => {
            let order = ["SENTINEL", "FAILOVER", place.master_name()];
            place.sentinels()[0].command(&order).await.unwrap();
        }
        _ => {
            let order = ["CLUSTER", "FAILOVER", "TAKEOVER"];
            new.command(&order).await.unwrap();
        }
    }
    place.wait_role(new, Role::Primary, LONG).await.unwrap();
}

async fn replica_of<'a>(place: &'a Deployment, primary: &Node) -> &'a Node {
    for node in place.nodes() {
        if node.copies_port().await.unwrap() == Some(primary.addr().port()) {
            return node;
        }
    }
    panic!("{} has no replica", primary.name());
}

/// Acquires a lock repeatedly until `stop`, and returns the times of the grants.
async fn use_it(
    locks: Locktopus,
    request: fn(&Locktopus, &str) -> LockRequest,
    (name, lease): (String, Duration),
    stop: Arc<AtomicBool>,
) -> Vec<Instant> {
    let mut granted = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let request = request(&locks, &name).renewed_lease(lease);
        if let Ok(guard) = request.wait_at_most(LONG).acquire().await {
            granted.push(Instant::now());
            sleep(HOLD).await;
            // It may be lost: the new primary may not know it.
            let _lost = guard.release().await;
        }
    }
    granted
}

pub(crate) async fn locks_change_hands((place, client): At) -> String {
    let primaries = match place.kind() {
        TopologyKind::Cluster { primaries, .. } => usize::from(primaries),
        _ => 1,
    };
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(locks_apart(&place, client).await);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut users = Vec::new();
    for (kind, request) in KINDS.iter().enumerate() {
        for lease in LEASES {
            let name = match primaries {
                1 => unique("busy"),
                _ => unique_of(primaries, 0, "busy"),
            };
            if kind == 3 {
                crowd[0].semaphore(&name).initialise(1).await.unwrap();
            }
            let mut of_one = Vec::new();
            for locks in &crowd {
                let what = (name.clone(), lease);
                let used = use_it(locks.clone(), *request, what, Arc::clone(&stop));
                of_one.push(tokio::spawn(used));
            }
            users.push((lease, name, of_one));
        }
    }
    sleep(Duration::from_secs(2)).await;
    let promoted = Instant::now();
    promote(&place, &users[0].1).await;
    sleep(USED).await;
    stop.store(true, Ordering::SeqCst);
    let ended = Instant::now();
    let mut outages = LEASES.map(|lease| (lease, Duration::ZERO));
    for (lease, _, of_one) in users {
        let granted = join_all(of_one).await.into_iter().flat_map(Result::unwrap);
        let mut times: Vec<_> = granted.filter(|at| *at < ended).collect();
        times.extend([promoted, ended]);
        times.sort();
        let gaps = times.windows(2).filter(|pair| pair[1] > promoted);
        let longest = gaps.map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        let outage = outages.iter_mut().find(|(of, _)| *of == lease);
        let (_, outage) = outage.expect("one of them");
        *outage = longest.max(*outage);
    }
    for locks in crowd {
        close(locks).await;
    }
    let said = format!("longest outage by lease: {outages:.2?}");
    println!("      {client}: {said}");
    assert!(outages.iter().all(|(_, outage)| *outage < OUTAGE), "{said}");
    said
}

/// Owners release both halves of read-write locks, and a replica that did not receive that is
/// promoted.
pub(crate) async fn both_halves_change_hands((place, client): At) -> String {
    let locks = locks_apart(&place, client).await;
    let names = ["write-first", "read-first", "reads-on"].map(unique);
    let [write_first, read_first, reads_on] = names.each_ref().map(async |name| {
        let request = locks.rw_lock(name).write().renewed_lease(LONG * 2);
        let writing = request.acquire().await.unwrap();
        let reading = writing.read().await.unwrap();
        (writing, reading)
    });
    let (write_first, read_first) = tokio::join!(write_first, read_first);
    let (writing, reads_on) = reads_on.await;
    let old = place.primary().await.unwrap();
    let replica = replica_of(&place, old).await;
    // `mode`, the reader, the writer.
    eventually("the replica to have them", LONG, async || {
        let fields = replica.command(&["HLEN", &names[2]]).await.unwrap().text();
        (fields == "3").then_some(()).ok_or(fields)
    })
    .await;
    let user = ["CONFIG", "SET", "masteruser", "nobody", "masterauth", "x"];
    replica.command(&user).await.unwrap();
    let cut = ["CLIENT", "KILL", "TYPE", "replica"];
    old.command(&cut).await.unwrap();
    write_first.0.release().await.unwrap();
    write_first.1.release().await.unwrap();
    read_first.1.release().await.unwrap();
    read_first.0.release().await.unwrap();
    writing.release().await.unwrap();
    promote(&place, &names[2]).await;
    let promoted = Instant::now();
    // The old primary hears of it later, and grants them until then.
    let url = format!("redis://{}?client={client}&checks=off", replica.addr());
    let other = connect(&url).await;
    for name in &names[..2] {
        let request = other.rw_lock(name).write().wait_at_most(OUTAGE);
        request.acquire().await.unwrap().release().await.unwrap();
    }
    let shared = other.rw_lock(&names[2]);
    let reading = shared.read().wait_at_most(OUTAGE).acquire().await.unwrap();
    let granted = promoted.elapsed();
    reads_on.extend(LONG * 2).await.unwrap();
    reading.release().await.unwrap();
    assert!(shared.write().try_acquire().await.unwrap().is_none());
    reads_on.release().await.unwrap();
    close_both(locks, other).await;
    format!("granted within {granted:.2?}")
}
