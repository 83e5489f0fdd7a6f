//! One handle on several tokio runtimes. Its first runtime has ended, is stopped, or still runs.
//! The second one renews leases, reports losses and releases dropped guards, and `shutdown` leaves
//! nothing. Outside tokio every call fails with an error.

use crate::common;
#[path = "runtimes/ending.rs"]
mod ending;
#[path = "runtimes/foreign.rs"]
mod foreign;

use std::sync::mpsc;
use std::time::Duration;

use common::{CLIENTS, SHARDS, SOON, connect, eventually, servers, unique, url, url_for};
use locktopus::{LeaderElection, LockError, LockGuard, Locktopus, LostCause, quorum_of};
use locktopus_servers::topology::TopologyKind;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};

/// Renewed three times within its length. No wait below may be over because it ends.
const LEASE: Duration = Duration::from_secs(6);

/// The fate of the runtime that made the handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It had its own threads, and has ended.
    ThreadsEnded,
    /// It had no threads, and has ended.
    Ended,
    /// It had no threads, and no thread is in its `block_on` any more.
    Undriven,
    /// It has its own threads and still runs.
    GoesOn,
}

const FATES: [Fate; 4] = [
    Fate::ThreadsEnded,
    Fate::Ended,
    Fate::Undriven,
    Fate::GoesOn,
];

fn single() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn threads() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

/// The runtime that makes the handle.
struct First {
    fate: Fate,
    runtime: Runtime,
}

impl First {
    fn new(fate: Fate) -> Self {
        let runtime = match fate {
            Fate::ThreadsEnded | Fate::GoesOn => threads(),
            Fate::Ended | Fate::Undriven => single(),
        };
        Self { fate, runtime }
    }

    /// Ends the runtime, or returns it to be kept alive.
    fn meet_its_fate(self) -> Option<Runtime> {
        match self.fate {
            Fate::ThreadsEnded | Fate::Ended => {
                drop(self.runtime);
                None
            }
            Fate::Undriven | Fate::GoesOn => Some(self.runtime),
        }
    }
}

/// A store of locks; each handle is another client.
#[derive(Clone)]
struct Place {
    url: String,
}

impl Place {
    async fn handle(&self) -> Locktopus {
        connect(&url(
            &self.url,
            &format!("renewed_lease={}ms", LEASE.as_millis()),
        ))
        .await
    }
}

/// Runs the case on threads, for every place and every fate at once.
fn everywhere(case: fn(&Place, Fate)) {
    let servers_run_on = threads();
    let deployments = servers_run_on.block_on(async {
        [
            servers(TopologyKind::Standalone).await,
            servers(SHARDS).await,
        ]
    });
    let mut places = vec![];
    for deployment in &deployments {
        places.extend(CLIENTS.map(|client| url_for(deployment, client)));
    }
    std::thread::scope(|scope| {
        let mut running = vec![];
        for fate in FATES {
            let memory = format!("memory:{}", unique("runtimes"));
            for url in places.iter().cloned().chain([memory]) {
                let what = format!("{fate:?} {}", url.split('@').next_back().unwrap());
                let run = scope.spawn(move || case(&Place { url }, fate));
                running.push((what, run));
            }
        }
        let failed = running
            .into_iter()
            .filter_map(|(what, run)| run.join().is_err().then_some(what));
        assert_eq!(failed.collect::<Vec<_>>(), [""; 0]);
    });
    for deployment in deployments {
        servers_run_on.block_on(deployment.stop()).unwrap();
    }
}

/// Waits until a lease was renewed: its deadline has moved.
async fn is_renewed(guard: &LockGuard) {
    let before = guard.valid_until();
    eventually("a renewal", LEASE, async || {
        guard.ensure_valid().map_err(|error| error.to_string())?;
        (guard.valid_until() > before)
            .then_some(())
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
}

/// Waits until another client gets the lock, long before the lease ends.
async fn is_free(other: &Locktopus, name: &str) {
    let request = other.lock(name).wait_at_most(SOON);
    let taken = request.acquire().await;
    taken
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .release()
        .await
        .unwrap();
}

async fn is_held(other: &Locktopus, name: &str) {
    let taken = other.lock(name).try_acquire().await.unwrap();
    assert!(taken.is_none(), "{name} has two holders");
}

/// Longer than the test: a lock with this lease is free only if it was released.
const LONG_LEASE: Duration = Duration::from_secs(600);

#[test]
fn a_handle_goes_on_where_it_is_used() {
    everywhere(|place, fate| {
        let first = First::new(fate);
        let names = ["held", "dropped", "next"].map(unique);
        let [held, dropped, next] = &names;
        let (locks, held_guard) = first.runtime.block_on(async {
            let locks = place.handle().await;
            let guard = locks.lock(held).acquire().await.unwrap();
            let lost = locks.lock(dropped).fixed_lease(LONG_LEASE).acquire().await;
            // The background release has no time to run here.
            drop(lost.unwrap());
            (locks, guard)
        });
        let _left = first.meet_its_fate();
        let second = single();
        second.block_on(async {
            let other = place.handle().await;
            let begun = Instant::now();
            let guard = locks.lock(next).acquire().await.unwrap();
            assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
            is_free(&other, dropped).await;
            is_renewed(&guard).await;
            is_renewed(&held_guard).await;
            for name in [held, next] {
                is_held(&other, name).await;
            }
            // Each handle's release wakes the other one's waiter.
            let waiting = tokio::spawn(other.lock(next).wait_at_most(SOON * 2).acquire());
            sleep(Duration::from_millis(50)).await;
            guard.release().await.unwrap();
            let theirs = waiting.await.unwrap().unwrap();
            let mine = locks.lock(next).wait_at_most(SOON * 2);
            let mine = tokio::spawn(async move { mine.acquire().await });
            sleep(Duration::from_millis(50)).await;
            theirs.release().await.unwrap();
            let mine = mine.await.unwrap().unwrap();

            let report = locks.shutdown(SOON).await;
            assert_eq!(report.abandoned, 0);
            assert!(mine.ensure_valid().is_err() && held_guard.ensure_valid().is_err());
            for name in [held, next] {
                is_free(&other, name).await;
            }
            assert_eq!(other.shutdown(SOON).await.abandoned, 0);
        });
    });
}

/// The handle is not used otherwise on the runtime that waits for the loss.
#[test]
fn a_loss_is_told_wherever_it_is_waited_for() {
    const SHORT: Duration = Duration::from_secs(2);
    type Lost = fn(LockGuard) -> std::pin::Pin<Box<dyn Future<Output = ()>>>;
    let ways: [(&str, Lost); 3] = [
        ("lost", |guard| {
            Box::pin(async move { assert_eq!(guard.lost().await, LostCause::Expired) })
        }),
        ("token", |guard| {
            Box::pin(async move { guard.lost_token().cancelled().await })
        }),
        ("lease", |guard| {
            Box::pin(async move { assert_eq!(guard.lease().lost().await, LostCause::Expired) })
        }),
    ];
    static WAYS: std::sync::OnceLock<[(&str, Lost); 3]> = std::sync::OnceLock::new();
    WAYS.get_or_init(|| ways);
    everywhere(|place, fate| {
        for (way, lost) in WAYS.get().unwrap() {
            let first = First::new(fate);
            let (locks, guard) = first.runtime.block_on(async {
                let locks = place.handle().await;
                let request = locks.lock(unique("lost")).fixed_lease(SHORT);
                let guard = request.acquire().await.unwrap();
                (locks, guard)
            });
            let _left = first.meet_its_fate();
            single().block_on(async {
                let told = timeout(SHORT + SOON, lost(guard)).await;
                assert!(told.is_ok(), "{way}");
            });
            drop(locks);
        }
    });
}

/// Work under a lock ends when its maximum hold time is over, and the lock is released.
#[test]
fn work_ends_with_its_lease_on_the_second_runtime() {
    everywhere(|place, fate| {
        let first = First::new(fate);
        let locks = first.runtime.block_on(place.handle());
        let _left = first.meet_its_fate();
        single().block_on(async {
            let other = place.handle().await;
            let name = unique("work");
            let request = locks.lock(&name).max_hold(Duration::from_millis(300));
            let ended = timeout(SOON, request.run(|_| std::future::pending::<()>())).await;
            let ended = ended.unwrap();
            let Err(LockError::Lost { cause, .. }) = ended else {
                panic!("{ended:?}");
            };
            assert_eq!(cause, LostCause::MaxHold);
            is_free(&other, &name).await;

            let election = LeaderElection::new(&locks, unique("leader"));
            let leadership = timeout(SOON, election.campaign()).await.unwrap().unwrap();
            is_renewed_lease(&leadership.lease()).await;
            leadership.resign().await.unwrap();
            let both = [unique("one"), unique("two")];
            let request = locks.multi(both.iter().map(String::as_str));
            let group = request.acquire().await.unwrap();
            drop(group);
            for name in &both {
                is_free(&other, name).await;
            }
            let permits = locks.semaphore(unique("permits"));
            permits.initialise(2).await.unwrap();
            let passing = permits.permits(1).acquire().await.unwrap();
            passing.release().await.unwrap();
        });
    });
}

async fn is_renewed_lease(lease: &locktopus::Lease) {
    let before = lease.valid_until();
    eventually("a renewal", LEASE, async || {
        lease.ensure_valid().map_err(|error| error.to_string())?;
        (lease.valid_until() > before)
            .then_some(())
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
}

/// As a `static` that several tests share: each has its own runtime, which ends right after the
/// test drops its guard.
#[test]
fn tests_share_a_handle_one_after_the_other() {
    everywhere(|place, fate| {
        let first = First::new(fate);
        let locks = first.runtime.block_on(place.handle());
        let _left = first.meet_its_fate();
        let name = unique("shared");
        for _ in 0..4 {
            single().block_on(async {
                let request = locks.lock(&name).fixed_lease(LONG_LEASE).wait_at_most(SOON);
                let guard = request.acquire().await.unwrap();
                drop(guard);
            });
        }
        single().block_on(async {
            assert_eq!(locks.shutdown(SOON).await.abandoned, 0);
            is_free(&place.handle().await, &name).await;
        });
    });
}

/// Two running runtimes, each on its own thread: neither needs the other, and both see each other's
/// locks.
#[test]
fn two_runtimes_use_one_handle_at_the_same_time() {
    everywhere(|place, fate| {
        let first = First::new(fate);
        let locks = first.runtime.block_on(place.handle());
        let _left = first.meet_its_fate();
        let name = unique("both");
        let (turns, rounds) = (2, 20);
        let (sender, counted) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..turns {
                let (locks, name, sender) = (locks.clone(), name.clone(), sender.clone());
                scope.spawn(move || {
                    single().block_on(async {
                        for _ in 0..rounds {
                            let request = locks.lock(&name).wait_at_most(SOON * 4);
                            let guard = request.acquire().await.unwrap();
                            sender.send(guard.token()).unwrap();
                            guard.release().await.unwrap();
                        }
                    });
                });
            }
        });
        drop(sender);
        let tokens: Vec<_> = counted.iter().collect();
        assert_eq!(tokens.len(), turns * rounds);
        assert!(tokens.is_sorted(), "{tokens:?}");
    });
}

/// A quorum identifies its nodes on each runtime, and finishes the clean-up that an earlier runtime
/// left.
#[test]
fn a_quorum_goes_on_where_it_is_used() {
    let servers_run_on = threads();
    let place = servers_run_on.block_on(servers(TopologyKind::QUORUM));
    let clients = CLIENTS.iter().cycle();
    let nodes = place.nodes().iter().zip(clients);
    let urls: Vec<_> = nodes
        .map(|(node, client)| {
            url(
                &format!("redis://{}", node.addr()),
                &format!("client={client}"),
            )
        })
        .collect();
    let handle = async || {
        let quorum = quorum_of(&urls, |builder| builder.max_lease(LEASE)).unwrap();
        let builder = Locktopus::builder(quorum).max_lease(LEASE);
        let locks = builder.renewed_lease(LEASE).build().unwrap();
        // Servers that were just started do not vote yet.
        eventually("every node votes", LEASE * 3, async || {
            match locks.mutex(unique("warm")).try_acquire().await {
                Ok(Some(guard)) => guard.release().await.map_err(|error| error.to_string()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        locks
    };
    for fate in FATES {
        let first = First::new(fate);
        let [held, dropped] = ["held", "dropped"].map(unique);
        let (locks, guard) = first.runtime.block_on(async {
            let locks = handle().await;
            let guard = locks.mutex(&held).acquire().await.unwrap();
            drop(locks.mutex(&dropped).acquire().await.unwrap());
            (locks, guard)
        });
        let _left = first.meet_its_fate();
        single().block_on(async {
            let again = locks.mutex(&dropped).wait_at_most(SOON).acquire().await;
            drop(again.unwrap());
            is_renewed(&guard).await;
            assert!(
                locks.mutex(&held).try_acquire().await.unwrap().is_none(),
                "{fate:?}"
            );
            assert_eq!(locks.shutdown(SOON).await.abandoned, 0, "{fate:?}");
            let other = handle().await;
            for name in [&held, &dropped] {
                let request = other.mutex(name).wait_at_most(LEASE * 2);
                request.acquire().await.unwrap().release().await.unwrap();
            }
        });
    }
    servers_run_on.block_on(place.stop()).unwrap();
}
