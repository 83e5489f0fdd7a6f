//! MultiLock on real servers: clients of both libraries compete for random subsets of locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locktopus::{LockError, Locktopus, MultiLock, MutexProfile};
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::time::timeout;

use crate::common::{SHARDS, close, eventually, locks, servers, unique};

/// Far longer than all rounds take on the slowest machine.
const DEADLOCK: Duration = Duration::from_secs(600);
const CLIENTS: [&str; 3] = ["redis", "fred", "redis"];

/// Set `LOCKTOPUS_ROUNDS=100000` for the long run.
fn rounds() -> u64 {
    let wanted = std::env::var("LOCKTOPUS_ROUNDS").ok();
    wanted.map_or(600, |n| n.parse().unwrap())
}

/// Members as a client sees them: the place of each of the three locks, and its name there.
struct Client {
    backends: Vec<(&'static str, Locktopus)>,
    names: [(usize, String); 3],
}

impl Client {
    fn multi(&self, wanted: &[usize]) -> MultiLock {
        wanted.iter().fold(MultiLock::new(), |multi, n| {
            let (backend, name) = &self.names[*n];
            let (label, locks) = &self.backends[*backend];
            multi.add_on(*label, locks.lock(name))
        })
    }
}

/// The next number of a small generator, good enough for dice.
fn next(dice: &mut u64) -> u64 {
    *dice = dice
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *dice >> 33
}

async fn compete(places: &[(&'static str, &Deployment)], names: [(usize, String); 3]) {
    let busy: Arc<[AtomicBool; 3]> = Arc::default();
    let mut clients = Vec::new();
    let mut tasks = Vec::new();
    for (seed, library) in (1..).zip(CLIENTS) {
        let mut backends = Vec::new();
        for (label, place) in places {
            backends.push((*label, locks(place, library).await));
        }
        clients.extend(backends.iter().map(|(_, locks)| locks.clone()));
        let client = Client {
            backends,
            names: names.clone(),
        };
        tasks.push(tokio::spawn(take_turns(client, seed, Arc::clone(&busy))));
    }
    for task in tasks {
        let done = timeout(
            DEADLOCK * u32::try_from(1 + rounds() / 10_000).unwrap(),
            task,
        )
        .await;
        done.expect("no deadlock").unwrap();
    }
    for locks in &clients {
        eventually("nothing is held in the end", DEADLOCK, async || {
            match (locks.held(), locks.background_tasks()) {
                (0, 0) => Ok(()),
                left => Err(format!("{left:?}")),
            }
        })
        .await;
    }
    for (backend, name) in &names {
        let state = clients[*backend].lock(name).inspect().await.unwrap();
        assert!(
            state.holders.is_empty() && state.waiters.is_empty(),
            "{state:?}"
        );
    }
    for locks in clients {
        close(locks).await;
    }
}

async fn take_turns(client: Client, seed: u64, busy: Arc<[AtomicBool; 3]>) {
    let mut dice = seed;
    for _ in 0..rounds() / 3 {
        let subset = 1 + next(&mut dice) % 7;
        let mut wanted: Vec<usize> = (0..3).filter(|n| subset >> n & 1 == 1).collect();
        if next(&mut dice).is_multiple_of(2) {
            wanted.reverse();
        }
        let guard = client.multi(&wanted).acquire().await.unwrap();
        assert_eq!(guard.tokens().values().flatten().count(), wanted.len());
        for n in &wanted {
            let twice = busy[*n].swap(true, Ordering::SeqCst);
            assert!(!twice, "lock {n} is held twice");
        }
        tokio::task::yield_now().await;
        guard.ensure_valid().unwrap();
        for n in &wanted {
            busy[*n].store(false, Ordering::SeqCst);
        }
        if next(&mut dice).is_multiple_of(8) {
            drop(guard);
        } else {
            guard.release().await.unwrap();
        }
    }
}

/// Two names with one key: one script would grant both, although they are the same lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_names_of_one_key_are_refused_before_anything_is_written() {
    let place = servers(TopologyKind::Standalone).await;
    for library in ["redis", "fred"] {
        let locks = locks(&place, library).await;
        let name = unique("one-key");
        let key = format!("lock:{name}");
        let shared = || locks.mutex_as(&name, MutexProfile::python_redis_lock());
        for both in [
            MultiLock::new().add(locks.mutex(&key)).add(shared()),
            MultiLock::new().add(shared()).add(locks.lock(&key)),
        ] {
            let third = unique("one-key-third");
            let both = both.add(locks.lock(&third));
            let refused = both.try_acquire().await.map(drop).unwrap_err();
            let LockError::Option(error) = &refused else {
                panic!("{refused:?}");
            };
            for named in [&key, &name] {
                assert!(error.value.contains(&format!("\\\"{named}\\\"")), "{error}");
            }
            let asked = ["EXISTS", &key, &name, &third];
            let written = place.nodes()[0].command(&asked).await.unwrap();
            assert_eq!(written.text(), "0");
        }
        close(locks).await;
    }
    place.stop().await.unwrap();
}

/// Names without and with a common hash tag, to use both single scripts and one step per lock.
fn mixed(on: impl Fn(usize) -> usize) -> [(usize, String); 3] {
    let tag = unique("multi");
    let name = |n: usize| match n {
        0 => unique("multi-apart"),
        _ => format!("{{{tag}}}:{n}"),
    };
    [0, 1, 2].map(|n| (on(n), name(n)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_subsets_on_one_server() {
    let place = servers(TopologyKind::Standalone).await;
    compete(&[("one", &place)], mixed(|_| 0)).await;
    place.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_subsets_on_a_cluster() {
    let place = servers(SHARDS).await;
    compete(&[("cluster", &place)], mixed(|_| 0)).await;
    place.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_subsets_over_two_servers() {
    let (a, b) = tokio::join!(
        servers(TopologyKind::Standalone),
        servers(TopologyKind::Standalone)
    );
    compete(&[("a", &a), ("b", &b)], mixed(|n| n % 2)).await;
    a.stop().await.unwrap();
    b.stop().await.unwrap();
}
