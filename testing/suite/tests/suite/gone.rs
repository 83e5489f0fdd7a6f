//! Servers that are away for a while: how often a client with a crowd of waiters reconnects, which
//! errors its callers get, and that all waiters are served once the servers are back.

use crate::common;
#[path = "gone/door.rs"]
pub(crate) mod door;

use std::sync::Arc;
use std::time::Duration;

use common::{
    At, CLIENTS, Cases, LONG, ONE_SENTINEL, SHARDS, close, connect, each_client_on, eventually,
    locks, servers, unique, url, url_for,
};
use door::Door;
use futures_util::future::join_all;
use locktopus::{LockGuard, Locktopus};
use locktopus_protocol::{BackendOptions, ClientError, RedisBackend, RedisClient, Route};
use locktopus_servers::topology::{Deployment, Node, TopologyKind};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Waiters, each for its own lock.
const CROWD: usize = 300;

/// By then pauses are longer than a second, and jitter shortens them by up to a half.
const LONG_AWAY: Duration = Duration::from_secs(4);

const COUNTED: Duration = Duration::from_secs(2);

/// A client has a connection for commands and one for subscriptions, and on a cluster reads the
/// slot map. Each may be tried three times during the count.
const KNOCKS: u64 = 9;

/// A client with a crowd that waits for locks of another holder.
struct Crowd {
    client: Arc<dyn RedisClient>,
    locks: Locktopus,
    waiters: Vec<JoinHandle<LockGuard>>,
    holder: Locktopus,
    held: Vec<LockGuard>,
}

impl Crowd {
    async fn gather(holder: Locktopus, url: &str) -> Self {
        let client = locktopus::connect_client(url).await.unwrap();
        let backend = RedisBackend::new(Arc::clone(&client), BackendOptions::default());
        let locks = Locktopus::builder(backend.await.unwrap())
            .tolerate_outage(LONG * 3)
            .build()
            .unwrap();
        let names: Vec<_> = (0..CROWD).map(|_| unique("gone")).collect();
        let lease = LONG * 3;
        let held = names
            .iter()
            .map(|name| holder.lock(name).fixed_lease(lease).acquire());
        let held = join_all(held).await.into_iter().map(Result::unwrap);
        let held = held.collect();
        let wait = |name: &String| {
            let request = locks.lock(name).wait_at_most(LONG * 3);
            tokio::spawn(async move { request.acquire().await.unwrap() })
        };
        let waiters = names.iter().map(wait).collect();
        for name in &names {
            eventually("a place in the queue", LONG, async || {
                match holder.lock(name).inspect().await {
                    Ok(state) if !state.waiters.is_empty() => Ok(()),
                    other => Err(other.map(drop)),
                }
            })
            .await;
        }
        Self {
            client,
            locks,
            waiters,
            holder,
            held,
        }
    }

    /// How often the client tries to connect when the servers have been away for long, and its
    /// error then. Returns the median of three counts: on a busy machine one count may catch many
    /// or none.
    async fn knocks(&self) -> (u64, String) {
        sleep(LONG_AWAY).await;
        let mut counts = Vec::new();
        for _ in 0..3 {
            counts.push(self.knocks_for_a_while().await);
        }
        counts.sort();
        counts.swap_remove(1)
    }

    async fn knocks_for_a_while(&self) -> (u64, String) {
        let before = self.client.generation();
        let begun = Instant::now();
        let said = self.client.command(Route::Slot(0), &[b"PING"]);
        let said = timeout(COUNTED, said)
            .await
            .expect("a caller hears at once")
            .unwrap_err();
        assert!(
            matches!(said, ClientError::NotSent(_)),
            "nothing was sent: {said:?}"
        );
        sleep(COUNTED.saturating_sub(begun.elapsed())).await;
        (self.client.generation() - before, said.to_string())
    }

    /// All waiters get their lock once the holder releases.
    async fn served(self) -> Duration {
        let begun = Instant::now();
        for guard in self.held {
            guard.release().await.unwrap();
        }
        for waiter in self.waiters {
            let guard = timeout(LONG, waiter).await.expect("served").unwrap();
            guard.release().await.unwrap();
        }
        close(self.holder).await;
        close(self.locks).await;
        begun.elapsed()
    }

    /// The locks are gone with their servers.
    async fn goes_home(self) {
        for waiter in &self.waiters {
            waiter.abort();
        }
        drop(self.held);
        let _ = self.holder.shutdown(Duration::ZERO).await;
        let _ = self.locks.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_knocks_seldom_where_nobody_is() {
    for kind in [TopologyKind::Standalone, ONE_SENTINEL, SHARDS] {
        let mut cases = Cases::new();
        for client in CLIENTS {
            let place = servers(kind).await;
            cases.add(format!("{kind} {client} refused"), refused(place, client));
        }
        cases.all_pass().await;
    }
}

/// Acquires hundreds of locks at once, perhaps on a busy machine.
async fn patient(place: &Deployment, client: &str) -> Locktopus {
    connect(&format!("{}&timeout=5s", url_for(place, client))).await
}

async fn refused(place: Deployment, client: &'static str) -> String {
    let holder = patient(&place, client).await;
    let crowd = Crowd::gather(holder, &url_for(&place, client)).await;
    let all = || place.nodes().iter().chain(place.sentinels());
    for node in all() {
        node.crash().await.unwrap();
    }
    let most = KNOCKS * (place.nodes().len() + place.sentinels().len()) as u64;
    let (begun, said) = crowd.knocks().await;
    // A client counts only its connections to the primary. Those it makes to find the primary are
    // counted where they arrive.
    let addresses: Vec<_> = all().map(Node::addr).collect();
    let doors = join_all(addresses.into_iter().map(Door::instead_of)).await;
    sleep(COUNTED).await;
    let dialled: u64 = doors.iter().map(Door::knocks).sum();
    assert!(begun <= most, "{begun} attempts to connect in {COUNTED:?}");
    // The holder has another client.
    assert!(dialled <= most * 2, "{dialled} connections in {COUNTED:?}");
    eventually("somebody looks whether they are back", LONG, async || {
        let each: Vec<_> = doors.iter().map(Door::knocks).collect();
        each.iter()
            .any(|knocks| *knocks > 0)
            .then_some(())
            .ok_or(each)
    })
    .await;
    crowd.goes_home().await;
    format!("{begun} attempts in {COUNTED:?}, then {dialled} connections; callers hear: {said}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_knocks_seldom_where_it_is_thrown_out() {
    let place = Arc::new(servers(TopologyKind::Standalone).await);
    each_client_on(&place, "thrown out", thrown_out).await;
}

/// As by a proxy whose server is down.
async fn thrown_out((place, client): At) -> String {
    let door = Door::to(place.nodes()[0].addr()).await;
    let holder = patient(&place, client).await;
    let through = url(
        &format!("redis://{}", door.addr()),
        &format!("client={client}&connect_timeout=5s"),
    );
    let crowd = Crowd::gather(holder, &through).await;
    door.shut();
    let before = door.knocks();
    let (begun, said) = crowd.knocks().await;
    let knocks = door.knocks();
    assert!(
        begun <= KNOCKS,
        "{begun} attempts to connect in {COUNTED:?}"
    );
    let all = knocks - before;
    assert!(all <= KNOCKS * 6, "{all} connections altogether");
    door.open();
    let served = crowd.served().await;
    format!(
        "{begun} attempts in {COUNTED:?}, {all} in {:?}, all served {served:.2?} after the release; callers hear: {said}",
        LONG_AWAY + COUNTED * 3
    )
}

/// The kernel probes idle connections.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_are_kept_alive() {
    let place = servers(TopologyKind::Standalone).await;
    for client in CLIENTS {
        let locks = locks(&place, client).await;
        let port = format!(":{:04X}", place.nodes()[0].addr().port());
        // The remote end is the server, the connection is open, and the pending timer is that of
        // keepalive.
        eventually("a timer on every connection", LONG, async || {
            let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
            let rows: Vec<Vec<_>> = table
                .lines()
                .map(|line| line.split_whitespace().collect())
                .collect();
            let ours = rows
                .iter()
                .filter(|row| row.get(2).is_some_and(|remote| remote.ends_with(&port)))
                .filter(|row| row[3] == "01");
            let timers: Vec<_> = ours.map(|row| row[5].to_owned()).collect();
            let kept = !timers.is_empty() && timers.iter().all(|timer| timer.starts_with("02:"));
            kept.then_some(()).ok_or(timers)
        })
        .await;
        close(locks).await;
    }
}
